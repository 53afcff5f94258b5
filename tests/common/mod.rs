//! The fixture of the black-box tests: a [`World`] with a home, a store and a tree of its own, in which the real binary
//! is run, and the exact state of a tree to compare ([`manifest`]).
//!
//! ```ignore
//! let world = World::new();
//! world.write("notes.txt", "mine");                        // below world.tree()
//! let id = world.recant("session new").id();               // words split at spaces; runs in world.tree()
//! world.call(["session", "write", &id, "notes.txt"]).stdin("yours").run().ok();
//! assert_snapshot!(world.recant("show"), @"…");            // status, stdout, stderr; ids, times, paths masked
//! let before = world.manifest();
//! ```
//!
//! What a run says is masked the same way in one world: the first id that shows is `<id1>`, the second `<id2>`; their last
//! parts are `<id1~>`; a local time is `<time>`; the world's directory is `/world`, so that the tree is `/world/tree`.

#![allow(dead_code, reason = "each test binary uses a part of the fixture")]
#![allow(clippy::print_stdout, reason = "what is skipped is said")]
#![allow(clippy::disallowed_methods, reason = "tests make and change files as users do")]

pub mod sweep;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use recant::{Commit, Desk, Edit, Target};
use tempfile::TempDir;

/// The same numbers for the same seed (SplitMix64).
pub struct Dice(pub u64);

impl Dice {
    /// Below `sides`.
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    /// The same of what is counted in memory.
    pub fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.roll(n as u64)).expect("a small number")
    }

    pub fn percent(&mut self, n: usize) -> bool {
        self.below(100) < n
    }

    pub fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }
}

/// The program that is tested: the one that Cargo built, or a copy of it that every user may run (tests/run.py).
pub fn recant() -> &'static str {
    static BINARY: OnceLock<String> = OnceLock::new();
    BINARY.get_or_init(|| std::env::var("RECANT_BINARY").unwrap_or_else(|_| env!("CARGO_BIN_EXE_recant").to_owned()))
}

/// A script that starts the tests in the background leaves SIGINT ignored, and so it would be in all that they start.
fn heed_interrupts() {
    #[expect(unsafe_code, reason = "std has no way to set a signal's default")]
    // SAFETY: signal(2) with SIG_DFL installs no handler, and no test has one.
    unsafe {
        libc::signal(libc::SIGINT, libc::SIG_DFL);
    }
}

/// Closes a file for good. A process that a test beside this one starts in the same moment has it open, too, until its exec.
pub fn close(file: std::fs::File) {
    let inode = |meta: std::fs::Metadata| (meta.dev(), meta.ino());
    let closed = file.metadata().map(inode).expect("an open file");
    drop(file);
    let me = std::env::current_exe().expect("this program");
    let is_open_in = |process: &Path| {
        let Ok(open) = std::fs::read_dir(process.join("fd")) else { return false };
        open.flatten().any(|fd| std::fs::metadata(fd.path()).map(inode).is_ok_and(|inode| inode == closed))
    };
    let ours = |process: &Path| std::fs::read_link(process.join("exe")).is_ok_and(|exe| exe == me);
    let anywhere = || {
        let processes = std::fs::read_dir("/proc").expect("the processes");
        processes.flatten().any(|process| ours(&process.path()) && is_open_in(&process.path()))
    };
    let start = std::time::Instant::now();
    while anywhere() {
        assert!(start.elapsed().as_secs() < 10, "another process of this test keeps it open");
        std::thread::yield_now();
    }
}

/// A home, XDG directories, a store and a tree, all of its own, gone at the end. The commands run in it see no other
/// environment than `PATH`, `HOME`, `XDG_*`, `TZ=UTC`, `LANG=C.UTF-8`, `RECANT_STORE` and what [`World::set`] adds.
pub struct World {
    _temp: TempDir,
    root: PathBuf,
    umask: u32,
    vars: BTreeMap<OsString, OsString>,
    masks: Arc<Mutex<Masks>>,
}

impl World {
    /// In the usual directory for temporary files.
    pub fn new() -> Self {
        Self::on(&std::env::temp_dir())
    }

