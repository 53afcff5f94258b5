//! Restore: a session whose `after`s are a snapshot's states. What commits it is the engine, as any other (N6).

use std::collections::HashMap;

use super::Error;
use super::compare::{Compared, Difference, whole};
use super::content::{Content, Kept};
use super::manifest::Entry;
use super::series::Series;
use crate::error::At as _;
use crate::fs::Fs;
use crate::fs::dir::Dir;
use crate::fs::path::AbsPath;
use crate::session::change::{Before, Change, Changes, FolderTime, Marks, object_name};
use crate::session::store::Locked;
use crate::tree::state::{State, What};

/// From so many objects on the engine syncs their file system as a whole (docs/ARCHITECTURE.md, D7).
const MANY: usize = 16;

/// Fills the session of a restore, which was begun for it: all that differs, with what is on the tree as `before` and what the snapshot
/// has as `after`. A failure leaves a session that has no change.
pub fn fill(fs: &Fs, series: &Series, compared: &Compared, session: &mut Locked) -> Result<(), Error> {
    let objects = session.dir.open_below(b"held/objects").at("open", session.dir.path().display())?;
    let mut holding =
        Holding { fs, kept: Kept::of(&series.dir), objects: &objects, firsts: HashMap::new(), files: Vec::new(), bytes: 0 };
    let mut list = Vec::with_capacity(compared.differences.len());
    for (difference, n) in compared.differences.iter().zip(1_u32..) {
        let mut change = change(series, difference, n)?;
        let is_file = matches!(change.after, Some(State { what: What::File { .. }, .. }));
        if is_file && !change.in_place() {
            holding.hold(difference, n)?;
        }
        if !is_file {
            // Links and FIFOs are made from the record, each for itself.
            change.marks.linked = false;
        }
        list.push(change);
    }
    let folder_times = compared
        .times
        .iter()
        .map(|times| Ok(FolderTime { path: whole(&series.folder, &times.path)?, before: times.now, after: times.then }));
    let changes = Changes { list, folder_times: folder_times.collect::<Result<_, Error>>()? };
    let lines = (changes.list.len() + changes.folder_times.len()) as u64;
    let mut header = session.header.clone();
    header.lines = lines;
    header.counts.changes = changes.list.len() as u64;
    header.sizes.held = holding.bytes;
    if holding.files.len() >= MANY {
        // So many objects make the engine sync the file system before its journal counts (docs/ARCHITECTURE.md, Intend): one more before it
        // would be the third of a restore. Until then a power cut may leave files empty, which the header says where it is read from the disk.
        session.rewrite_later(fs, &changes, lines)?;
        header.unsynced = true;
        session.save_later(fs, header.clone())?;
        header.unsynced = false;
        session.set_header(header);
        return Ok(());
    }
    holding.sync()?; // D1: content before the lines that name it
    session.rewrite(fs, &changes, lines)?;
    Ok(session.save(fs, header)?)
}

fn change(series: &Series, difference: &Difference, n: u32) -> Result<Change, Error> {
    Ok(Change {
        n,
        path: whole(&series.folder, &difference.path)?,
        before: Before { object: difference.now.clone(), print: difference.print },
        after: difference.then.clone(),
        marks: Marks { linked: difference.regrouped, ..Marks::default() },
        extra: Default::default(),
    })
}

/// Content on its way into a session.
struct Holding<'a> {
    fs: &'a Fs,
    kept: Kept<'a>,
    objects: &'a Dir,
    /// The number of a file's first name.
    firsts: HashMap<AbsPath, u32>,
    files: Vec<std::fs::File>,
    bytes: u64,
}

impl Holding<'_> {
    fn hold(&mut self, difference: &Difference, n: u32) -> Result<(), Error> {
        let name = name(n);
        let at = self.objects.at(&name);
        let first = difference.link.as_ref().unwrap_or(&difference.path);
        if let Some(first) = self.firsts.get(first) {
            let first = self::name(*first);
            return Ok(self.fs.link(self.objects.at(&first), at).at("link", at)?);
        }
        let entry =
            Entry { path: difference.path.clone(), state: difference.then.clone(), at: difference.at, link: None, unread: None };
        let dress = difference.then.as_ref().filter(|then| can_be_dressed(then));
        let file = self.fs.create(at, dress.map_or(0o600, |then| then.meta.mode & 0o777)).at("make", at)?;
        match self.kept.content(&entry)? {
            Content::Small(bytes) if bytes.is_empty() => {}
            Content::Small(bytes) => self.fs.write(&file, &bytes, self.objects.path()).at("write", at)?,
            // What it is now the engine digests before it puts it (docs/ARCHITECTURE.md, I11).
            Content::Large(from) => drop(self.fs.copy(&from, &file, self.objects.path()).at("copy to", at)?),
        }
        if let Some(then) = dress {
            self.fs.set_mtime_of(&file, then.meta.mtime, self.objects.path()).at("set the time of", at)?;
        }
        self.bytes += entry.size();
        self.firsts.insert(first.clone(), n);
        if self.files.len() < MANY {
            self.files.push(file);
        }
        Ok(())
    }

    fn sync(self) -> Result<(), Error> {
        let shown = self.objects.path();
        let files: Vec<_> = self.files.iter().map(|file| (file, shown)).collect();
        // D1. The engine syncs what it puts once more (file: not caught here); this is for the session that is left where it comes to nothing.
        self.fs.sync_all(&files).at("sync", shown.display())?;
        Ok(self.fs.sync_dir(self.objects).at("sync", shown.display())?)
    }
}

/// Whether mode and mtime can be given while the file is made, which spares the engine looking at it again: most files. What the umask
/// takes, owners and xattrs are left to the engine, as is a mode under which it could not read the content.
fn can_be_dressed(then: &State) -> bool {
    then.meta.mode & 0o7400 == 0o400 && then.meta.xattrs.is_empty()
}

/// In the folder of held objects.
fn name(n: u32) -> Vec<u8> {
    let path = object_name(n);
    path.rsplit(|b| *b == b'/').next().unwrap_or_default().to_vec()
}
