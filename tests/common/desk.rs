//! A world of root or of an ordinary user in which the binary runs commands with their changes held: for the tests of `run`.
//! A file of its own beside `common`: `#[path = "common/desk.rs"] mod desk;`

#![allow(dead_code, reason = "each test binary uses a part of the fixture")]
#![allow(clippy::print_stdout, reason = "what is skipped is said")]
#![expect(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests set up real files")]

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, SystemTime};

use crate::common::{Call, Manifest, Said, World, recant};

/// An ordinary user that needs no line in /etc/passwd.
pub const USER: u32 = 54_321;

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Who {
    Root,
    User,
}

/// A world of one user, who runs the binary in it.
pub struct Desk {
    pub world: World,
    pub who: Who,
    pub binary: PathBuf,
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Both users where there can be two; what is left out is said.
pub fn each(test: impl Fn(&Desk)) {
    if is_root() {
        test(&Desk::new(Who::Root));
    } else {
        eprintln!("skipped: the half of root (the tests do not run as root)");
    }
    test(&Desk::new(Who::User));
}

impl Desk {
    pub fn new(who: Who) -> Self {
        Self::of(who, World::new())
    }

    /// With a world below `directory`.
    pub fn on(who: Who, directory: &Path) -> Self {
        Self::of(who, World::on(directory))
    }

    /// The desk of a user in this world.
    pub fn of(who: Who, world: World) -> Self {
        let built = PathBuf::from(recant());
        let mut binary = built.clone();
        if who == Who::User && is_root() && std::env::var_os("RECANT_BINARY").is_none() {
            // The build directory may not be open to the other user.
            binary = world.root().join("recant");
            // By a program of its own: a copy that is open here for writing while another thread forks is 'text file busy'.
            assert!(std::process::Command::new("cp").arg(&built).arg(&binary).status().unwrap().success());
        }
        let desk = Self { world, who, binary };
        if desk.other() {
            std::fs::set_permissions(desk.world.root(), std::fs::Permissions::from_mode(0o755)).unwrap();
            let owner = format!("{USER}:{USER}");
            let root = desk.world.root();
            assert!(std::process::Command::new("chown").args(["-hR", &owner]).arg(root).status().unwrap().success());
        }
        desk
    }

    /// Whether the world's user is another one than the tests'.
    pub fn other(&self) -> bool {
        self.who == Who::User && is_root()
    }

    pub fn give(&self, call: Call) -> Call {
        if self.other() { call.user(USER, USER) } else { call }
    }

    pub fn call<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Call {
        self.give(self.world.program(&self.binary, words))
    }

    pub fn recant(&self, words: &str) -> Said {
        self.call(words.split_whitespace()).run()
    }

    /// Options, and a script that sh runs with its changes held.
    pub fn held(&self, options: &str, script: &str) -> Call {
        self.call([&["run"], &*options.split_whitespace().collect::<Vec<_>>(), &["--", "sh", "-c", script]].concat())
    }

    pub fn run(&self, script: &str) -> Said {
        self.held("", script).run()
    }

    /// Runs a script in a directory, bare, as the world's user.
    pub fn bare(&self, directory: &Path, script: &str) {
        self.give(self.world.program("sh", ["-ec", script])).cwd(directory).run().ok();
    }

    /// Makes the tree's files, as the world's user.
    pub fn made(&self, script: &str) -> Manifest {
        self.bare(&self.world.tree(), script);
        self.world.manifest()
    }

    /// The same, and waits until its last change is too old for a run to take it for one of its own start: then no hash is held of it.
    pub fn made_before(&self, script: &str, path: &str) -> Manifest {
        let made = self.made(script);
        let changed = std::fs::metadata(self.world.path(path)).unwrap();
        let since = Duration::new(changed.ctime().unsigned_abs(), u32::try_from(changed.ctime_nsec()).unwrap());
        let changed = SystemTime::UNIX_EPOCH + since;
        crate::common::until("a file that is old enough", || changed.elapsed().is_ok_and(|age| age > Duration::from_millis(20)));
        made
    }

    /// The sessions, the oldest first.
    pub fn ids(&self) -> Vec<String> {
        let said = self.recant("list --all --json").ok();
        // The newest comes first in a listing.
        said.rows().iter().rev().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
    }

    /// A script that this user can do: a file that its owner may not read can be kept by root alone.
    pub fn fitting(&self, script: &str) -> String {
        if self.who == Who::Root { script.to_owned() } else { script.replace("chmod 0 ", "chmod 400 ") }
    }

    /// A copy of the tree beside it.
    pub fn copy(&self) -> PathBuf {
        let copy = self.world.root().join("copy");
        assert!(std::process::Command::new("cp").arg("-a").arg(self.world.tree()).arg(&copy).status().unwrap().success());
        copy
    }

    /// The one session that there is.
    pub fn id(&self) -> String {
        match &self.ids()[..] {
            [id] => id.clone(),
            ids => panic!("one session was expected: {ids:?}"),
        }
    }

    pub fn status(&self, id: &str) -> String {
        let said = self.recant(&format!("show {id} --json")).ok();
        said.json()["session"]["status"].as_str().unwrap().to_owned()
    }

    /// The paths below the tree that a session holds.
    pub fn paths(&self, id: &str) -> Vec<String> {
        let said = self.recant(&format!("diff {id} --name-only")).ok();
        let tree = format!("{}/", self.world.tree().display());
        let paths = said.stdout();
        let mut paths: Vec<String> = paths
            .lines()
            .map(|path| path.strip_prefix(&*tree).or(path.strip_prefix(&tree[1..])).unwrap_or(path).to_owned())
            .collect();
        paths.sort();
        paths
    }

    /// Starts a script that is held and that says `ready` and waits for a line.
    pub fn start(&self, options: &str, script: &str) -> Waiting {
        let mut command = self.held(options, script).command();
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        if line != "ready\n" {
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            panic!("{:?}: it did not start: {said}", self.who);
        }
        Waiting { child, _out: out }
    }

    /// Runs a script, does something to the real tree before it has ended, and lets it end well. Gives its session.
    pub fn meanwhile(&self, script: &str, outside: &str) -> String {
        let waiting = self.start("", &format!("{script}; echo ready; read go"));
        self.bare(&self.world.tree(), outside);
        waiting.go();
        let ids = self.ids();
        ids.last().unwrap_or_else(|| panic!("no session of: {script}")).clone()
    }
}

/// A held command that waits.
pub struct Waiting {
    pub child: Child,
    _out: BufReader<std::process::ChildStdout>,
}

impl Waiting {
    pub fn go(mut self) {
        self.child.stdin.take().unwrap().write_all(b"go\n").unwrap();
        assert!(self.child.wait().unwrap().success());
    }

    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

pub fn has(program: &str) -> bool {
    let found = std::env::split_paths("/usr/local/bin:/usr/bin:/bin").any(|directory| directory.join(program).exists());
    if !found {
        eprintln!("skipped: {program} is not installed");
    }
    found
}

/// The same with all times after `since` being one, and without the groups whose other names are kept in a checkpoint.
pub fn settled(mut manifest: Manifest, since: SystemTime) -> Manifest {
    let since = since.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let groups: Vec<_> = manifest.0.values().filter_map(|row| row.group.clone()).collect();
    for row in manifest.0.values_mut() {
        row.group.take_if(|group| groups.iter().filter(|other| *other == group).count() == 1);
        if row.mtime >= (i64::try_from(since.as_secs()).unwrap(), i64::from(since.subsec_nanos())) {
            row.mtime = (i64::MAX, 0);
        }
    }
    manifest
}