    /// Below `directory`: to have the tree and the store on a certain file system.
    pub fn on(directory: &Path) -> Self {
        heed_interrupts();
        let temp = tempfile::Builder::new().prefix("recant-test-").tempdir_in(directory).expect("a temporary directory");
        let root = temp.path().canonicalize().expect("a directory that was just made");
        for name in ["home", "tree"] {
            std::fs::create_dir(root.join(name)).expect("a new directory");
        }
        let mut vars = BTreeMap::new();
        let mut set = |name: &str, value: &OsStr| drop(vars.insert(name.into(), value.into()));
        set("PATH", std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into()).as_os_str());
        set("HOME", root.join("home").as_os_str());
        set("XDG_CONFIG_HOME", root.join("config").as_os_str());
        set("XDG_DATA_HOME", root.join("data").as_os_str());
        set("RECANT_STORE", root.join("store").as_os_str());
        set("TZ", OsStr::new("UTC"));
        set("LANG", OsStr::new("C.UTF-8"));
        let masks = Arc::new(Mutex::new(Masks { root: root.clone(), ids: Vec::new() }));
        Self { _temp: temp, root, umask: 0o022, vars, masks }
    }

    /// Sets a variable for all later calls.
    pub fn set(&mut self, name: &str, value: impl AsRef<OsStr>) -> &mut Self {
        self.vars.insert(name.into(), value.as_ref().into());
        self
    }

    /// Takes a variable away from all later calls.
    pub fn unset(&mut self, name: &str) -> &mut Self {
        self.vars.remove(OsStr::new(name));
        self
    }

    /// The umask of all later calls; 022 at first.
    pub fn umask(&mut self, umask: u32) -> &mut Self {
        self.umask = umask;
        self
    }

    /// The world's directory: `tree`, `home`, `store`, `config` and `data` lie in it.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The directory that the tests' files lie in, and that commands run in.
    pub fn tree(&self) -> PathBuf {
        self.root.join("tree")
    }

    /// A path below the tree; an absolute one stays as it is.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.tree().join(name)
    }

    /// The store that `RECANT_STORE` names at first. Nothing is there before a command makes it.
    pub fn store(&self) -> PathBuf {
        self.root.join("store")
    }

    /// A session's directory in the store.
    pub fn session(&self, id: &str) -> PathBuf {
        self.store().join("sessions").join(id)
    }

    /// Writes a file below the tree, with its directories.
    pub fn write(&self, name: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> &Self {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a path with a directory")).expect("directories for the file");
        std::fs::write(&path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        self
    }

    /// Writes the settings file.
    pub fn config(&self, text: &str) -> &Self {
        self.write(self.root.join("config/recant/config.toml"), text)
    }

    /// Makes a directory below the tree, with its parents.
    pub fn mkdir(&self, name: impl AsRef<Path>) -> &Self {
        std::fs::create_dir_all(self.path(name)).expect("a new directory");
        self
    }

    /// Makes a symlink below the tree.
    pub fn symlink(&self, target: impl AsRef<Path>, name: impl AsRef<Path>) -> &Self {
        std::os::unix::fs::symlink(target, self.path(name)).expect("a new link");
        self
    }

    /// Makes a FIFO below the tree.
    pub fn fifo(&self, name: impl AsRef<Path>) -> &Self {
        let mode = rustix::fs::Mode::from_raw_mode(0o644);
        rustix::fs::mknodat(rustix::fs::CWD, self.path(name), rustix::fs::FileType::Fifo, mode, 0).expect("a new FIFO");
        self
    }

    /// Gives a file a second name.
    pub fn link(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> &Self {
        std::fs::hard_link(self.path(from), self.path(to)).expect("a second name");
        self
    }

    /// Sets permission bits.
    pub fn chmod(&self, name: impl AsRef<Path>, mode: u32) -> &Self {
        std::fs::set_permissions(self.path(name), std::fs::Permissions::from_mode(mode)).expect("other permission bits");
        self
    }

    /// Removes a file, link or whole directory.
    pub fn remove(&self, name: impl AsRef<Path>) -> &Self {
        let path = self.path(name);
        let is_dir = path.symlink_metadata().expect("something to remove").is_dir();
        if is_dir { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }.expect("a removal");
        self
    }

    /// Sets the mtime, of a directory too; links are not followed.
    pub fn set_mtime(&self, name: impl AsRef<Path>, s: i64, ns: i64) -> &Self {
        let omit = rustix::fs::Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
        let time = rustix::fs::Timespec { tv_sec: s, tv_nsec: ns };
        let times = rustix::fs::Timestamps { last_access: omit, last_modification: time };
        let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
        rustix::fs::utimensat(rustix::fs::CWD, self.path(name), &times, flags).expect("another mtime");
        self
    }

    /// Sets an xattr; false, said as a skip, where the file system has none.
    pub fn set_xattr(&self, name: impl AsRef<Path>, xattr: &str, value: impl AsRef<[u8]>) -> bool {
        let path = self.path(name);
        let set = rustix::fs::lsetxattr(&path, xattr, value.as_ref(), rustix::fs::XattrFlags::empty());
        if let Err(error) = set {
            println!("skipped: the xattr {xattr} on {}: {error}", path.display());
        }
        set.is_ok()
    }

    /// The content of a file below the tree, as text.
    pub fn read(&self, name: impl AsRef<Path>) -> String {
        String::from_utf8(self.bytes(name)).expect("content that is UTF-8")
    }

    /// The content of a file below the tree.
    pub fn bytes(&self, name: impl AsRef<Path>) -> Vec<u8> {
        let path = self.path(name);
        std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Whether there is anything, a dangling link too.
    pub fn exists(&self, name: impl AsRef<Path>) -> bool {
        self.path(name).symlink_metadata().is_ok()
    }

    /// The exact state of the tree.
    pub fn manifest(&self) -> Manifest {
        manifest(&self.tree())
    }

    /// Runs recant with these words, split at spaces, in the tree, with nothing on standard input.
    pub fn recant(&self, words: &str) -> Said {
        self.call(words.split_whitespace()).run()
    }

    /// Prepares a run of recant: arguments as they are, working directory, input and variables as set on it.
    pub fn call<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Call {
        self.program(recant(), args)
    }

    /// The same for another program, in the same environment: `git`, `sh`.
    pub fn program<A: AsRef<OsStr>>(&self, program: impl AsRef<OsStr>, args: impl IntoIterator<Item = A>) -> Call {
        // The shell is there for the umask alone: setting it between fork and exec would be unsafe code here.
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(format!("umask {:03o}; exec \"$0\" \"$@\"", self.umask)).arg(program).args(args);
        command.env_clear().envs(&self.vars).current_dir(self.tree());
        Call { command, stdin: Vec::new(), masks: self.masks.clone() }
    }

    /// Begins a session and gives its id.
    pub fn begin(&self) -> String {
        self.recant("session new").ok().id()
    }

    /// Stages new content for a path, with its missing directories.
    pub fn stage_write(&self, id: &str, name: impl AsRef<OsStr>, content: impl AsRef<[u8]>) -> &Self {
        let args = [OsStr::new("session"), OsStr::new("write"), OsStr::new("-p"), OsStr::new(id), name.as_ref()];
        self.call(args).stdin(content).run().ok();
        self
    }

    /// Stages lines in a session, in this process: `write PATH CONTENT`, with the directories that are missing, `delete PATH`, `mkdir PATH`,
    /// `chmod MODE PATH`, `symlink TARGET PATH`. Whatever lies at the path gives way.
    pub fn stage<'a>(&self, id: &str, lines: impl IntoIterator<Item = &'a str>) -> &Self {
        let mut edits = Edits { world: self, seen: BTreeMap::new(), edits: Vec::new() };
        lines.into_iter().for_each(|line| edits.add(line));
        let mut contents: Vec<&[u8]> = edits.edits.iter().map(|(_, edit)| edit.content()).collect();
        let edits = edits.edits.iter().zip(&mut contents).map(|((path, edit), content)| {
            let edit = match edit {
                Staged::Write(_) => Edit::Write { content, source: "a line", mode: None, over_directory: false },
                Staged::Delete => Edit::Delete { recursive: true },
                Staged::Mkdir => Edit::Mkdir(None),
                Staged::Chmod(mode) => Edit::Chmod(*mode),
                Staged::Symlink(target) => Edit::Symlink { target: target.as_bytes(), over_directory: false },
            };
            (path.as_path(), edit)
        });
        recant::stage(&self.desk(), id, &self.tree(), edits, false).unwrap_or_else(|error| panic!("{error}"));
        self
    }

    /// The desk of a program with the world's store.
    fn desk(&self) -> Desk {
        Desk::open(&self.vars[OsStr::new("RECANT_STORE")]).expect("the world's store")
    }

    /// Commits these paths of a session, in this process, so that it is half in: what the program does with parts that are no session of
    /// their own. Gives the exit status that the program would end with.
    pub fn commit_half(&self, id: &str, paths: &[&str], force: bool) -> i32 {
        let commit = Commit::of(Target::all(id).at(&self.tree(), paths));
        match recant::internals::commit_half(&self.desk(), &if force { commit.force() } else { commit }) {
            Ok(acted) if acted.as_ref().is_none_or(|acted| acted.left().count() == 0) => 0,
            Ok(_) => 4,
            Err(error) => match error.kind() {
                recant::Kind::Refused => 1,
                recant::Kind::Conflict => 3,
                recant::Kind::LeftOut => 4,
                recant::Kind::Damaged => 5,
                recant::Kind::Busy => 6,
                _ => 7,
            },
        }
    }

    /// A session that holds "new" for a file of "old"; gives its id.
    pub fn edited(&self, name: &str) -> String {
        self.write(name, "old");
        let id = self.begin();
        self.stage_write(&id, name, "new");
        id
    }

    /// Replaces ids, times and the world's directory in a text, as in what a run says.
    pub fn mask(&self, text: &str) -> String {
        self.masks.lock().expect("no panic").mask(text)
    }
}

enum Staged {
    Write(String),
    Delete,
    Mkdir,
    Chmod(u32),
    Symlink(String),
}

impl Staged {
    fn content(&self) -> &[u8] {
        if let Self::Write(content) = self { content.as_bytes() } else { &[] }
    }
}

/// Lines of [`World::stage`] as the library takes them.
struct Edits<'w> {
    world: &'w World,
    /// Whether what was staged for a path is a directory.
    seen: BTreeMap<PathBuf, bool>,
    edits: Vec<(PathBuf, Staged)>,
}

impl Edits<'_> {
    fn add(&mut self, line: &str) {
        let words: Vec<&str> = line.splitn(3, ' ').collect();
        let (name, edit) = match words[..] {
            ["write", name, content] => (name, Staged::Write(content.into())),
            ["delete", name] => (name, Staged::Delete),
            ["mkdir", name] => (name, Staged::Mkdir),
            ["chmod", mode, name] => (name, Staged::Chmod(u32::from_str_radix(mode, 8).expect("an octal mode"))),
            ["symlink", target, name] => (name, Staged::Symlink(target.into())),
            _ => panic!("{line}: not staged"),
        };
        let path = self.world.path(name);
        for above in path.ancestors().skip(1).collect::<Vec<_>>().into_iter().rev() {
            if !self.is_directory(above) {
                self.make_way(above);
                self.push(above.to_owned(), Staged::Mkdir);
            }
        }
        // A file takes the place of anything but a directory, a directory that of nothing.
        if matches!(edit, Staged::Mkdir) || matches!(edit, Staged::Write(_) | Staged::Symlink(_)) && self.is_directory(&path) {
            self.make_way(&path);
        }
        self.push(path, edit);
    }

    fn is_directory(&self, path: &Path) -> bool {
        self.seen.get(path).copied().unwrap_or_else(|| path.symlink_metadata().is_ok_and(|meta| meta.is_dir()))
    }

    fn make_way(&mut self, path: &Path) {
        if self.seen.contains_key(path) || path.symlink_metadata().is_ok() {
            self.push(path.to_owned(), Staged::Delete);
        }
    }

    fn push(&mut self, path: PathBuf, edit: Staged) {
        if !matches!(edit, Staged::Chmod(_)) {
            self.seen.insert(path.clone(), matches!(edit, Staged::Mkdir));
        }
        self.edits.push((path, edit));
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

impl World {
    /// A session's status, as `show` has it.
    #[track_caller]
    pub fn status(&self, id: &str) -> String {
        let shown = self.call(["show", id, "--json"]).run().ok().json();
        shown["session"]["status"].as_str().expect("a status").to_owned()
    }

    /// The names under the tree that are recant's own.
    pub fn leftovers(&self) -> Vec<String> {
        let ours = |path: &Vec<u8>| path.windows(8).any(|part| part == b".recant-");
        self.manifest().0.into_keys().filter(ours).map(|path| path.escape_ascii().to_string()).collect()
    }

    /// The names in the store's directory of journals.
    pub fn journals(&self) -> Vec<String> {
        let store = self.vars.get(OsStr::new("RECANT_STORE")).map_or_else(|| self.store(), PathBuf::from);
        let names = std::fs::read_dir(store.join("journals")).expect("the journals");
        names.map(|name| name.expect("a name").file_name().to_string_lossy().into_owned()).collect()
    }

    /// The names in the store's directory of runs on the real tree.
    pub fn running(&self) -> Vec<String> {
        let store = self.vars.get(OsStr::new("RECANT_STORE")).map_or_else(|| self.store(), PathBuf::from);
        let Ok(names) = std::fs::read_dir(store.join("running")) else { return Vec::new() };
        names.map(|name| name.expect("a name").file_name().to_string_lossy().into_owned()).collect()
    }

    /// Ends the test where recant left a temporary name in the tree, a journal or the record of a run on the real tree.
    #[track_caller]
    pub fn assert_tidy(&self, what: &str) {
        assert_eq!(self.leftovers(), Vec::<String>::new(), "{what}: temporary names");
        assert_eq!(self.journals(), Vec::<String>::new(), "{what}: journals");
        assert_eq!(self.running(), Vec::<String>::new(), "{what}: runs");
    }
}

/// An operation that met a full disk has been done in full, or not at all, and its status says which.
#[track_caller]
pub fn assert_done_or_not(said: &Said, world: &World, before: &Manifest, after: &Manifest) {
    match said.status {
        0 => before.assert_same(&world.manifest(), "done"),
        1 => after.assert_same(&world.manifest(), &format!("{said}")),
        status => panic!("{status}: {said}"),
    }
}

/// Whether the tests run as root: says so as a skip of `what` where they do not.
pub fn is_root(what: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        println!("skipped: {what}: only root can set it up");
    }
    root
}

/// A run that is not started yet.
pub struct Call {
    command: Command,
    stdin: Vec<u8>,
    masks: Arc<Mutex<Masks>>,
}

impl Call {
    /// What it reads from standard input.
    pub fn stdin(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.stdin = bytes.as_ref().to_vec();
        self
    }

    /// Another working directory.
    pub fn cwd(mut self, directory: impl AsRef<Path>) -> Self {
        self.command.current_dir(directory);
        self
    }

    /// One more variable.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// One variable less.
    pub fn without(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// As another user and group; root alone may.
    pub fn user(mut self, uid: u32, gid: u32) -> Self {
        use std::os::unix::process::CommandExt;
        self.command.uid(uid).gid(gid);
        self
    }

    /// The command itself, for a test that starts it in its own way.
    pub fn command(self) -> Command {
        self.command
    }

    /// Runs it to its end.
    pub fn run(mut self) -> Said {
        let mut child =
            self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let mut input = child.stdin.take().expect("a pipe");
        let bytes = std::mem::take(&mut self.stdin);
        // A command that ends without reading closes the pipe: no failure of the test.
        let feed = std::thread::spawn(move || drop(input.write_all(&bytes)));
        let mut errors = child.stderr.take().expect("a pipe");
        let listen = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            errors.read_to_end(&mut bytes).map(|_| bytes)
        });
        let mut out = Vec::new();
        child.stdout.take().expect("a pipe").read_to_end(&mut out).expect("its output");
        let err = listen.join().expect("no panic").expect("its messages");
        feed.join().expect("no panic");
        let status = child.wait().expect("its end");
        let mut masks = self.masks.lock().expect("no panic");
        let masked = [&out, &err].map(|bytes| masks.mask(&String::from_utf8_lossy(bytes)));
        Said { out, err, status: status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)), masked }
    }
}

