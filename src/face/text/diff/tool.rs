//! `diff --tool`: copies of the files and links that differ in two directories, for a program that compares them.
//!
//! The copies lie in a directory of their own, which nobody else can read, and are removed when the program ends. Each is made anew, in a
//! directory that is held open, below that one: nothing is written elsewhere, wherever a copied link leads to, and a program that writes to
//! a copy changes nothing in the store.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use crate::compare::{Half, View};
use crate::error::{At, Error, IoError, command};
use crate::face::call::Call;
use crate::face::figures;
use crate::fs::{AbsPath, Dir, Entry, Fs, Noting, OnSignal, interrupt};

/// A program with a name that stands for more than itself.
struct Known {
    name: &'static str,
    command: &'static str,
    /// True if it compares two files, and no directories.
    by_file: bool,
}

const KNOWN: [Known; 4] = [
    Known { name: "difft", command: "difft", by_file: false },
    Known { name: "meld", command: "meld", by_file: false },
    Known { name: "vimdiff", command: "vimdiff -R", by_file: true },
    Known { name: "nvimdiff", command: "nvim -d -R", by_file: true },
];

/// The time between two looks at a program that runs.
const LOOK: Duration = Duration::from_millis(50);

/// The directories of the two sides.
const SIDES: [&[u8]; 2] = [b"old", b"new"];

/// A program, and the copies that it gets.
pub struct Tool<'c> {
    call: &'c Call,
    name: String,
    command: String,
    by_file: bool,
    copies: Copies<'c>,
    /// The files, for a program that compares them one by one: the path, and the sides that have it.
    files: Vec<(AbsPath, [bool; 2])>,
    copied: u64,
    /// Paths without content that can be shown.
    left: u64,
    _noting: Noting,
}

impl<'c> Tool<'c> {
    /// Makes the directories. `name` is the one of the call; else it is that of the settings.
    pub fn begin(call: &'c Call, name: Option<&str>) -> Result<Self, Error> {
        let name = named(call, name).to_owned();
        let known = KNOWN.iter().find(|known| known.name == name);
        let command = known.map_or(&*name, |known| known.command).to_owned();
        let by_file = known.is_some_and(|known| known.by_file);
        // A signal ends it, but not before the copies are removed.
        let noting = interrupt::note(OnSignal::GoesOn);
        let copies = Copies::begin(call)?;
        Ok(Self { call, name, command, by_file, copies, files: Vec::new(), copied: 0, left: 0, _noting: noting })
    }

    pub fn add(&mut self, view: &View<'_>) -> Result<(), Error> {
        go_on()?;
        let halves = [&view.old, &view.new];
        let has_content = halves.map(|half| half.mode().is_some() && half.bytes().is_some());
        let is_shown = view.whole && has_content.contains(&true);
        // A program for files would show the file that a link leads to.
        if !is_shown || self.by_file && halves.iter().any(|half| half.mode() == Some(LINK)) {
            self.left += 1;
            return Ok(());
        }
        for (side, half) in self.copies.sides.iter().zip(halves) {
            if let (Half::Blob { mode, .. }, Some(bytes)) = (half, half.bytes()) {
                add(&self.call.fs, side, view.path, mode, bytes)?;
            }
        }
        self.copied += 1;
        if self.by_file {
            self.files.push((view.path.clone(), has_content));
        }
        Ok(())
    }

    /// Runs the program on the copies. The command `patch` shows what it cannot.
    pub fn run(self, patch: &str) -> Result<(), Error> {
        if self.left > 0 {
            let paths = figures::count(self.left, "path");
            self.call.out.note(format_args!("{paths} with no content that a tool could show: see {patch}"));
        }
        if self.copied == 0 {
            return Ok(());
        }
        if !self.by_file {
            return self.compare([0, 1].map(|side| self.copies.path(side, None))).map(drop);
        }
        for (path, is_there) in &self.files {
            let at = |side: usize| match is_there[side] {
                true => self.copies.path(side, Some(path)),
                false => PathBuf::from("/dev/null"),
            };
            if !self.compare([0, 1].map(at))?.success() {
                break;
            }
        }
        Ok(())
    }

    /// Runs the program once. Errors: it cannot be run; recant was asked to end.
    fn compare(&self, [old, new]: [PathBuf; 2]) -> Result<ExitStatus, Error> {
        let names_them = ["$OLD", "${OLD", "$NEW", "${NEW"].iter().any(|name| self.command.contains(name));
        let line = if names_them { self.command.clone() } else { format!("{} \"$OLD\" \"$NEW\"", self.command) };
        self.call.out.flush();
        let child = crate::fs::command("/bin/sh").arg("-c").arg(line).env("OLD", old).env("NEW", new).spawn();
        let status = wait(child.at("run", &self.name)?).at("wait for", &self.name)?;
        go_on()?;
        match status.code() {
            Some(126 | 127) => {
                let problem = Error::refused(format!("{}: the tool cannot be run", self.name));
                Err(problem.with_remedy("install it, or name another: --tool NAME, or diff.tool in the settings"))
            }
            _ => Ok(status),
        }
    }
}

