//! What is left out: globs, presets, `.gitignore` and `.recantignore` files, as they were in force when a snapshot was taken.
//! All of them are read as git reads its own, but for what docs/DECISIONS.md, Snapshots, names; the user's git is never asked.

use std::cell::Cell;
use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use serde::{Deserialize, Serialize};

use super::error::no_glob;
use crate::error::Error;
use crate::fs::path::AbsPath;

/// The rules in force. With the texts of files that told some of them, so that a restore goes by these and not by today's.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Rules {
    /// `--exclude`, in the order given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// `--preset`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub presets: Vec<String>,
    /// `--gitignore`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gitignore: bool,
    /// The files that were found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<IgnoreFile>,
    /// What became of version control's own directories; `None` in snapshots of a time that had no such rule and kept them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vcs: Option<Vcs>,
    /// Version control's own that was found and left out, the snapshot's folder being `/`: by this a restore tells a repository that
    /// came since from one that was there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repositories: Vec<AbsPath>,
}

/// What becomes of version control's own directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Vcs {
    /// They are left out.
    Left,
    /// They are kept like any other: `--with-vcs`, and every `run --in`, whose command may have committed.
    Kept,
}

/// The names of what belongs to version control itself. A `.git` that is a file leads a worktree or a submodule to its repository: without
/// it the working tree belongs to none, so that it counts as well.
const VCS: [&[u8]; 4] = [b".git", b".hg", b".svn", b".jj"];

/// Whether a name is one of version control's own, be it a directory, a file or a link.
pub fn is_vcs(name: &[u8]) -> bool {
    VCS.contains(&name)
}

/// The topmost part of a path of a snapshot that is version control's own; the snapshot's folder itself, `/`, never is.
pub fn vcs_above(path: &AbsPath) -> Option<AbsPath> {
    let own = std::iter::successors(Some(path.clone()), AbsPath::parent).filter(|at| at.depth() > 0 && is_vcs(at.name()));
    own.last()
}

/// A file of rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IgnoreFile {
    /// The folder that it is for, the snapshot's being `/`.
    pub folder: AbsPath,
    /// `.gitignore` or `.recantignore`.
    pub name: String,
    /// Its content.
    pub text: String,
}

/// Where the rules of a walk come from.
#[derive(Debug, Clone)]
pub enum Source {
    /// These, and those of the files that the walk finds.
    Found(Rules),
    /// These alone, as a snapshot has them: the files that told some of them are in them.
    Kept(Rules),
}

impl Source {
    /// All but what is still to be found.
    pub fn rules(&self) -> &Rules {
        match self {
            Self::Found(rules) | Self::Kept(rules) => rules,
        }
    }
}

impl Default for Source {
    fn default() -> Self {
        Self::Found(Rules::default())
    }
}

/// recant's own file of rules, always read.
pub const RECANTIGNORE: &str = ".recantignore";
/// git's, read with `--gitignore`.
pub const GITIGNORE: &str = ".gitignore";

/// What builds, package managers and editors make anew, and what holds secrets.
const DEV: &[&str] = &[
    "node_modules/",
    "target/",
    "dist/",
    "build/",
    "__pycache__/",
    ".venv/",
    "venv/",
    ".cache/",
    ".next/",
    ".nuxt/",
    "coverage/",
    ".pytest_cache/",
    ".mypy_cache/",
    ".ruff_cache/",
    ".tox/",
    ".gradle/",
    ".parcel-cache/",
    ".turbo/",
    ".svelte-kit/",
    "*.pyc",
    "*.pyo",
    "*.log",
    "*.swp",
    ".DS_Store",
    "Thumbs.db",
    ".env*",
];

/// The ready-made lists.
pub const PRESETS: &[(&str, &[&str])] = &[("dev", DEV)];

/// Rules ready to be asked, for one folder and what lies under it: globs of the command line first, those of the folders above after its
/// own, presets last (gitignore(5), of precedence).
pub struct Matcher {
    globs: Rc<[Glob]>,
    own: Gitignore,
    above: Option<Rc<Matcher>>,
}