/// What a run said, and how it ended. Its `Display` is for snapshots: status, standard output, standard error, masked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// Standard output.
    pub out: Vec<u8>,
    /// Standard error.
    pub err: Vec<u8>,
    /// The exit status; 128 + n where signal n ended it.
    pub status: i32,
    masked: [String; 2],
}

impl Said {
    /// Itself, where it ended with 0; else the test ends with all that was said.
    #[track_caller]
    pub fn ok(self) -> Self {
        self.with(0)
    }

    /// Itself, where it ended with this status; else the test ends with all that was said.
    #[track_caller]
    pub fn with(self, status: i32) -> Self {
        assert_eq!(self.status, status, "status {status} was expected:\n{self}");
        self
    }

    /// Standard output as text, unmasked.
    #[track_caller]
    pub fn stdout(&self) -> String {
        String::from_utf8(self.out.clone()).expect("output that is UTF-8")
    }

    /// Standard error as text, unmasked.
    #[track_caller]
    pub fn stderr(&self) -> String {
        String::from_utf8(self.err.clone()).expect("messages that are UTF-8")
    }

    /// Standard error as text, whatever bytes it holds.
    pub fn stderr_lossy(&self) -> String {
        String::from_utf8_lossy(&self.err).into_owned()
    }

    /// Standard output masked.
    pub fn masked_out(&self) -> &str {
        &self.masked[0]
    }

