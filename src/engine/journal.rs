//! The journal: the durable record of an operation under way. It alone decides how the operation is undone or settled.
//!
//! `journals/<id>` is whole and durable, as `<id>.new`, before it has its name (D6): a header line, a line an item, and an end line with
//! the SHA-256 of all before it. Nobody waits for the name: a whole `<id>.new` counts as well. `journals/<id>.tmp` comes first if Prepare
//! makes anything, and lists it.

use std::fs::File;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::item::{Frame, Item, Opened, Turn, turns};
use super::job::Verb;
use super::report::LeftPath;
use super::step::{Act, DirectoryTime, RootRecord, Spot, Step};
use crate::error::{At, Error, IoError, Kind};
use crate::fs::{AbsPath, Dir, Entry, Fs};
use crate::session::{Header, Id, Store};
use crate::tree::{Hash, Sealed, json, sealed_file};

/// The facts that all items have in common.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Head {
    pub journal: u32,
    pub verb: Verb,
    pub session: Id,
    /// The generation before. If `session.json` has it, the operation is undone; if it has the next one, settled.
    pub generation: u64,
    /// The boot that the journal was written in.
    pub boot: String,
    /// The mounts that its paths lie in.
    pub roots: Vec<RootRecord>,
    pub times: Vec<DirectoryTime>,
    /// Directories that are opened for the work, in path order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opened: Vec<Opened>,
    pub header: Header,
    /// The header as it was: `recover --undo` restores it if `session.json` cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<Box<Header>>,
    /// The paths that an undo had to leave, and why. The items are these alone, and are finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<Vec<LeftPath>>,
    /// Mount points of `roots` whose file systems are given up: nothing is there any more.
    #[serde(skip)]
    pub lost: Vec<AbsPath>,
}

/// A whole journal.
#[derive(Debug, Clone, PartialEq)]
pub struct Journal {
    /// The facts that all items have in common.
    pub head: Head,
    /// In path order.
    pub items: Vec<Item>,
    /// The order of the steps.
    pub turns: Vec<Turn>,
}

/// The content of `journals/<id>.tmp`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    /// The objects that will be made.
    pub made: Vec<Spot>,
    /// The directories whose times that changes.
    pub times: Vec<DirectoryTime>,
    /// The generation that the operation leads to: once it is sealed, the list is void.
    pub generation: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line<I> {
    Item(I),
}

/// The three names that an operation's journal goes through.
pub struct Names {
    pub draft: Vec<u8>,
    pub new: Vec<u8>,
    pub journal: Vec<u8>,
}

pub fn names(id: &Id) -> Names {
    Names { draft: format!("{id}.tmp").into_bytes(), new: format!("{id}.new").into_bytes(), journal: id.as_str().into() }
}

impl Draft {
    /// Writes the list, durably with its name: nothing is made before.
    pub fn write(&self, fs: &Fs, store: &Store, id: &Id) -> Result<(), Error> {
        let name = names(id).draft;
        let at = store.journals().at(&name);
        fs.unlink_if_there(at)?;
        let file = fs.create(at, 0o600)?;
        let bytes = json::text(self);
        fs.write(&file, &bytes, at)?;
        fs.sync(&file, at)?; // D1
        fs.sync_dir(store.journals())?; // D2
        Ok(())
    }

    /// Reads the list. One that is not whole was not synced: nothing had been made.
    pub fn read(dir: &Dir, id: &Id) -> Result<Option<Self>, Error> {
        let name = names(id).draft;
        let bytes = crate::session::read_small(dir.at(&name), 1 << 30)?;
        let draft: Option<Self> = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        // I14: what it lists is removed with all that is in it. Prepare makes nothing under other names than its own.
        Ok(draft.map(|draft| Self { made: draft.made.into_iter().filter(|spot| spot.is_own(id)).collect(), ..draft }))
    }
}

/// A journal written whole under a temporary name; not durable yet.
pub struct Written(File);

impl Journal {
    /// Makes a journal from its parts; the order of the steps follows from them.
    pub fn new(head: Head, items: Vec<Item>) -> Self {
        let turns = turns(&items, &head.opened);
        Self { head, items, turns }
    }

