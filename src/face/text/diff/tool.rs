//! `diff --tool`: copies of the files and links that differ in two directories, for a program that compares them.
//!
//! The copies lie in a directory of their own, which nobody else can read, and are removed when the program ends. Each is made anew, in a
//! directory that is held open, below that one: nothing is written elsewhere, wherever a copied link leads to, and a program that writes to
//! a copy changes nothing in the store. What it has written to the copies of held files is read in the same way at its end, and becomes a
//! step of the session.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::Duration;

use crate::compare::{Half, View};
use crate::error::{At, Error, IoError, Reason, command, shell_word};
use crate::face::call::Call;
use crate::face::figures;
use crate::face::out::Out;
use crate::fs::{AbsPath, Dir, Entry, Fs, Noting, OnSignal, interrupt};
use crate::session::{Arg, Id};
use crate::tree::Hash;
use crate::verb::error::too_large_to_edit;
use crate::verb::{Compared, HeldEdit, HeldEdited, Pair, held_edit};

/// A program with a name that stands for more than itself.
struct Known {
    name: &'static str,
    command: &'static str,
    /// The option for copies of which none may be written to.
    read_only: &'static str,
    /// True if it compares two files, and no directories.
    by_file: bool,
}

const KNOWN: [Known; 4] = [
    Known { name: "difft", command: "difft", read_only: "", by_file: false },
    Known { name: "meld", command: "meld", read_only: "", by_file: false },
    Known { name: "vimdiff", command: "vimdiff", read_only: " -R", by_file: true },
    Known { name: "nvimdiff", command: "nvim -d", read_only: " -R", by_file: true },
];

/// The time between two looks at a program that runs.
const LOOK: Duration = Duration::from_millis(50);

/// The directories of the two sides.
const SIDES: [&[u8]; 2] = [b"old", b"new"];

/// The side of a session that a program may write to.
pub struct Held {
    id: Id,
    /// The files that it may write to.
    paths: BTreeSet<AbsPath>,
}

impl Held {
    /// The held side of a comparison; `None` if nothing of it may be edited.
    pub fn of(call: &Call, compared: &Compared<'_>) -> Option<Self> {
        let Pair::Session(session) = compared.pair else { return None };
        let paths = held_edit::editable(call, session, &compared.changes);
        (!paths.is_empty()).then(|| Self { id: session.id().clone(), paths })
    }
}

/// The words for what a session holds from now on.
pub fn edited(out: &Out, edited: &HeldEdited) -> String {
    let files = match &edited.paths[..] {
        [one] => out.shown(one).to_string(),
        paths => figures::count(paths.len() as u64, "file"),
    };
    format!("session {} holds the edited {files}", edited.session.tail())
}

/// A program, and the copies that it gets.
pub struct Tool<'c> {
    call: &'c Call,
    name: String,
    command: String,
    by_file: bool,
    copies: Copies<'c>,
    held: Option<Held>,
    /// The copies that may be written to, with the hash of their content.
    open: Vec<(AbsPath, Hash)>,
    /// The copies on the held side.
    copied_held: BTreeSet<PathBuf>,
    /// The files, for a program that compares them one by one: the path, and the sides that have it.
    files: Vec<(AbsPath, [bool; 2])>,
    copied: u64,
    /// Paths without content that can be shown.
    left: u64,
    _noting: Noting,
}

impl<'c> Tool<'c> {
    /// Makes the directories. `name` is the one of the call; else it is that of the settings.
    pub fn begin(call: &'c Call, name: Option<&str>, held: Option<Held>) -> Result<Self, Error> {
        let name = named(call, name).to_owned();
        let known = KNOWN.iter().find(|known| known.name == name);
        let read_only = |known: &Known| if held.is_some() { "" } else { known.read_only };
        let command = known.map_or_else(|| name.clone(), |known| known.command.to_owned() + read_only(known));
        let by_file = known.is_some_and(|known| known.by_file);
        // A signal ends it, but not before the copies are removed.
        let noting = interrupt::note(OnSignal::GoesOn);
        let copies = Copies::begin(call)?;
        let (files, open, copied_held) = (Vec::new(), Vec::new(), BTreeSet::new());
        Ok(Self { call, name, command, by_file, copies, held, open, copied_held, files, copied: 0, left: 0, _noting: noting })
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
        let [old, new] = &self.copies.sides;
        let is_open = self.held.as_ref().is_some_and(|held| held.paths.contains(view.path));
        for (side, half, may_write) in [(old, &view.old, false), (new, &view.new, is_open)] {
            if let (Half::Blob { mode, .. }, Some(bytes)) = (half, half.bytes()) {
                add(&self.call.fs, side, view.path, (mode, may_write), bytes)?;
                if may_write {
                    self.open.push((view.path.clone(), Hash::of(bytes)));
                }
            }
        }
        self.copied_held.insert(self.copies.path(1, Some(view.path)));
        self.copied += 1;
        if self.by_file {
            self.files.push((view.path.clone(), has_content));
        }
        Ok(())
    }

