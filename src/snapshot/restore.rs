//! Restore: a session whose `after`s are a snapshot's states. The engine commits it like any other (N6).

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, JoinHandle};

use super::content::{Content, Kept};
use super::differences::{Compared, Difference};
use super::error::refused;
use super::manifest::Entry;
use super::paths::whole;
use super::series::Series;
use crate::checkpoint::make_originals;
use crate::error::{Error, shell_word};
use crate::fs::{AbsPath, Dir, Fs, Shown, both, write_all_out};
use crate::remedy::{Remedy, shell};
use crate::session::{Before, Change, Changes, DirectoryTime, Header, Locked, Marks, object_name, part};
use crate::tree::State;

/// Refuses a directory that is now reached by a link, as the snapshots are of another one; and one without its parent.
pub fn refuse_elsewhere(directory: &AbsPath) -> Result<(), Error> {
    let refused = |why: String, remedy: Remedy| Err(refused(directory, why).with_remedy(remedy));
    let make_above = || {
        let above = directory.parent().unwrap_or_else(|| directory.clone());
        shell(format_args!("mkdir -p {}", shell_word(above.as_bytes())))
    };
    let link = |link: &AbsPath| {
        let to = link.as_path().read_link().unwrap_or_default();
        let dir = shell_word(to.as_os_str().as_bytes());
        let [from, aside] = [&b""[..], b".link"].map(|end| [link.as_bytes(), end].concat());
        let mv = shell(format_args!("mv {} {}", shell_word(&from), shell_word(&aside)));
        let is = if link == directory { "it".to_owned() } else { link.to_string() };
        let why =
            format!("{is} is a link to {} now; the snapshots are of what was there before", Shown(to.as_os_str().as_bytes()));
        refused(why, mv + ", then restore; the link's target has its own snapshots: --dir " + &*dir)
    };
    let above = directory.ancestors().filter(|above| above.depth() > 0);
    for path in std::iter::once(directory.clone()).chain(above).collect::<Vec<_>>().iter().rev() {
        match path.as_path().symlink_metadata() {
            Ok(found) if found.is_symlink() => return link(path),
            Ok(found) if !found.is_dir() && path != directory => {
                let remedy = "move it away, and make the directory: " + make_above();
                return refused(format!("{path} above it is not a directory now"), remedy);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && path != directory => {
                let remedy = "mount what it lies on, or make it: " + make_above();
                return refused(format!("the directory above it is not there: {path}"), remedy);
            }
            _ => {}
        }
    }
    Ok(())
}

/// From so many objects on the engine syncs their file system as a whole (docs/ARCHITECTURE.md, D7).
const MANY: usize = 16;

/// Fills the session of a restore, which was begun for it, with all differences: the tree's state as `before`, the snapshot's as `after`. A
/// failure leaves a session without changes.
pub fn fill(fs: &Fs, series: &Series, compared: &Compared, session: &mut Locked) -> Result<Option<WritingOut>, Error> {
    let objects = part(&session.dir, b"held/objects")?;
    let Filling { changes, wanted } = Filling::of(series, compared)?;
    let held = Held::of(fs, series, &objects, &wanted)?;
    let header = header_of(&changes, held.bytes, session);
    if held.files.len() >= MANY {
        // So many objects make the engine sync the file system before its journal counts (docs/ARCHITECTURE.md, Intend); a sync here would
        // be the third of a restore. Until then a power cut may leave files empty, which the header on disk says.
        let writing = WritingOut::of(&session.dir);
        session.rewrite_later(fs, &changes, header.lines)?;
        session.save_later(fs, Header { unsynced: true, ..header.clone() })?;
        session.set_header(header);
        return Ok(writing);
    }
    held.sync(fs, &objects)?; // D1: content before the lines that name it
    session.rewrite(fs, &changes, header.lines)?;
    session.save(fs, header)?;
    Ok(None)
}

/// Fills a temporary session for a dry run of the engine: compares content with its hash where it lies, and does not hold it. [`crate::engine::Job::unheld`]
/// makes the job of it.
pub fn fill_to_ask(fs: &Fs, series: &Series, compared: &Compared, session: &mut Locked) -> Result<(), Error> {
    let Filling { changes, wanted } = Filling::of(series, compared)?;
    let mut kept = Kept::of(&series.dir, &series.directory);
    let is_kept = |difference: &Difference| difference.merged.is_none() && difference.then.as_ref().is_some_and(State::is_file);
    let mut files = wanted.iter().filter(|wanted| is_kept(wanted.difference));
    files.try_for_each(|wanted| kept.verify(&entry_of(wanted.difference)))?;
    let header = header_of(&changes, 0, session);
    session.rewrite_later(fs, &changes, header.lines)?;
    session.save_later(fs, header)
}

/// The content of a restore's session.
struct Filling<'a> {
    changes: Changes,
    wanted: Vec<Wanted<'a>>,
}

