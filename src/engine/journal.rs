//! The journal: a durable record of an operation under way, by which alone it can be undone or settled.
//!
//! `journals/<id>` is whole and durable, as `<id>.new`, before it has its name (D6): a header line, a line an item, and an end
//! line with the SHA-256 of all before it. Its name is not waited for: a whole `<id>.new` counts as it does. `journals/<id>.tmp`
//! comes first where Prepare makes anything, and lists what.

use std::fs::File;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::item::{Frame, Item, Opened, Turn, turns};
use super::job::Verb;
use super::report::Left;
use super::step::{Act, FolderTime, RootRecord, Spot, Step};
use crate::error::{At, Error, Kind};
use crate::fs::Fs;
use crate::fs::dir::{Dir, Entry};
use crate::fs::path::AbsPath;
use crate::session::header::Header;
use crate::session::id::Id;
use crate::session::store::Store;
use crate::tree::digest::Digest;
use crate::tree::json;
use crate::tree::sealed::{self, Sealed};

/// What the items have in common.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// The version of this form.
    pub journal: u32,
    /// Which verb.
    pub verb: Verb,
    /// Whose session.
    pub session: Id,
    /// The generation before: with it in `session.json` the operation is undone, with the next one settled.
    pub generation: u64,
    /// The boot that it was written in.
    pub boot: String,
    /// The mounts that its paths lie in.
    pub roots: Vec<RootRecord>,
    /// Folders whose times change.
    pub times: Vec<FolderTime>,
    /// Folders that are opened up for the work, in path order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opened: Vec<Opened>,
    /// The header to be sealed.
    pub header: Header,
    /// The header as it was: `recover --undo` gives it back where `session.json` cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<Box<Header>>,
    /// What an undo had to leave, and why: the items are these alone, and are brought to their end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<Vec<Left>>,
    /// Mount points of `roots` whose file systems are given up: nothing is there any more.
    #[serde(skip)]
    pub lost: Vec<AbsPath>,
}

/// A whole journal.
#[derive(Debug, Clone, PartialEq)]
pub struct Journal {
    /// What the items have in common.
    pub head: Head,
    /// In path order.
    pub items: Vec<Item>,
    /// The order of the steps.
    pub turns: Vec<Turn>,
}

/// `journals/<id>.tmp`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    /// What will be made.
    pub made: Vec<Spot>,
    /// Folders whose times that changes.
    pub times: Vec<FolderTime>,
    /// The generation that the operation leads to: once that is sealed, the list counts no more.
    pub generation: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line<I> {
    Item(I),
}

/// The three names that an operation's journal goes through.
pub struct Names {
    /// What Prepare makes.
    pub draft: Vec<u8>,
    /// The journal while it is written.
    pub new: Vec<u8>,
    /// The journal.
    pub journal: Vec<u8>,
}

/// Of a session.
pub fn names(id: &Id) -> Names {
    Names { draft: format!("{id}.tmp").into_bytes(), new: format!("{id}.new").into_bytes(), journal: id.as_str().into() }
}

impl Draft {
    /// Writes it, durably with its name: nothing is made before.
    pub fn write(&self, fs: &Fs, store: &Store, id: &Id) -> Result<(), Error> {
        let name = names(id).draft;
        let at = store.journals().at(&name);
        fs.unlink_if_there(at).at("remove", at)?;
        let file = fs.create(at, 0o600).at("make", at)?;
        let bytes = json::text(self);
        fs.write(&file, &bytes, store.journals().path()).at("write", at)?;
        fs.sync(&file, store.journals().path()).at("sync", at)?; // D1
        fs.sync_dir(store.journals()).at("sync", store.journals().path().display())?; // D2
        Ok(())
    }

    /// Reads it. One that is not whole was not synced: nothing had been made.
    pub fn read(dir: &Dir, id: &Id) -> Result<Option<Self>, Error> {
        let name = names(id).draft;
        let bytes = crate::session::opened::read_small(dir.at(&name), 1 << 30)?;
        let draft: Option<Self> = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        // I14: what it lists is removed with all that is in it. Anything but a name that Prepare gives was not made by it.
        Ok(draft.map(|draft| Self { made: draft.made.into_iter().filter(|spot| spot.is_own(id)).collect(), ..draft }))
    }
}