    /// Standard error masked.
    pub fn masked_err(&self) -> &str {
        &self.masked[1]
    }

    /// Standard output without the last newline: an id.
    #[track_caller]
    pub fn id(&self) -> String {
        self.stdout().trim_end_matches('\n').to_owned()
    }

    /// Standard output as one JSON value.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.out).unwrap_or_else(|error| panic!("no JSON ({error}):\n{self}"))
    }

    /// Standard error as one JSON value.
    #[track_caller]
    pub fn json_err(&self) -> serde_json::Value {
        serde_json::from_slice(&self.err).unwrap_or_else(|error| panic!("no JSON ({error}):\n{self}"))
    }

    /// The paths that stand against what was to be done, as an error in JSON names them, sorted.
    #[track_caller]
    pub fn against(&self) -> Vec<String> {
        let error = self.json_err();
        let several = error["paths"].as_array().map(|rows| rows.iter().map(|row| row["path"].clone()).collect());
        let one = || error["path"].as_str().map(|path| vec![path.into()]);
        let paths: Vec<serde_json::Value> = several.or_else(one).unwrap_or_default();
        let mut paths: Vec<String> = paths.iter().map(|path| path.as_str().expect("a path").to_owned()).collect();
        paths.sort();
        paths
    }

    /// The items of the list that the document on standard output is about: its first key that has one.
    #[track_caller]
    pub fn rows(&self) -> Vec<serde_json::Value> {
        const LISTS: [&str; 9] =
            ["sessions", "snapshots", "settings", "steps", "entries", "originals", "conflicts", "changes", "paths"];
        let document = self.json();
        LISTS.iter().find_map(|key| document[*key].as_array()).unwrap_or_else(|| panic!("no list: {self}")).clone()
    }

    /// Standard output as one JSON value a line.
    #[track_caller]
    pub fn json_lines(&self) -> Vec<serde_json::Value> {
        self.stdout().lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "status {}", self.status)?;
        for (name, text) in [("stdout", &self.masked[0]), ("stderr", &self.masked[1])] {
            if !text.is_empty() {
                write!(f, "--- {name}\n{text}")?;
            }
        }
        Ok(())
    }
}