impl<'a> Filling<'a> {
    fn of(series: &Series, compared: &'a Compared) -> Result<Self, Error> {
        let mut list = Vec::with_capacity(compared.differences.len());
        let mut wanted = Vec::new();
        for (difference, n) in compared.differences.iter().zip(1_u32..) {
            let change = change(series, difference, n)?;
            let is_held = change.marks.linked || change.after.as_ref().is_some_and(State::is_file);
            if is_held && change.after.is_some() && !change.in_place() {
                wanted.push(Wanted { difference, n });
            }
            list.push(change);
        }
        let directory_times = compared.times.iter().map(|times| {
            Ok(DirectoryTime { path: whole(&series.directory, &times.path)?, before: times.now, after: times.then })
        });
        let changes = Changes { list, directory_times: directory_times.collect::<Result<_, Error>>()? };
        Ok(Self { changes, wanted })
    }
}

fn header_of(changes: &Changes, held: u64, session: &Locked) -> Header {
    let mut header = session.header.clone();
    header.lines = (changes.list.len() + changes.directory_times.len()) as u64;
    header.counts.changes = changes.list.len() as u64;
    header.sizes.held = held;
    header
}

/// A thread that writes out the held content while the engine looks at it, so that the sync before the journal has little left to do.
/// Nothing rests on it. Dropping this waits for its end.
pub struct WritingOut(Option<JoinHandle<()>>);

impl WritingOut {
    /// Starts to write out all dirty data on the file system of `dir`; `None` if no thread can be had. The engine still sees an error, as
    /// it syncs by the descriptor through which the session was opened.
    fn of(dir: &Dir) -> Option<Self> {
        let own = dir.open_below(b"").ok()?;
        let thread = Builder::new().name("write out".into()).spawn(move || write_all_out(&own));
        Some(Self(Some(thread.ok()?)))
    }
}

impl Drop for WritingOut {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            let _promised_nothing = thread.join();
        }
    }
}

fn change(series: &Series, difference: &Difference, n: u32) -> Result<Change, Error> {
    let before = Before { object: difference.now.clone(), print: difference.print };
    let marks = Marks { linked: difference.regrouped || is_one_of_several(difference), ..Marks::default() };
    Ok(Change { marks, ..Change::new(n, whole(&series.directory, &difference.path)?, before, difference.then.clone()) })
}

/// True if it is made anew as one of several names of an object without content: a link, a FIFO.
fn is_one_of_several(difference: &Difference) -> bool {
    let has_content = difference.then.as_ref().is_some_and(State::is_file);
    difference.link.is_some() && !has_content && !difference.is_metadata()
}

/// A file whose content is to be held, and the number of its change.
struct Wanted<'a> {
    difference: &'a Difference,
    n: u32,
}

/// The number of files that a thread holds at once, and that make a second thread worth it.
const BATCH: usize = 32;

/// The content that came into a session.
#[derive(Default)]
struct Held {
    /// The first files, for a sync of each.
    files: Vec<File>,
    bytes: u64,
}

