//! Reads a git index as far as it takes to tell whether two of them mean the same: gitformat-index(5), versions 2 to 4, in repositories
//! of SHA-1 and of SHA-256.
//!
//! git rewrites an index to remember what stat(2) returned for each file, and caches in it what it could find out again. The *meaning* is
//! the entries: mode, object, flags and path. [`meaning`] hashes these; two contents of one meaning are no difference. What is unknown
//! here (a split or sparse index, an extension not named below, a byte out of place) has no meaning, and is compared byte by byte like
//! any file. Pure: writes no byte, trusts none, accepts any. Ignores the checksum at the end, which `index.skipHash` omits.

use std::collections::{BTreeMap, BTreeSet};

use super::hash::{Hash, Hasher};
use crate::fs::{AbsPath, Shown};

/// The most bytes of an index with a meaning: some 600,000 entries.
pub const MOST: u64 = 64 << 20;

/// True for a path where a git index may lie: named `index`, below a directory named `.git` or with that ending, as bare repositories
/// have. The indexes of worktrees and submodules lie deeper in such a directory.
pub fn may_lie_at(path: &AbsPath) -> bool {
    path.name() == b"index" && path.ancestors().any(|above| above.name().ends_with(b".git"))
}

/// The paths of the entries, in byte order, once for each stage; `None` for anything else, or an index that is not known here.
pub fn paths(bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let with = |hash| {
        let ([version, _, entries], mut rest) = begun(bytes, hash)?;
        let (mut name, mut paths) = (Vec::new(), Vec::new());
        for _ in 0..entries {
            rest.entry(version, hash, &mut name)?;
            paths.push(name.clone());
        }
        while !rest.0.is_empty() {
            rest.extension(&mut Hasher::default())?;
        }
        Some(paths)
    };
    with(20).or_else(|| with(32))
}

/// Hashes the meaning of an index; `None` for anything else, or an index that is not known here.
pub fn meaning(bytes: &[u8]) -> Option<Hash> {
    known(bytes).map(|(meaning, _)| meaning)
}

/// Finds the [`meaning`], and the number of bytes of an object name.
fn known(bytes: &[u8]) -> Option<(Hash, usize)> {
    let with = |hash| Some((meaning_with(bytes, hash, &mut |_, _| ())?, hash));
    // An index does not say which hash it has; what fits both is neither.
    match (with(20), with(32)) {
        (Some(known), None) | (None, Some(known)) => Some(known),
        _ => None,
    }
}

/// The differences between the entries of two indexes, for people: a line each, in path order, with the difference, or the one of the
/// `labels` that alone has the entry. `None` if either has no [`meaning`].
pub fn differences(a: &[u8], b: &[u8], labels: (&str, &str)) -> Option<Vec<String>> {
    let (a, b) = (entries(a)?, entries(b)?);
    let keys: BTreeSet<_> = a.keys().chain(b.keys()).collect();
    let line = |key: &(Vec<u8>, u16)| {
        let what = match (a.get(key), b.get(key)) {
            (Some(a), Some(b)) => a.difference(b)?,
            (Some(_), None) => format!("only {}", labels.0),
            (None, _) => format!("only {}", labels.1),
        };
        let stage = if key.1 == 0 { String::new() } else { format!(" (stage {})", key.1) };
        Some(format!("{}{stage}: {what}", Shown(&key.0)))
    };
    Some(keys.into_iter().filter_map(line).collect())
}

/// The entries by path and stage: 0, or 1 to 3 in a merge.
fn entries(bytes: &[u8]) -> Option<BTreeMap<(Vec<u8>, u16), Entry<'_>>> {
    let mut entries = BTreeMap::new();
    let (_, hash) = known(bytes)?;
    meaning_with(bytes, hash, &mut |name, entry| {
        entries.insert((name.to_vec(), entry.flags >> 12 & 3), entry);
    })?;
    Some(entries)
}

/// An entry without its name and stat data.
struct Entry<'a> {
    mode: &'a [u8],
    object: &'a [u8],
    flags: u16,
    more: u16,
}