struct Masks {
    root: PathBuf,
    ids: Vec<String>,
}

impl Masks {
    fn mask(&mut self, text: &str) -> String {
        let root = self.root.to_string_lossy().trim_start_matches('/').to_owned();
        let mut text = text.replace(&root, "world");
        let mut at = 0;
        while at + 20 <= text.len() {
            if text.is_char_boundary(at) && text.is_char_boundary(at + 20) && is_id(&text[at..at + 20]) {
                let id = text[at..at + 20].to_owned();
                if !self.ids.contains(&id) {
                    self.ids.push(id);
                }
                at += 20;
            } else {
                at += 1;
            }
        }
        for (n, id) in self.ids.iter().enumerate() {
            text = text.replace(id, &format!("<id{}>", n + 1));
            text = replace_words(&text, &id[16..], &format!("<id{}~>", n + 1));
        }
        mask_times(&text)
    }
}

fn is_id(text: &str) -> bool {
    let shape = text.bytes().map(|b| match b {
        b'0'..=b'9' => b'0',
        b'a'..=b'z' => b'a',
        other => other,
    });
    let shape: Vec<u8> = shape.collect();
    shape.starts_with(b"00000000-000000-") && shape[16..].iter().all(|b| b"0a".contains(b))
}

/// Replaces `word` where it stands alone.
fn replace_words(text: &str, word: &str, with: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let end = at + word.len();
        let part = |c: char| c.is_ascii_alphanumeric() || "-_./~>".contains(c);
        let alone =
            !rest[..at].ends_with(part) && !rest[end..].starts_with(|c: char| c.is_ascii_alphanumeric() || "-_/".contains(c));
        out.push_str(&rest[..at]);
        out.push_str(if alone { with } else { word });
        rest = &rest[end..];
    }
    out + rest
}

