//! The rules of what is left out: globs, presets, `.gitignore` and `.recantignore` files, as in force when a snapshot was taken. All are
//! read as git reads its own, except as docs/DECISIONS.md, Snapshots, says; the user's git is never asked.

use std::cell::Cell;
use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use serde::{Deserialize, Serialize};

use super::error::no_glob;
use crate::error::Error;
use crate::fs::AbsPath;
use crate::tree::generated::DIRECTORIES;

/// The rules in force, with the texts of the files that gave some of them, so that a restore uses these and not today's.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Rules {
    /// The globs of `--exclude`, in the order given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub presets: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gitignore: bool,
    /// The files of rules that were found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<IgnoreFile>,
    pub vcs: Vcs,
    /// Version control's own that was found and left out, with the snapshot's directory as `/`: by this a restore tells a repository that
    /// was made since from one that was there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repositories: Vec<AbsPath>,
    /// The cover of an agent's turn; `None` for all other snapshots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cover: Option<Cover>,
}

/// The cover of a snapshot: what was asked for, and what was decided about paths that git ignores. Paths have the directory as `/`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Cover {
    /// Globs of what compilers and editors put beside sources.
    pub byproducts: Vec<String>,
    /// The paths that are covered because git tracks them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tracked: Vec<AbsPath>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub small: Vec<AbsPath>,
    /// The ignored paths that are not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub large: Vec<AbsPath>,
}

/// The reasons to leave something out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    Rules,
    /// Builds or package managers make it.
    Built,
    /// A directory that git ignores, and that has many entries.
    Many,
    /// A file that git ignores, and that is large.
    Large,
    /// A compiler or an editor put it beside sources.
    Byproduct,
    /// It is version control's own.
    Vcs,
    /// Another file system is mounted there.
    Mount,
    /// It is recant's own store.
    Store,
}

impl Why {
    pub fn text(self) -> &'static str {
        match self {
            Why::Rules => "left out by the rules of the snapshot",
            Why::Built => "it is built or downloaded",
            Why::Many => "git ignores it, and it has more than 1,000 entries",
            Why::Large => "git ignores it, and it is larger than 1 MiB",
            Why::Byproduct => "compilers or editors make it",
            Why::Vcs => "it is version control's own",
            Why::Mount => "another file system is mounted there",
            Why::Store => "it is recant's own store",
        }
    }

    /// True if rules leave it out: nobody has to be told each time.
    pub fn is_rule(self) -> bool {
        matches!(self, Why::Rules | Why::Built | Why::Many | Why::Large | Why::Byproduct)
    }
}

/// The treatment of version control's own directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Vcs {
    Left,
    /// They are kept like any other: `--with-vcs`, and every `run --in`, whose command may have committed.
    #[default]
    Kept,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IgnoreFile {
    /// The directory that it is for, with the snapshot's as `/`.
    #[serde(rename = "folder")]
    pub directory: AbsPath,
    pub name: String,
    pub text: String,
}

/// The name of recant's own file of rules, always read.
pub const RECANTIGNORE: &str = ".recantignore";
/// The name of git's file of rules, read with `--gitignore`.
pub const GITIGNORE: &str = ".gitignore";

/// Files that builds and editors make anew, and files with secrets: the preset `dev`, beside the [`DIRECTORIES`].
const DEV_FILES: &[&str] = &["*.pyc", "*.pyo", "*.log", "*.swp", ".DS_Store", "Thumbs.db", ".env*"];

/// The globs of a preset; `None` if there is none of that name.
fn preset(name: &str) -> Option<Vec<String>> {
    let directories = DIRECTORIES.iter().map(|(name, _)| format!("{name}/"));
    (name == "dev").then(|| directories.chain(DEV_FILES.iter().map(|glob| (*glob).to_owned())).collect())
}

/// Compiled rules for one directory and what lies under it: globs of the command line first, those of parent directories after its own,
/// presets last (gitignore(5), on precedence).
pub struct Matcher {
    globs: Rc<[Glob]>,
    own: Gitignore,
    above: Option<Rc<Matcher>>,
}

impl Rules {
    /// The rules that hold from the top on.
    pub fn top(&self) -> Result<Option<Rc<Matcher>>, Error> {
        let mut builder = GitignoreBuilder::new("/");
        for glob in self.presets.iter().filter_map(|name| preset(name)).flatten() {
            add(&mut builder, &glob)?;
        }
        let globs = self.exclude.iter().map(|text| Glob::of(text)).collect::<Result<Rc<[_]>, _>>()?;
        let own = builder.build().map_err(|error| bad("", &error))?;
        let is_any = !own.is_empty() || !globs.is_empty();
        Ok(is_any.then(|| Rc::new(Matcher { globs, own, above: None })))
    }

    /// The files of rules by their directory.
    pub fn by_directory(&self) -> HashMap<AbsPath, Vec<&IgnoreFile>> {
        let mut found: HashMap<AbsPath, Vec<&IgnoreFile>> = HashMap::new();
        for file in &self.files {
            found.entry(file.directory.clone()).or_default().push(file);
        }
        found
    }