impl Entry<'_> {
    fn add_to(&self, meaning: &mut Hasher, name: &[u8]) -> Option<()> {
        meaning.update(self.mode);
        meaning.update(self.object);
        meaning.update(&self.flags.to_be_bytes());
        meaning.update(&self.more.to_be_bytes());
        meaning.update(&u32::try_from(name.len()).ok()?.to_be_bytes());
        meaning.update(name);
        Some(())
    }

    /// The differences between two entries of one name, if any.
    fn difference(&self, other: &Self) -> Option<String> {
        let flags = (self.flags, self.more) != (other.flags, other.more);
        let all = [(self.object != other.object, "content"), (self.mode != other.mode, "mode"), (flags, "flags")];
        let differ: Vec<_> = all.into_iter().filter_map(|(differs, what)| differs.then_some(what)).collect();
        (!differ.is_empty()).then(|| differ.join(", "))
    }
}

/// Finds the [`meaning`] for object names and a checksum of `hash` bytes. Calls `see` for each entry with its name.
fn meaning_with<'a>(bytes: &'a [u8], hash: usize, see: &mut dyn FnMut(&[u8], Entry<'a>)) -> Option<Hash> {
    let (head, mut rest) = begun(bytes, hash)?;
    let [version, _, entries] = head;
    let mut meaning = Hasher::default();
    // The meaning includes the version: somebody may have asked for this one.
    meaning.update(&head.map(u32::to_be_bytes).concat());
    let mut name = Vec::new();
    for _ in 0..entries {
        let entry = rest.entry(version, hash, &mut name)?;
        entry.add_to(&mut meaning, &name)?;
        see(&name, entry);
    }
    while !rest.0.is_empty() {
        rest.extension(&mut meaning)?;
    }
    Some(meaning.finish())
}

/// The head of an index, and what comes after: its version, the bytes of an object name, the number of entries.
fn begun(bytes: &[u8], hash: usize) -> Option<([u32; 3], Rest<'_>)> {
    let mut rest = Rest(bytes.get(..bytes.len().checked_sub(hash)?)?);
    if rest.take(4)? != b"DIRC" {
        return None;
    }
    let version = rest.number().filter(|version| (2..=4).contains(version))?;
    let entries = rest.number()?;
    Some(([version, u32::try_from(hash).ok()?, entries], rest))
}

/// Extensions that only save git work: cached trees, untracked cache, offsets of entries and extensions, file system monitor.
const CACHES: [&[u8]; 5] = [b"TREE", b"UNTR", b"EOIE", b"IEOT", b"FSMN"];
/// Conflicts that were resolved: only with it can `git checkout -m` bring them back.
const RESOLVED: &[u8] = b"REUC";

/// Bytes of stat data at an entry's beginning: ctime and mtime in two numbers each, device and inode; behind the mode owner, group, size.
const STAT: usize = 24;
const OWNER_AND_SIZE: usize = 12;

/// The flag of further flags.
const EXTENDED: u16 = 0x4000;
/// The length of the name, as far as the flags have room for it.
const LENGTH: u16 = 0x0fff;