/// `2026-03-01 10:15:00`, `2026-03-01 10:15`, `at 10:15` and RFC 3339 become `<time>`.
fn mask_times(text: &str) -> String {
    const SHAPES: [&str; 4] = ["0000-00-00T00:00:00.000000000Z", "0000-00-00 00:00:00", "0000-00-00 00:00", "at 00:00"];
    let bytes = text.as_bytes();
    let fits = |at: usize, shape: &str| {
        bytes.len() >= at + shape.len()
            && shape.bytes().zip(&bytes[at..]).all(|(want, got)| if want == b'0' { got.is_ascii_digit() } else { want == *got })
    };
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match SHAPES.into_iter().find(|shape| fits(at, shape)) {
            Some(shape) => {
                out.extend_from_slice(if shape.starts_with("at ") { b"at <time>" } else { b"<time>" });
                at += shape.len();
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8(out).expect("ASCII was replaced by ASCII")
}

/// The exact state of all that lies under a directory, the directory itself (as `.`) included, by path.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Manifest(pub BTreeMap<Vec<u8>, Row>);

/// The state of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Its kind, with what makes up its content: bytes or their count and hash, target, device number.
    pub content: String,
    /// Permission bits.
    pub mode: u32,
    /// Owner and group.
    pub owner: (u32, u32),
    /// mtime: seconds, ns.
    pub mtime: (i64, i64),
    /// Names and values, sorted. ACLs and capabilities are among them.
    pub xattrs: Vec<(Vec<u8>, Vec<u8>)>,
    /// The first path of the hard-link group, for an object with several names.
    pub group: Option<Vec<u8>>,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04o} {}:{} {}.{:09}", self.mode, self.owner.0, self.owner.1, self.mtime.0, self.mtime.1)?;
        for (name, value) in &self.xattrs {
            write!(f, " {}={}", name.escape_ascii(), value.escape_ascii())?;
        }
        if let Some(group) = &self.group {
            write!(f, " group {}", group.escape_ascii())?;
        }
        write!(f, " {}", self.content)
    }
}