    /// The facts that decide where objects lie.
    pub fn frame(&self) -> Frame<'_> {
        Frame { session: &self.head.session, verb: self.head.verb, generation: self.head.generation + 1 }
    }

    /// Makes the step of a turn.
    pub fn step(&self, turn: Turn) -> Step<'_> {
        self.frame().step(turn, &self.items, &self.head.opened)
    }

    /// The steps in their order. An undo takes them from the end.
    pub fn steps(&self) -> impl DoubleEndedIterator<Item = Step<'_>> + ExactSizeIterator {
        self.turns.iter().map(|turn| self.step(*turn))
    }

    /// All that Prepare makes, sorted.
    pub fn prepared_spots(&self) -> Vec<Spot> {
        let frame = self.frame();
        let mut made: Vec<Spot> = self.items.iter().flat_map(|item| prepared_spots_of(&frame, item)).collect();
        if self.items.iter().any(|item| item.is_noted(self.head.verb)) {
            made.push(displaced(frame.generation));
        }
        made.sort();
        made.dedup();
        made
    }

    /// Writes the journal under a temporary name. The caller syncs it before it gets its own.
    pub fn write_new(&self, fs: &Fs, store: &Store) -> Result<Written, Error> {
        let names = names(&self.head.session);
        let mut writing = sealed_file::Writing::begin(fs, store.journals(), &names.new)?;
        writing.line(&self.head)?;
        for item in &self.items {
            writing.line(&Line::Item(item))?;
        }
        let (file, _) = writing.end(|hash| hash)?;
        Ok(Written(file))
    }

    /// Reads a session's journal; `None` where there is none.
    ///
    /// Errors: the end line is missing or its hash is wrong, in a journal under its own name, which it gets only after its sync.
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
        match at.stat()? {
            None => return Ok(None),
            Some(stat) if stat.sort != crate::fs::Sort::File => return Err(damaged("it is not a file")),
            Some(_) => {}
        }
        let mut records = Sealed::<Hash>::open(at.open_file()?, at, self::damaged)?.records()?;
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
            return Err(damaged("its generation is the highest possible number"));
        }
        Ok(Some(Self::new(head, items)))
    }

    /// Gives a whole journal that a crash left under its temporary name its own, durably, so that everybody sees it.
    pub fn claim(fs: &Fs, store: &Store, id: &Id) -> Result<(), Error> {
        let names = names(id);
        let (new, at) = (store.journals().at(&names.new), store.journals().at(&names.journal));
        if at.stat()?.is_some() {
            return Ok(());
        }
        // D1: the one that wrote it may have been killed before its sync.
        fs.sync(&new.open_file()?, new)?;
        fs.rename_over(new, at)?;
        // D2: it is found under the other name too (directory: not caught here).
        Ok(fs.sync_dir(store.journals())?)
    }

    /// Makes the file of a settled operation's journal one of the reserve, which has room alone. As with [`Self::let_go`] the journal may
    /// come back after a power cut. Does nothing if it is there no more.
    pub fn become_reserve(fs: &Fs, store: &Store, id: &Id, reserve: Entry<'_>) -> Result<(), IoError> {
        match fs.rename_over(store.journals().at(&names(id).journal), reserve) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            renamed => renamed,
        }
    }

    /// Removes the journal of a settled operation without waiting for the disk. If it comes back after a power cut, it is settled again,
    /// which changes nothing where nothing was let go. What it names goes only once it is sure to stay away ([`Store::journals_last`]).
    pub fn let_go(fs: &Fs, store: &Store, id: &Id) -> Result<(), Error> {
        let names = names(id);
        for name in [&names.draft, &names.new, &names.journal] {
            let at = store.journals().at(name);
            fs.unlink_if_there(at)?;
        }
        Ok(())
    }

    /// Removes the journal, durably: the operation has ended.
    pub fn remove(fs: &Fs, store: &Store, id: &Id) -> Result<(), Error> {
        Self::let_go(fs, store, id)?;
        // D2: one that came back after a power cut would be undone or settled again, and name what somebody has changed since. If nobody
        // has, it changes nothing (directory: not caught here).
        fs.sync_dir(store.journals())?;
        Ok(())
    }
}

impl Written {
    /// Its size in bytes.
    pub fn size(&self, store: &Store) -> Result<u64, Error> {
        Ok(crate::fs::stat_of(&self.0).at("look at", store.journals().path().display())?.size)
    }

    /// Makes it durable before the first step (I1), and with it the file `with`, if files are synced one by one.
    pub fn sync(&self, fs: &Fs, store: &Store, with: Option<(&File, &Path)>) -> Result<(), Error> {
        let directory = store.journals().path();
        let files: Vec<_> = with.into_iter().chain([(&self.0, directory)]).collect();
        fs.sync_all(&files)?; // D1
        Ok(fs.sync_dir(store.journals())?) // D2
    }

    /// Gives the journal its name and removes the draft. It has been synced: after a power cut it is found under either name.
    pub fn name(self, fs: &Fs, store: &Store, id: &Id) -> Result<(), Error> {
        let names = names(id);
        let dir = store.journals();
        let (new, at, draft) = (dir.at(&names.new), dir.at(&names.journal), dir.at(&names.draft));
        fs.rename_over(new, at)?;
        fs.unlink_if_there(draft)?;
        Ok(())
    }

    /// Replaces the existing journal, durably. Nothing that the new one names is begun before.
    pub fn replace(self, fs: &Fs, store: &Store, id: &Id) -> Result<(), Error> {
        fs.sync(&self.0, store.journals().at(&names(id).new))?; // D1, D6
        self.name(fs, store, id)?;
        Ok(fs.sync_dir(store.journals())?) // D2
    }
}

/// The error for a journal that cannot be trusted.
fn damaged(path: &str, why: &str) -> Error {
    Error::damaged(path, "the journal", why)
        .with_state("nothing was touched; other sessions go on")
        .with_remedy("docs/store-format.md says where the originals lie, to put them back by hand")
}

/// Lists the spots that Prepare makes for one item.
pub fn prepared_spots_of(frame: &Frame<'_>, item: &Item) -> impl Iterator<Item = Spot> {
    let places = if item.moves() { frame.places(item) } else { Default::default() };
    let to = places.to.filter(|_| item.fresh && !item.in_place);
    let home = places.home.filter(|_| places.copied);
    let is_made = !item.in_place && (item.act == Act::Remove || item.is_parted());
    let out = places.out.filter(|spot| is_made && matches!(spot, Spot::Tree(_)));
    [to, home, out].into_iter().flatten()
}

/// The directory of what a forced operation overwrites.
pub fn displaced(generation: u64) -> Spot {
    Spot::Session(format!("displaced/{generation}").into_bytes())
}