impl Held {
    /// Holds all of it, in two threads if it is much. The engine compares it with its hash before it puts anything.
    fn of(fs: &Fs, series: &Series, objects: &Dir, wanted: &[Wanted<'_>]) -> Result<Self, Error> {
        // Names of one file are held by one thread, which knows the first of them.
        let (linked, single): (Vec<&Wanted>, Vec<&Wanted>) = wanted.iter().partition(|wanted| wanted.difference.link.is_some());
        let next = AtomicUsize::new(0);
        // An error in one of them ends both.
        let leave_the_rest = || next.store(single.len(), Ordering::Relaxed);
        let hand = || Holding {
            fs,
            kept: Kept::of(&series.dir, &series.directory),
            objects,
            firsts: HashMap::new(),
            held: Held::default(),
        };
        let hold = |mut hand: Holding<'_>| {
            while let Some(rest) = single.get(next.fetch_add(BATCH, Ordering::Relaxed)..).filter(|rest| !rest.is_empty()) {
                rest.iter().take(BATCH).try_for_each(|wanted| hand.hold(wanted)).inspect_err(|_| leave_the_rest())?;
            }
            Ok::<Held, Error>(hand.held)
        };
        let own = || {
            let mut own = hand();
            linked.iter().try_for_each(|wanted| own.hold(wanted)).inspect_err(|_| leave_the_rest())?;
            hold(own)
        };
        let (held, others) = both(single.len() > 2 * BATCH, own, || hold(hand()));
        Ok(held?.and(others?))
    }

    fn and(mut self, other: Self) -> Self {
        self.files.extend(other.files);
        Self { files: self.files, bytes: self.bytes + other.bytes }
    }

    fn sync(self, fs: &Fs, objects: &Dir) -> Result<(), Error> {
        let shown = objects.path();
        let files: Vec<_> = self.files.iter().map(|file| (file, shown)).collect();
        // D1. The engine syncs what it puts once more (file: not caught here); this is for the session that is left if it fails.
        fs.sync_all(&files)?;
        Ok(fs.sync_dir(objects)?)
    }
}

/// Holds content; each thread has its own.
struct Holding<'a> {
    fs: &'a Fs,
    kept: Kept<'a>,
    objects: &'a Dir,
    /// The number of the change of a file's first name.
    firsts: HashMap<AbsPath, u32>,
    held: Held,
}

impl Holding<'_> {
    fn hold(&mut self, wanted: &Wanted<'_>) -> Result<(), Error> {
        let Wanted { difference, n } = wanted;
        let name = name(*n);
        let at = self.objects.at(&name);
        let first = difference.link.as_ref().unwrap_or(&difference.path);
        if let Some(first) = self.firsts.get(first) {
            let first = self::name(*first);
            return Ok(self.fs.link(self.objects.at(&first), at)?);
        }
        if difference.link.is_some() {
            self.firsts.insert(first.clone(), *n);
        }
        if let Some(then) = difference.then.as_ref().filter(|then| !then.is_file()) {
            return Ok(make_originals::object(self.fs, at, then)?);
        }
        let entry = entry_of(difference);
        let dress = difference.then.as_ref().filter(|then| can_be_dressed(then));
        // The engine hashes it before it puts it (docs/ARCHITECTURE.md, I11): once is enough.
        let content = match &difference.merged {
            Some(bytes) => Content::Small(bytes.clone()),
            None => self.kept.uncompared(&entry)?,
        };
        let file = self.fs.create(at, dress.map_or(0o600, |then| then.meta.mode & 0o777))?;
        match content {
            Content::Small(bytes) if bytes.is_empty() => {}
            Content::Small(bytes) => self.fs.write(&file, &bytes, at)?,
            Content::Large(from) => drop(self.fs.copy(&from, &file, at)?),
        }
        if let Some(then) = dress {
            self.fs.set_mtime_of(&file, then.meta.mtime, at)?;
        }
        self.held.bytes += entry.size();
        if self.held.files.len() < MANY {
            self.held.files.push(file);
        }
        Ok(())
    }
}

/// The manifest entry for the snapshot's side of a difference.
fn entry_of(difference: &Difference) -> Entry {
    Entry::of(difference.path.clone(), difference.then.clone(), difference.at)
}

/// Tells whether mode and mtime can be set while the file is made, which spares the engine another look: true for most files. What the
/// umask takes, owners and xattrs are left to the engine, as is a mode under which it could not read the content.
fn can_be_dressed(then: &State) -> bool {
    then.meta.mode & 0o7400 == 0o400 && then.meta.xattrs.is_empty()
}

/// The name in the directory of held objects.
fn name(n: u32) -> Vec<u8> {
    let path = object_name(n);
    path.rsplit(|b| *b == b'/').next().unwrap_or_default().to_vec()
}