impl fmt::Display for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(path, row)| writeln!(f, "{} {row}", path.escape_ascii()))
    }
}

impl fmt::Debug for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Manifest {
    /// Ends the test with the rows that differ, if any do.
    #[track_caller]
    pub fn assert_same(&self, other: &Manifest, what: &str) {
        let difference = self.difference(other);
        assert!(difference.is_empty(), "{what}:\n{difference}");
    }

    /// A line for each row that differs: `-` as here, `+` as in `other`. Empty where nothing does.
    pub fn difference(&self, other: &Manifest) -> String {
        let mut paths: Vec<&Vec<u8>> = self.0.keys().chain(other.0.keys()).collect();
        paths.sort();
        paths.dedup();
        let mut text = String::new();
        for path in paths {
            let (a, b) = (self.0.get(path), other.0.get(path));
            if a != b {
                let mut add = |sign, row: Option<&Row>| {
                    if let Some(row) = row {
                        text.push_str(&format!("{sign} {} {row}\n", path.escape_ascii()));
                    }
                };
                add('-', a);
                add('+', b);
            }
        }
        text
    }

    /// The same without mtimes: for what was made at different times.
    pub fn without_times(mut self) -> Self {
        self.0.values_mut().for_each(|row| row.mtime = (0, 0));
        self
    }

    /// The same without the mtimes of directories: for what happened beside them.
    pub fn without_directory_times(mut self) -> Self {
        for row in self.0.values_mut().filter(|row| row.content == "directory") {
            row.mtime = (0, 0);
        }
        self
    }
}