impl Rules {
    /// The rules that hold from the top on.
    pub fn top(&self) -> Result<Option<Rc<Matcher>>, Error> {
        let mut builder = GitignoreBuilder::new("/");
        let presets = PRESETS.iter().filter(|(name, _)| self.presets.iter().any(|asked| asked == name));
        for glob in presets.flat_map(|(_, globs)| globs.iter()) {
            add(&mut builder, glob)?;
        }
        let globs = self.exclude.iter().map(|text| Glob::of(text)).collect::<Result<Rc<[_]>, _>>()?;
        let own = builder.build().map_err(|error| bad("", &error))?;
        let is_any = !own.is_empty() || !globs.is_empty();
        Ok(is_any.then(|| Rc::new(Matcher { globs, own, above: None })))
    }

    /// The files of rules by their folder.
    pub fn by_folder(&self) -> HashMap<AbsPath, Vec<&IgnoreFile>> {
        let mut found: HashMap<AbsPath, Vec<&IgnoreFile>> = HashMap::new();
        for file in &self.files {
            found.entry(file.folder.clone()).or_default().push(file);
        }
        found
    }

    /// Whether nothing is left out, version control's own aside.
    pub fn is_empty(&self) -> bool {
        self.exclude.is_empty() && self.presets.is_empty() && self.files.is_empty()
    }

    /// Whether version control's own is left out of a snapshot that is taken by these rules.
    pub fn leaves_vcs(&self) -> bool {
        self.vcs == Some(Vcs::Left)
    }

    /// Whether these and others leave out the same, whatever they found. Version control's own counts where it `counts`.
    pub fn same_as(&self, other: &Self, counts: bool) -> bool {
        let plain = |rules: &Self| Self {
            vcs: rules.vcs.filter(|_| counts && rules.leaves_vcs()),
            repositories: Vec::new(),
            ..rules.clone()
        };
        plain(self) == plain(other)
    }
}

/// A glob of the command line.
struct Glob {
    text: String,
    matcher: Gitignore,
    /// Something that it fits was met.
    fitted: Cell<bool>,
}

impl Glob {
    fn of(text: &str) -> Result<Self, Error> {
        let mut builder = GitignoreBuilder::new("/");
        add(&mut builder, text)?;
        let matcher = builder.build().map_err(|error| bad(text, &error))?;
        Ok(Self { text: text.into(), matcher, fitted: Cell::new(false) })
    }

    /// Whether it leaves a path out, or takes it back in; `None` where it does not fit.
    fn says(&self, path: &Path, is_folder: bool) -> Option<bool> {
        let says = match self.matcher.matched(path, is_folder) {
            ignore::Match::Ignore(_) => Some(true),
            ignore::Match::Whitelist(_) => Some(false),
            ignore::Match::None => None,
        };
        self.fitted.set(self.fitted.get() || says.is_some());
        says
    }
}

/// A glob as somebody may mean a path of `folder` by it: `./` in front says nothing, and an absolute path that leads into the folder is one
/// from its top.
pub fn meant(folder: &AbsPath, glob: &str) -> String {
    let (not, path) = glob.strip_prefix('!').map_or(("", glob), |path| ("!", path));
    let mut plain = path;
    while let Some(rest) = plain.strip_prefix("./") {
        plain = rest.trim_start_matches('/');
    }
    let below = folder.as_path().to_str().and_then(|folder| plain.strip_prefix(folder)).filter(|rest| rest.starts_with('/'));
    let plain = below.unwrap_or(plain);
    if plain.is_empty() { glob.into() } else { format!("{not}{plain}") }
}

fn add(builder: &mut GitignoreBuilder, glob: &str) -> Result<(), Error> {
    match as_git_reads(glob) {
        Some(line) => builder.add_line(None, &line).map(drop).map_err(|error| bad(glob, &error)),
        None => Ok(()),
    }
}

/// What `[:name:]` stands for in a class, in the C locale: gitignore(5) leaves it to fnmatch(3). None begins with what would negate, or has a '/'.
const CLASSES: [(&str, &str); 12] = [
    ("[:alnum:]", "0-9A-Za-z"),
    ("[:alpha:]", "A-Za-z"),
    ("[:blank:]", " \t"),
    ("[:cntrl:]", "\u{1}-\u{1f}\u{7f}"),
    ("[:digit:]", "0-9"),
    ("[:graph:]", "\"-.0-~!"),
    ("[:lower:]", "a-z"),
    ("[:print:]", " -.0-~"),
    ("[:punct:]", "\"-.:-@[-`{-~!"),
    ("[:space:]", "\t-\r "),
    ("[:upper:]", "A-Z"),
    ("[:xdigit:]", "0-9A-Fa-f"),
];