/// A journal written whole under a temporary name; not durable yet.
pub struct Written(File);

impl Journal {
    /// Of its parts; the order of the steps follows from them.
    pub fn new(head: Head, items: Vec<Item>) -> Self {
        let turns = turns(&items, &head.opened);
        Self { head, items, turns }
    }

    /// What decides where objects lie.
    pub fn frame(&self) -> Frame<'_> {
        Frame { session: &self.head.session, verb: self.head.verb, generation: self.head.generation + 1 }
    }

    /// The step that a turn is.
    pub fn step(&self, turn: Turn) -> Step<'_> {
        self.frame().step(turn, &self.items, &self.head.opened)
    }

    /// The steps in the order in which they are done; taken back they are from the end.
    pub fn steps(&self) -> impl DoubleEndedIterator<Item = Step<'_>> + ExactSizeIterator {
        self.turns.iter().map(|turn| self.step(*turn))
    }

    /// All that Prepare makes, sorted.
    pub fn made(&self) -> Vec<Spot> {
        let frame = self.frame();
        let mut made: Vec<Spot> = self.items.iter().flat_map(|item| made_for(&frame, item)).collect();
        if self.items.iter().any(|item| item.displaces(self.head.verb)) {
            made.push(displaced(frame.generation));
        }
        made.sort();
        made.dedup();
        made
    }

    /// Writes it under a temporary name. The caller syncs it before it gets its own.
    pub fn write_new(&self, fs: &Fs, store: &Store) -> Result<Written, Error> {
        let names = names(&self.head.session);
        let mut writing = sealed::Writing::begin(fs, store.journals(), &names.new)?;
        writing.line(&self.head)?;
        for item in &self.items {
            writing.line(&Line::Item(item))?;
        }
        let (file, _) = writing.end(|digest| digest)?;
        Ok(Written(file))
    }

    /// Reads a session's journal; `None` where there is none.
    ///
    /// Errors: its end line is missing or its digest wrong: it was renamed only after its sync.
    pub fn read(store: &Store, id: &Id) -> Result<Option<Self>, Error> {
        let names = names(id);
        match Self::read_at(store.journals().at(&names.journal), id)? {
            Some(journal) => Ok(Some(journal)),
            // One that is not whole was not synced: nothing had been applied.
            None => match Self::read_at(store.journals().at(&names.new), id) {
                Err(error) if error.kind() == Kind::Damaged => Ok(None),
                read => read,
            },
        }
    }

    fn read_at(at: Entry<'_>, id: &Id) -> Result<Option<Self>, Error> {
        let damaged = |why: &str| damaged(&at.to_string(), why);
        match at.stat().at("look at", at)? {
            None => return Ok(None),
            Some(stat) if stat.sort != crate::fs::dir::Sort::File => return Err(damaged("it is not a file")),
            Some(_) => {}
        }
        let mut records = Sealed::<Digest>::open(at.open_file().at("open", at)?, at, self::damaged)?.records()?;
        let head: Head = records.record()?.ok_or_else(|| damaged("it is empty"))?;
        let mut items = Vec::new();
        while let Some(Line::Item(item)) = records.record::<Line<Item>>()? {
            if !item.lies_in_session() {
                return Err(damaged("an object lies where the session has none"));
            }
            items.push(item);
        }
        if head.session != *id || head.journal != 1 {
            return Err(damaged("it is another session's, or of a later recant"));
        }
        if head.generation == u64::MAX {
            return Err(damaged("no generation can follow on its own"));
        }
        Ok(Some(Self::new(head, items)))
    }

    /// Gives a journal that a cut has left under its temporary name its own, durably, so that all who look for one see it.
    pub fn claim(fs: &Fs, store: &Store, id: &Id) -> Result<(), Error> {
        let names = names(id);
        let (new, at) = (store.journals().at(&names.new), store.journals().at(&names.journal));
        if at.stat().at("look at", at)?.is_some() {
            return Ok(());
        }
        fs.rename_over(new, at).at("rename", new)?;
        // D2: it is found under the other name too (folder: not caught here).
        Ok(fs.sync_dir(store.journals()).at("sync", store.journals().path().display())?)
    }

    /// Takes the journal of an operation that is settled away, and does not wait for the disk: one that came back after a cut is
    /// settled again, which changes nothing where nothing had to be let go. What it speaks of goes only once it is sure to stay
    /// away ([`Store::journals_last`]).
    pub fn let_go(fs: &Fs, store: &Store, id: &Id) -> Result<(), Error> {
        let names = names(id);
        for name in [&names.draft, &names.new, &names.journal] {
            let at = store.journals().at(name);
            fs.unlink_if_there(at).at("remove", at)?;
        }
        Ok(())
    }

    /// Takes the journal away, durably: the operation has ended.
    pub fn remove(fs: &Fs, store: &Store, id: &Id) -> Result<(), Error> {
        Self::let_go(fs, store, id)?;
        // D2: one that came back after a cut would be undone or settled again, and name what somebody has changed since. If nobody
        // has, it changes nothing (folder: not caught here).
        fs.sync_dir(store.journals()).at("sync", store.journals().path().display())?;
        Ok(())
    }
}