/// The exact state of all that lies under `top`. Reads by plain paths, apart from recant: an independent witness.
pub fn manifest(top: &Path) -> Manifest {
    let mut rows = BTreeMap::new();
    let mut groups: BTreeMap<(u64, u64), Vec<Vec<u8>>> = BTreeMap::new();
    let mut todo = vec![(PathBuf::from("."), top.to_path_buf())];
    while let Some((below, path)) = todo.pop() {
        let meta = path.symlink_metadata().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let kind = meta.file_type();
        let key = below.as_os_str().as_bytes().to_vec();
        if kind.is_dir() {
            for entry in std::fs::read_dir(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())) {
                let name = entry.expect("a name in the directory").file_name();
                let child = if below == Path::new(".") { PathBuf::from(&name) } else { below.join(&name) };
                todo.push((child, path.join(&name)));
            }
        } else if meta.nlink() > 1 {
            groups.entry((meta.dev(), meta.ino())).or_default().push(key.clone());
        }
        let content = if kind.is_file() {
            let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            file_content(&bytes)
        } else if kind.is_symlink() {
            let target = std::fs::read_link(&path).expect("a link's target").into_os_string().into_vec();
            format!("link to {}", target.escape_ascii())
        } else if kind.is_dir() {
            "directory".into()
        } else if kind.is_fifo() {
            "fifo".into()
        } else if kind.is_socket() {
            "socket".into()
        } else {
            format!("device {:x} {}", meta.rdev(), kind.is_block_device())
        };
        let row = Row {
            content,
            mode: meta.mode() & 0o7777,
            owner: (meta.uid(), meta.gid()),
            mtime: (meta.mtime(), meta.mtime_nsec()),
            xattrs: xattrs(&path),
            group: None,
        };
        rows.insert(key, row);
    }
    for mut paths in groups.into_values() {
        paths.sort();
        for path in &paths {
            rows.get_mut(path).expect("a row for each path").group = Some(paths[0].clone());
        }
    }
    Manifest(rows)
}

fn file_content(bytes: &[u8]) -> String {
    if bytes.len() <= 64 {
        return format!("file \"{}\"", bytes.escape_ascii());
    }
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("file of {} bytes, hash {:016x}", bytes.len(), hasher.finish())
}

/// Names and values, sorted; none where they cannot be read.
pub fn xattrs(path: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut names = vec![0; 64 << 10];
    let Ok(length) = rustix::fs::llistxattr(path, &mut names[..]) else { return Vec::new() };
    let mut found = Vec::new();
    for name in names[..length].split(|b| *b == 0).filter(|name| !name.is_empty()) {
        let mut value = vec![0; 64 << 10];
        let length = rustix::fs::lgetxattr(path, name, &mut value[..]).expect("an xattr that was just listed");
        found.push((name.to_vec(), value[..length].to_vec()));
    }
    found.sort();
    found
}

/// A name from bytes that need not be UTF-8.
pub fn name(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
}

/// One row of the table of ways out of a run, which `tests/run.py` prints at its end: who tried it on which road, and what became of it
/// ("closed", "said: where").
pub fn way(way: &str, who: impl std::fmt::Debug, road: &str, outcome: &str) {
    eprintln!("way: {way} | {who:?} | {road} | {outcome}");
}

/// Who runs the tests.
pub fn this_user() -> &'static str {
    if rustix::process::geteuid().is_root() { "Root" } else { "User" }
}

/// A directory on another file system than that of [`World::new`]; where there is none, that is said.
pub fn elsewhere() -> Option<TempDir> {
    let dev = |path: &Path| path.metadata().map(|meta| meta.dev()).ok();
    let here = dev(&std::env::temp_dir());
    let other = |path: &&str| dev(Path::new(path)).is_some_and(|dev| Some(dev) != here);
    let found = ["/dev/shm", "/var/tmp"].iter().find(|path| other(path)).and_then(|path| tempfile::tempdir_in(path).ok());
    if found.is_none() {
        skip("two file systems: /dev/shm is none of its own");
    }
    found
}

/// Says that a test cannot run here, and why.
pub fn skip(why: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    eprintln!("skipped: {test}: {why}");
}

/// Waits for what is about to be, half a minute at most.
#[track_caller]
pub fn until(what: &str, mut is: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !is() {
        assert!(Instant::now() < end, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// An output on which every write fails: no space left.
pub fn full() -> std::fs::File {
    std::fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full")
}

/// Whether a command can be captured here at all; says so where not.
pub fn can_run() -> bool {
    let said = World::new().recant("run -- true");
    if said.status == 125 {
        skip(&format!("no capture here: {}", said.stderr().trim()));
    }
    said.status != 125
}