    /// True if nothing is left out, version control's own aside.
    pub fn is_empty(&self) -> bool {
        self.exclude.is_empty() && self.presets.is_empty() && self.files.is_empty() && self.cover.is_none()
    }

    /// True if a snapshot by these rules leaves version control's own out.
    pub fn leaves_vcs(&self) -> bool {
        self.vcs == Vcs::Left
    }

    /// Tells whether two sets of rules leave out the same, whatever they found. Version control's own matters if it `counts`.
    pub fn same_as(&self, other: &Self, counts: bool) -> bool {
        let plain =
            |rules: &Self| Self { vcs: if counts { rules.vcs } else { Vcs::Kept }, repositories: Vec::new(), ..rules.clone() };
        plain(self) == plain(other)
    }
}

/// A glob of the command line.
struct Glob {
    text: String,
    matcher: Gitignore,
    /// True once it matched something.
    fitted: Cell<bool>,
}

impl Glob {
    fn of(text: &str) -> Result<Self, Error> {
        let mut builder = GitignoreBuilder::new("/");
        add(&mut builder, text)?;
        let matcher = builder.build().map_err(|error| bad(text, &error))?;
        Ok(Self { text: text.into(), matcher, fitted: Cell::new(false) })
    }

    /// True if it leaves a path out, false if it takes it back in; `None` if it does not match.
    fn says(&self, path: &Path, is_dir: bool) -> Option<bool> {
        let says = match self.matcher.matched(path, is_dir) {
            ignore::Match::Ignore(_) => Some(true),
            ignore::Match::Whitelist(_) => Some(false),
            ignore::Match::None => None,
        };
        self.fitted.set(self.fitted.get() || says.is_some());
        says
    }
}

/// Reads a glob as a person may mean a path of `directory`: a leading `./` means nothing, and an absolute path into the directory starts at
/// its top.
pub fn as_path_of(directory: &AbsPath, glob: &str) -> String {
    let (not, path) = glob.strip_prefix('!').map_or(("", glob), |path| ("!", path));
    let mut plain = path;
    while let Some(rest) = plain.strip_prefix("./") {
        plain = rest.trim_start_matches('/');
    }
    let below =
        directory.as_path().to_str().and_then(|directory| plain.strip_prefix(directory)).filter(|rest| rest.starts_with('/'));
    let plain = below.unwrap_or(plain);
    if plain.is_empty() { glob.into() } else { format!("{not}{plain}") }
}

fn add(builder: &mut GitignoreBuilder, glob: &str) -> Result<(), Error> {
    match as_git_reads(glob) {
        Some(line) => builder.add_line(None, &line).map(drop).map_err(|error| bad(glob, &error)),
        None => Ok(()),
    }
}

/// The meaning of `[:name:]` in a class, in the C locale: gitignore(5) leaves it to fnmatch(3). None begins with a negation, or has a '/'.
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

/// Rewrites a line for the matcher: git knows no braces, and the matcher no named classes. `None` for a line that names nothing.
fn as_git_reads(line: &str) -> Option<String> {
    if matches!(line.trim_end(), "!" | "/" | "!/") {
        return None;
    }
    let (mut read, mut rest) = (String::with_capacity(line.len()), line);
    // Once a class has no end, none after it is looked for: the whole line is no glob.
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
            // A named class counts only within a class: `[:alpha:]` by itself is one of these letters.
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

/// The length of the class that `text` begins with; `None` if it has no end.
fn class_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = if matches!(bytes.get(1), Some(b'!' | b'^')) { 2 } else { 1 };
    // Right at the beginning it belongs to the class.
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
    /// Adds the files of rules of a directory. A line that is no glob is ignored, as with git.
    pub fn with(above: Option<Rc<Matcher>>, directory: &AbsPath, files: &[&IgnoreFile]) -> Option<Rc<Matcher>> {
        let mut builder = GitignoreBuilder::new(directory.as_path());
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

    /// The globs of the command line that matched nothing.
    pub fn unfitted(&self) -> Vec<String> {
        self.globs.iter().filter(|glob| !glob.fitted.get()).map(|glob| glob.text.clone()).collect()
    }

    /// Tells whether a path is left out. Paths under a directory that is left out are never asked for.
    pub fn leaves_out(&self, path: &AbsPath, is_dir: bool) -> bool {
        self.says(path, is_dir) == Some(true)
    }

    /// True if a rule leaves a path out, false if one takes it back in; `None` if none matches.
    pub fn says(&self, path: &AbsPath, is_dir: bool) -> Option<bool> {
        let path = Path::new(std::ffi::OsStr::from_bytes(path.as_bytes()));
        // All globs that have not matched yet are tried, so that unmatched ones can be named; the last match decides.
        let mut says = None;
        for glob in self.globs.iter().rev() {
            if says.is_none() || !glob.fitted.get() {
                says = says.or(glob.says(path, is_dir));
            }
        }
        let mut matcher = Some(self).filter(|_| says.is_none());
        while let Some(asked) = matcher {
            match asked.own.matched(path, is_dir) {
                ignore::Match::Ignore(_) => return Some(true),
                ignore::Match::Whitelist(_) => return Some(false),
                ignore::Match::None => matcher = asked.above.as_deref(),
            }
        }
        says
    }
}