    /// Runs the program on the copies. The command `patch` shows what it cannot. Returns what it wrote to the held side, once that is held.
    pub fn run(mut self, patch: &str) -> Result<Option<HeldEdited>, Error> {
        let shown = self.show(patch);
        let edits = self.edits();
        if let made @ 1.. = self.made() {
            self.copies.are_kept = true;
            let (files, at) = (figures::count(made, "file"), self.copies.path(1, None));
            let at = shell_word(at.as_os_str().as_encoded_bytes());
            self.call.out.warn(format_args!("{files} that the tool made: in no session, but kept in {at}"));
        }
        if edits.as_ref().is_ok_and(Vec::is_empty) {
            return shown.map(|()| None);
        }
        match shown.and(edits).and_then(|edits| self.hold(edits)) {
            Ok(edited) => Ok(edited),
            // What somebody wrote is not thrown away.
            Err(problem) => {
                self.copies.are_kept = true;
                let at = self.copies.path(1, None);
                let kept = format!("what was written is kept: {}", shell_word(at.as_os_str().as_encoded_bytes()));
                Err(problem.with_remedy(kept).with_reason(Reason::Kept))
            }
        }
    }

    fn hold(&self, edits: Vec<HeldEdit>) -> Result<Option<HeldEdited>, Error> {
        let Some(Held { id, .. }) = &self.held else { return Ok(None) };
        let words = [&b"recant"[..], b"diff", id.tail().as_bytes(), b"--tool", self.name.as_bytes()];
        let words = words.map(|word| Arg(word.to_vec())).to_vec();
        held_edit::edit(self.call, id.as_str(), edits, words).map(Some)
    }

    fn show(&self, patch: &str) -> Result<(), Error> {
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

    /// The files that it has written. Those that it removed are held as before.
    fn edits(&self) -> Result<Vec<HeldEdit>, Error> {
        let (mut edits, mut removed) = (Vec::new(), 0);
        for (path, old) in &self.open {
            match written(&self.copies.sides[1], path)? {
                None => removed += 1,
                Some(new) if Hash::of(&new) == *old => {}
                Some(new) => edits.push(HeldEdit { path: path.clone(), old: *old, new }),
            }
        }
        if removed > 0 {
            let files = figures::count(removed, "file");
            self.call.out.note(format_args!("{files} that the tool removed: held as before"));
        }
        Ok(edits)
    }

    /// The number of files that it made on the held side, but for copies that editors leave beside a file.
    fn made(&self) -> u64 {
        if self.held.is_none() {
            return 0;
        }
        let is_new =
            |path: &Path| !self.copied_held.contains(path) && !beside(path).is_some_and(|of| self.copied_held.contains(&of));
        let found = walkdir::WalkDir::new(self.copies.path(1, None)).into_iter().filter_map(Result::ok);
        found.filter(|found| !found.file_type().is_dir() && is_new(found.path())).count() as u64
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
        () if call.is_far() => ("--tool works only on this machine, without -H", command("diff") + " prints the patch"),
        () if named(call, name).is_empty() => (
            "no tool is named, and diff.tool is not set",
            command("diff --tool meld") + "; " + command("config --help") + " explains the setting",
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
    /// True if they stay, for the person.
    are_kept: bool,
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
            Ok(sides) => Ok(Self { call, above, name, sides, are_kept: false }),
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

/// Copies a file or link to a side, with the directories above it; a program may write to a file if `may_write`.
fn add(fs: &Fs, side: &Dir, path: &AbsPath, (mode, may_write): (&str, bool), bytes: &[u8]) -> Result<(), Error> {
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
            let bits = if mode == "100755" { 0o500 } else { 0o400 };
            let file = fs.create(at, if may_write { bits | 0o200 } else { bits })?;
            fs.write(&file, bytes, at)?;
        }
    }
    Ok(())
}

/// The content of a copy as it is now; `None` if no file is there any more.
fn written(side: &Dir, path: &AbsPath) -> Result<Option<Vec<u8>>, Error> {
    let file = match open(side, path) {
        Err(error) if error.leads_nowhere() => return Ok(None),
        file => file?,
    };
    if !file.metadata().at("look at", path)?.is_file() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.take(held_edit::MOST + 1).read_to_end(&mut bytes).at("read", path)?;
    if bytes.len() as u64 > held_edit::MOST { Err(too_large_to_edit(path)) } else { Ok(Some(bytes)) }
}

/// The file that an editor's copy is of: `f~`, `f.orig`, `.f.swp`.
fn beside(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.as_encoded_bytes();
    let swap = || name.strip_prefix(b".")?.strip_suffix(b".swp");
    let of = name.strip_suffix(b"~").or_else(|| name.strip_suffix(b".orig")).or_else(swap)?;
    Some(path.with_file_name(OsString::from_vec(of.to_vec())))
}

/// Opens a copy, through no link.
fn open(side: &Dir, path: &AbsPath) -> Result<File, IoError> {
    let (mut dir, mut rest) = (side.again()?, &path.as_bytes()[1..]);
    while let Some(cut) = rest.iter().position(|byte| *byte == b'/') {
        dir = dir.at(&rest[..cut]).open_dir()?;
        rest = &rest[cut + 1..];
    }
    dir.at(rest).open_file()
}

impl Drop for Copies<'_> {
    fn drop(&mut self) {
        if self.are_kept {
            return;
        }
        if let Err(error) = self.call.fs.remove_all(self.above.at(&self.name)) {
            self.call.out.warn(format_args!("the copies for the tool are left behind: {error}"));
        }
    }
}