/// The bytes still to be read.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn flags(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    /// Takes the text up to the next NUL, and the NUL.
    fn text(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|b| *b == 0)?;
        let text = self.take(end)?;
        self.take(1)?;
        Some(text)
    }

    /// Takes a number in the form of offsets in packs: seven bits a byte, the highest first, one added at each step (gitformat-pack(5)).
    fn varint(&mut self) -> Option<usize> {
        let mut value = 0_usize;
        loop {
            let byte = *self.take(1)?.first()?;
            value = value.checked_mul(128)?.checked_add(usize::from(byte & 127))?;
            if byte < 128 {
                return Some(value);
            }
            value = value.checked_add(1)?;
        }
    }

    /// Takes an entry. `name` is that of the entry before, and then this one's.
    fn entry(&mut self, version: u32, hash: usize, name: &mut Vec<u8>) -> Option<Entry<'a>> {
        let before = self.0.len();
        self.take(STAT)?;
        let mode = self.take(4)?;
        self.take(OWNER_AND_SIZE)?;
        let object = self.take(hash)?;
        let flags = self.flags()?;
        let more = match (flags & EXTENDED != 0, version) {
            (false, _) => 0,
            (true, 2) => return None,
            (true, _) => self.flags()?,
        };
        if version == 4 {
            let kept = name.len().checked_sub(self.varint()?)?;
            name.truncate(kept);
            name.extend_from_slice(self.text()?);
        } else {
            name.clear();
            name.extend_from_slice(self.text()?);
            // Up to the next multiple of eight from the entry's beginning.
            let length = before - self.0.len();
            let padding = self.take(length.next_multiple_of(8) - length)?;
            if padding.iter().any(|b| *b != 0) {
                return None;
            }
        }
        if usize::from(flags & LENGTH) != name.len().min(usize::from(LENGTH)) {
            return None;
        }
        Some(Entry { mode, object, flags, more })
    }

    fn extension(&mut self, meaning: &mut Hasher) -> Option<()> {
        let signature = self.take(4)?;
        let length = self.number()?;
        let content = self.take(usize::try_from(length).ok()?)?;
        if signature == RESOLVED {
            meaning.update(signature);
            meaning.update(&length.to_be_bytes());
            meaning.update(content);
            return Some(());
        }
        CACHES.contains(&signature).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// A repository made by the real git; `None`, with a message, if there is none.
    struct Repository(tempfile::TempDir);

    impl Repository {
        fn new(format: &str) -> Option<Self> {
            if crate::fs::command("git").arg("--version").output().is_err() {
                println!("skipped: git makes the indexes");
                return None;
            }
            let made = Self(tempfile::tempdir().expect("a directory"));
            made.git(&format!("init -q -b main --object-format={format} ."));
            Some(made)
        }

        fn dir(&self) -> &Path {
            self.0.path()
        }

        #[track_caller]
        fn git(&self, words: &str) {
            assert!(self.try_git(words), "git {words}");
        }

        fn try_git(&self, words: &str) -> bool {
            let mut git = crate::fs::command("git");
            git.current_dir(self.dir()).args(words.split(' ')).envs([
                ("GIT_CONFIG_NOSYSTEM", "1"),
                ("GIT_CONFIG_GLOBAL", "/dev/null"),
                ("GIT_AUTHOR_NAME", "a"),
                ("GIT_AUTHOR_EMAIL", "a@b"),
                ("GIT_COMMITTER_NAME", "a"),
                ("GIT_COMMITTER_EMAIL", "a@b"),
            ]);
            git.output().expect("git").status.success()
        }

        #[expect(clippy::disallowed_methods, reason = "a repository of its own")]
        fn write(&self, name: &str, text: &str) {
            let path = self.dir().join(name);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            std::fs::write(path, text).expect("a file");
        }

        /// Changes the time of every file, so that git finds the index out of date.
        fn touch(&self) {
            let find = ["-c", "find . -path ./.git -prune -o -type f -exec touch -d @1000000000 {} +"];
            assert!(crate::fs::command("sh").current_dir(self.dir()).args(find).status().expect("sh").success());
        }

        fn bytes(&self) -> Vec<u8> {
            std::fs::read(self.dir().join(".git/index")).expect("an index")
        }

        #[track_caller]
        fn meaning(&self) -> Hash {
            meaning(&self.bytes()).expect("an index that is known")
        }

        fn filled(&self) {
            for name in ["a", "deep/er/one", "deep/er/two", "deep/other", "e", &"long/".repeat(60)] {
                self.write(&format!("{name}file"), name);
            }
            self.git("add -A");
            self.git("commit -q -m first");
        }
    }

    const FORMATS: [&str; 2] = ["sha1", "sha256"];

    #[test]
    fn what_git_rewrites_for_itself_means_the_same() {
        for (format, version) in FORMATS.into_iter().flat_map(|format| [2, 4].map(|version| (format, version))) {
            let Some(repository) = Repository::new(format) else { return };
            repository.filled();
            repository.git(&format!("update-index --index-version {version}"));
            let (bytes, known) = (repository.bytes(), repository.meaning());
            for rewriting in [
                "update-index --refresh",
                "status",
                "write-tree",
                "update-index --force-untracked-cache",
                "-c index.threads=2 -c index.recordOffsetTable=true -c index.recordEndOfIndexEntries=true update-index --force-write-index",
                "-c index.skipHash=true update-index --force-write-index",
                "update-index --force-write-index",
            ] {
                repository.touch();
                repository.git(rewriting);
                assert_ne!(repository.bytes(), bytes, "{format} {version} {rewriting}");
                assert_eq!(repository.meaning(), known, "{format} {version} {rewriting}");
            }
        }
    }

    #[test]
    fn every_change_of_an_entry_means_something_else() {
        for (format, version) in FORMATS.into_iter().flat_map(|format| [2, 4].map(|version| (format, version))) {
            let Some(repository) = Repository::new(format) else { return };
            repository.filled();
            repository.git(&format!("update-index --index-version {version}"));
            repository.git("branch side");
            let mut known = vec![repository.meaning()];
            let mut step = |what: &str| {
                let now = repository.meaning();
                assert!(!known.contains(&now), "{format} {version} {what}");
                known.push(now);
            };
            repository.write("afile", "edited");
            repository.git("add afile");
            step("another object");
            repository.git("update-index --chmod=+x efile");
            step("another mode");
            repository.git("update-index --assume-unchanged efile");
            step("assume unchanged");
            repository.git("update-index --skip-worktree efile");
            step("skip worktree");
            repository.git("update-index --no-assume-unchanged efile");
            step("skip worktree alone");
            repository.write("intended", "x");
            repository.git("add -N intended");
            step("intent to add");
            repository.git("rm -q --cached intended deep/otherfile");
            step("one less");
            repository.git("commit -q -m here");
            repository.git("update-index --no-skip-worktree efile");
            step("as committed");
            repository.git("checkout -q -f side");
            repository.write("afile", "otherwise");
            repository.git("commit -q -a -m there");
            step("the other branch");
            assert!(!repository.try_git("merge -q main"), "a conflict");
            step("stages");
            repository.write("afile", "both");
            repository.git("add afile");
            step("resolved");
            repository.git("update-index --clear-resolve-undo");
            step("with no way back to the conflict");
            let other = if version == 4 { 2 } else { 4 };
            repository.git(&format!("update-index --index-version {other}"));
            step("another version");
        }
    }

    #[test]
    fn the_entries_that_differ_are_named_with_what_of_them_does() {
        for (format, version) in FORMATS.into_iter().flat_map(|format| [2, 4].map(|version| (format, version))) {
            let Some(repository) = Repository::new(format) else { return };
            repository.filled();
            repository.git(&format!("update-index --index-version {version}"));
            let before = repository.bytes();
            repository.touch();
            repository.git("update-index --force-write-index");
            let listed =
                ["afile", "deep/er/onefile", "deep/er/twofile", "deep/otherfile", "efile"].map(|name| name.as_bytes().to_vec());
            let long = format!("{}file", "long/".repeat(60)).into_bytes();
            assert_eq!(paths(&before), Some([&listed[..], &[long]].concat()), "{format} {version}");
            let named = || differences(&before, &repository.bytes(), ("there", "here")).expect("indexes that are known");
            assert_eq!(named(), [""; 0]);
            repository.write("afile", "edited");
            repository.write("new", "new");
            repository.git("add afile new");
            repository.git("rm -q --cached deep/er/onefile");
            repository.git("update-index --chmod=+x afile efile");
            repository.git("update-index --skip-worktree deep/er/twofile");
            repository.git("update-index --assume-unchanged efile");
            let want = [
                "afile: content, mode",
                "deep/er/onefile: only there",
                "deep/er/twofile: flags",
                "efile: mode, flags",
                "new: only here",
            ];
            assert_eq!(named(), want, "{format} {version}");
            assert_eq!(differences(&before, b"DIRC", ("there", "here")), None);
        }
    }

    /// The flags have no room for its length.
    #[test]
    fn a_name_of_more_than_4095_bytes_is_read_to_its_end() {
        for (format, version) in FORMATS.into_iter().flat_map(|format| [2, 4].map(|version| (format, version))) {
            let Some(repository) = Repository::new(format) else { return };
            repository.filled();
            repository.git(&format!("update-index --index-version {version}"));
            let object = if format == "sha1" { "1".repeat(40) } else { "1".repeat(64) };
            let mut known = vec![repository.meaning()];
            for end in ["", "a", "b"] {
                repository.git(&format!("update-index --add --cacheinfo 100644,{object},z{}/{end}z", "0123456789".repeat(409)));
                let now = repository.meaning();
                assert!(!known.contains(&now), "{format} {version} {end:?}");
                known.push(now);
            }
        }
    }

    #[test]
    fn a_split_or_sparse_index_or_no_index_means_nothing() {
        let Some(repository) = Repository::new("sha1") else { return };
        repository.filled();
        repository.git("update-index --split-index");
        assert_eq!(meaning(&repository.bytes()), None, "split");
        repository.git("update-index --no-split-index");
        repository.meaning();
        repository.git("sparse-checkout set --cone --sparse-index deep/er");
        assert_eq!(meaning(&repository.bytes()), None, "sparse");
        for bytes in [&b""[..], b"DIRC", b"<!doctype html>", &[0; 100], b"DIRC\0\0\0\x05\0\0\0\0aaaaaaaaaaaaaaaaaaaa"] {
            assert_eq!(meaning(bytes), None, "{}", bytes.escape_ascii());
        }
        // One without entries is valid.
        assert!(meaning(b"DIRC\0\0\0\x02\0\0\0\0aaaaaaaaaaaaaaaaaaaa").is_some());
    }

    #[test]
    fn any_bytes_are_read_and_only_what_git_may_rewrite_means_nothing() {
        for (format, hash) in FORMATS.into_iter().zip([20, 32]) {
            let Some(repository) = Repository::new(format) else { return };
            repository.write("a", "1");
            repository.write("b/c", "2");
            repository.git("add -A");
            repository.git("update-index --skip-worktree a");
            for version in [3, 4] {
                repository.git(&format!("update-index --index-version {version}"));
                let (bytes, known) = (repository.bytes(), repository.meaning());
                for end in 0..bytes.len() {
                    assert_eq!(meaning(&bytes[..end]), None, "{format} {version} cut off at {end}");
                }
                let first = 12..12 + STAT;
                let size = first.end + 4..first.end + 4 + OWNER_AND_SIZE;
                let is_stat = |at: usize| first.contains(&at) || size.contains(&at) || at >= bytes.len() - hash;
                // Behind the first entry only a panic would be wrong.
                for at in 0..bytes.len() {
                    let mut other = bytes.clone();
                    other[at] ^= 1;
                    let found = meaning(&other);
                    if is_stat(at) {
                        assert_eq!(found, Some(known), "{format} {version} at {at}");
                    } else if at < size.end + hash + 4 {
                        assert_ne!(found, Some(known), "{format} {version} at {at}");
                    }
                }
            }
        }
    }

    #[test]
    fn an_index_lies_in_a_directory_of_git_s() {
        for (path, wanted) in [
            ("/p/.git/index", true),
            ("/p/.git/worktrees/w/index", true),
            ("/p/.git/modules/a/modules/b/index", true),
            ("/srv/p.git/worktrees/w/index", true),
            ("/p/index", false),
            ("/p/.git/index.lock", false),
            ("/p/.github/index", false),
        ] {
            assert_eq!(may_lie_at(&AbsPath::parse(path).expect("a path")), wanted, "{path}");
        }
    }
}