/// A line as the matcher has to be given it: braces are none of git's, classes by name none of the matcher's. `None` for a line that names
/// nothing.
fn as_git_reads(line: &str) -> Option<String> {
    if matches!(line.trim_end(), "!" | "/" | "!/") {
        return None;
    }
    let (mut read, mut rest) = (String::with_capacity(line.len()), line);
    // Once one has no end, none behind it is looked for: the whole line is no glob.
    let mut is_open = false;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '\\' => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            '[' if !is_open => class_length(rest).unwrap_or_else(|| {
                is_open = true;
                1
            }),
            _ => c.len_utf8(),
        };
        let (piece, behind) = rest.split_at(length);
        match c {
            '{' | '}' => read.extend(['\\', c]),
            // Only within it a class has a name: `[:alpha:]` by itself is one of these letters.
            '[' => {
                read.push('[');
                read.push_str(&CLASSES.iter().fold(piece[1..].to_owned(), |piece, (name, range)| piece.replace(name, range)));
            }
            _ => read.push_str(piece),
        }
        rest = behind;
    }
    Some(read)
}

/// How long the class is that `text` begins with; `None` where it has no end.
fn class_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = if matches!(bytes.get(1), Some(b'!' | b'^')) { 2 } else { 1 };
    // Right at the beginning it is one of the class.
    at += usize::from(bytes.get(at) == Some(&b']'));
    loop {
        match bytes.get(at)? {
            b']' => return Some(at + 1),
            b'[' => at += CLASSES.iter().find(|(name, _)| text[at..].starts_with(name)).map_or(1, |(name, _)| name.len()),
            _ => at += 1,
        }
    }
}

fn bad(glob: &str, error: &ignore::Error) -> Error {
    no_glob(glob, error.to_string().lines().next().unwrap_or_default())
}

impl Matcher {
    /// Adds the files of rules of a folder. A line that is no glob counts for nothing, as with git.
    pub fn with(above: Option<Rc<Matcher>>, folder: &AbsPath, files: &[&IgnoreFile]) -> Option<Rc<Matcher>> {
        let mut builder = GitignoreBuilder::new(folder.as_path());
        // recant's own comes last: it has the last word.
        let mut files = files.to_vec();
        files.sort_by_key(|file| file.name == RECANTIGNORE);
        let texts = files.iter().map(|file| file.text.strip_prefix('\u{feff}').unwrap_or(&file.text));
        for line in texts.flat_map(str::lines).filter_map(as_git_reads) {
            drop(builder.add_line(None, &line));
        }
        match builder.build() {
            Ok(own) if !own.is_empty() => {
                let globs = above.as_ref().map_or_else(|| Rc::new([]) as Rc<[Glob]>, |above| above.globs.clone());
                Some(Rc::new(Self { globs, own, above }))
            }
            _ => above,
        }
    }

    /// The globs of the command line that nothing fitted.
    pub fn unfitted(&self) -> Vec<String> {
        self.globs.iter().filter(|glob| !glob.fitted.get()).map(|glob| glob.text.clone()).collect()
    }

    /// Whether a path is left out. What lies under a folder that is left out is never asked for.
    pub fn leaves_out(&self, path: &AbsPath, is_folder: bool) -> bool {
        let path = Path::new(std::ffi::OsStr::from_bytes(path.as_bytes()));
        // All that have not fitted yet are asked, so that it can be said of one that nothing fits it; the last that fits decides.
        let mut says = None;
        for glob in self.globs.iter().rev() {
            if says.is_none() || !glob.fitted.get() {
                says = says.or(glob.says(path, is_folder));
            }
        }
        if let Some(says) = says {
            return says;
        }
        let mut matcher = Some(self);
        while let Some(asked) = matcher {
            match asked.own.matched(path, is_folder) {
                ignore::Match::Ignore(_) => return true,
                ignore::Match::Whitelist(_) => return false,
                ignore::Match::None => matcher = asked.above.as_deref(),
            }
        }
        false
    }
}