/// The program of the call, or of the settings; empty if there is none.
fn named<'n>(call: &'n Call, name: Option<&'n str>) -> &'n str {
    name.or(call.config.diff_tool.value.as_deref()).unwrap_or_default().trim()
}

/// Refuses a call for which no program can be run.
pub fn refuse(call: &Call, name: Option<&str>) -> Result<(), Error> {
    let (message, remedy) = match () {
        () if !call.out.is_text() => ("a tool shows no JSON", command("diff --json") + " shows the changes"),
        () if call.is_far => ("a tool runs on this machine alone, without -H", command("diff") + " prints the patch"),
        () if named(call, name).is_empty() => (
            "no tool is named, and diff.tool is not set",
            command("diff --tool meld") + "; " + command("config --help") + " tells of the setting",
        ),
        () => return Ok(()),
    };
    Err(Error::usage(message).with_remedy(remedy))
}

/// The mode of a link, for git.
const LINK: &str = "120000";

/// Ends the call once a signal asked for it. Ctrl-C is the program's.
fn go_on() -> Result<(), Error> {
    match interrupt::signal_received().filter(|signal| *signal != "SIGINT") {
        Some(signal) => Err(Error::refused(format!("stopped by {signal}"))),
        None => Ok(()),
    }
}

/// Waits for a program, and ends it with recant.
fn wait(mut child: Child) -> std::io::Result<ExitStatus> {
    let mut is_told = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if go_on().is_err() && !std::mem::replace(&mut is_told, true) {
            let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
            // It may have ended meanwhile.
            _ = pid.map(|pid| rustix::process::kill_process(pid, rustix::process::Signal::TERM));
        }
        std::thread::sleep(LOOK);
    }
}

/// The directory of the copies. It is removed at the end.
struct Copies<'c> {
    call: &'c Call,
    above: Dir,
    name: Vec<u8>,
    /// The directories of the two sides.
    sides: [Dir; 2],
}

impl<'c> Copies<'c> {
    fn begin(call: &'c Call) -> Result<Self, Error> {
        let temporary = std::env::var_os("TMPDIR").filter(|path| !path.is_empty()).map_or_else(|| "/tmp".into(), PathBuf::from);
        let path = std::path::absolute(&temporary).at("open the directory for temporary files", temporary.display())?;
        let above = Dir::open(&path)?;
        let name = format!("recant-diff-{}-{}", std::process::id(), crate::fs::now().ns).into_bytes();
        // An error if the name is taken: it may be somebody's.
        call.fs.mkdir(above.at(&name), 0o700)?;
        match Self::sides(call, above.at(&name)) {
            Ok(sides) => Ok(Self { call, above, name, sides }),
            Err(error) => {
                drop(call.fs.remove_all(above.at(&name)));
                Err(error.into())
            }
        }
    }

    /// Makes the directories of the two sides.
    fn sides(call: &Call, at: Entry<'_>) -> Result<[Dir; 2], IoError> {
        let directory = at.open_dir()?;
        let [old, new] = SIDES.map(|name| {
            let at = directory.at(name);
            call.fs.mkdir(at, 0o700)?;
            at.open_dir()
        });
        Ok([old?, new?])
    }

    /// The path of a side, or of a copy on it.
    fn path(&self, side: usize, copy: Option<&AbsPath>) -> PathBuf {
        let below = copy.map_or(&b""[..], AbsPath::as_bytes);
        PathBuf::from(OsString::from_vec([self.sides[side].path().as_os_str().as_encoded_bytes(), below].concat()))
    }
}

/// Copies a file or link to a side, with the directories above it.
fn add(fs: &Fs, side: &Dir, path: &AbsPath, mode: &str, bytes: &[u8]) -> Result<(), Error> {
    let mut dir = side.again()?;
    let mut names = path.as_bytes()[1..].split(|byte| *byte == b'/').peekable();
    while let Some(name) = names.next() {
        let at = dir.at(name);
        if names.peek().is_some() {
            let opened = match at.open_dir() {
                Err(error) if error.kind() == ErrorKind::NotFound => fs.mkdir(at, 0o700).and_then(|()| at.open_dir()),
                opened => opened,
            };
            dir = opened?;
        } else if mode == LINK {
            fs.symlink(bytes, at)?;
        } else {
            let file = fs.create(at, if mode == "100755" { 0o500 } else { 0o400 })?;
            fs.write(&file, bytes, at)?;
        }
    }
    Ok(())
}

impl Drop for Copies<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.call.fs.remove_all(self.above.at(&self.name)) {
            self.call.out.warn(format_args!("the copies for the tool are left: {error}"));
        }
    }
}