impl Written {
    /// Bytes.
    pub fn size(&self, store: &Store) -> Result<u64, Error> {
        Ok(crate::fs::dir::stat_of(&self.0).at("look at", store.journals().path().display())?.size)
    }

    /// Makes it durable, and another file `with` it, where single files are synced, before the first step (E1).
    pub fn sync(&self, fs: &Fs, store: &Store, with: Option<(&File, &Path)>) -> Result<(), Error> {
        let folder = store.journals().path();
        let files: Vec<_> = with.into_iter().chain([(&self.0, folder)]).collect();
        fs.sync_all(&files).at("sync the journal in", folder.display())?; // D1
        Ok(fs.sync_dir(store.journals()).at("sync", folder.display())?) // D2
    }

    /// Gives it its name and takes the draft away. It has been synced: after a cut it is found under either name.
    pub fn name(self, fs: &Fs, store: &Store, id: &Id) -> Result<(), Error> {
        let names = names(id);
        let dir = store.journals();
        let (new, at, draft) = (dir.at(&names.new), dir.at(&names.journal), dir.at(&names.draft));
        fs.rename_over(new, at).at("rename", new)?;
        fs.unlink_if_there(draft).at("remove", draft)?;
        Ok(())
    }

    /// The same in place of a journal that says something else: durable before what it says is begun.
    pub fn replace(self, fs: &Fs, store: &Store, id: &Id) -> Result<(), Error> {
        let folder = store.journals().path();
        fs.sync(&self.0, folder).at("sync the journal in", folder.display())?; // D1, D6
        self.name(fs, store, id)?;
        Ok(fs.sync_dir(store.journals()).at("sync", store.journals().path().display())?) // D2
    }
}

/// The journal cannot be believed.
fn damaged(path: &str, why: &str) -> Error {
    Error::damaged(path, "the journal", why)
        .with_state("nothing was touched; other sessions go on")
        .with_remedy("docs/store-format.md says where the originals lie, to put them back by hand")
}

/// What Prepare makes for one item.
pub(super) fn made_for(frame: &Frame<'_>, item: &Item) -> impl Iterator<Item = Spot> {
    let places = if item.moves() { frame.places(item) } else { Default::default() };
    let to = places.to.filter(|_| item.fresh);
    let home = places.home.filter(|_| places.copied);
    let out = places.out.filter(|spot| (item.act == Act::Remove || item.is_parted()) && matches!(spot, Spot::Tree(_)));
    [to, home, out].into_iter().flatten()
}

/// The folder of what a forced operation overwrites.
pub(super) fn displaced(generation: u64) -> Spot {
    Spot::Session(format!("displaced/{generation}").into_bytes())
}
