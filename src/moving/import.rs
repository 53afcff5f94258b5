//! Import: a session from a stream. Everything is read and checked before the session has a name.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;

use super::checkpoint_originals::Keeping;
use super::error::{already_here, bad_path, broken};
use super::stream::{Head, History, Object, Receiving, Record, parse};
use crate::engine::Conflict;
use crate::error::{At, Error};
use crate::fs::{AbsPath, Dir, Fs, Roots, interrupt, leads_nowhere};
use crate::session::{
    ActingAgent, Arriving, Change, Changes, CommandRecord, Counts, DirectoryTime, Failed, Header, Id, Locked, Run, Session, Side,
    Sizes, Status, Store, id, object_name, part,
};
use crate::tree::{Difference, Hash, Hasher, Likeness, Object as Wanted, State, What, observe};

/// The result of an import.
pub enum Arrived {
    /// The session is here now, pending. If it could not keep its name, that name.
    New(Box<Locked>, Option<String>),
    /// This stream was imported before: nothing was done.
    Before(Id),
    /// Its session is committed, and only a person may bring that: nothing was done.
    Refused,
}

/// Rules for the places of paths here: a path is moved from the longest `from` that holds it to its `to`.
#[derive(Debug, Default)]
pub struct Mapping(Vec<Rule>);

#[derive(Debug)]
struct Rule {
    from: AbsPath,
    to: AbsPath,
    /// True if a path lay there.
    used: Cell<bool>,
}

impl Mapping {
    /// Adds a rule. `to` is resolved here, so that no link is on its way.
    pub fn add(&mut self, from: AbsPath, to: AbsPath) -> Result<(), Error> {
        let to = resolved(&to)?;
        if self.0.iter().any(|rule| rule.from == from) {
            return Err(bad_path(from, "it is mapped twice"));
        }
        self.0.push(Rule { from, to, used: Cell::new(false) });
        // The longest first: the first that fits counts.
        self.0.sort_by_key(|rule| std::cmp::Reverse(rule.from.as_bytes().len()));
        Ok(())
    }

    /// The directories of rules that no path of the stream used.
    pub fn in_vain(&self) -> impl Iterator<Item = &AbsPath> {
        self.0.iter().filter(|rule| !rule.used.get()).map(|rule| &rule.from)
    }

    fn map(&self, path: &AbsPath) -> Result<AbsPath, Error> {
        let Some((rule, below)) = self.0.iter().find_map(|rule| path.below(&rule.from).map(|below| (rule, below))) else {
            return Ok(path.clone());
        };
        rule.used.set(true);
        let to = &rule.to;
        if below.is_empty() {
            return Ok(to.clone());
        }
        let top = if to.as_bytes() == b"/" { &b""[..] } else { to.as_bytes() };
        let bad = |error: crate::fs::PathError| bad_path(path, error);
        AbsPath::parse([top, b"/", below].concat()).map_err(bad)
    }

    /// Identifies the stream with the places of its paths: the same pair is the same session.
    fn identity(&self, stream: Hash) -> Hash {
        let mut hasher = Hasher::default();
        hasher.update(&stream.0);
        for Rule { from, to, .. } in &self.0 {
            for path in [from, to] {
                hasher.update(path.as_bytes());
                hasher.update(&[0]);
            }
        }
        if self.0.is_empty() { stream } else { hasher.finish() }
    }
}

/// A path as by realpath(3), as far as it exists.
fn resolved(path: &AbsPath) -> Result<AbsPath, Error> {
    match path.as_path().canonicalize() {
        Ok(real) => {
            let bad = |error: crate::fs::PathError| bad_path(path, error);
            AbsPath::parse(real.as_os_str().as_bytes()).map_err(bad)
        }
        Err(error) if leads_nowhere(&error) => match path.parent() {
            Some(parent) => {
                let bad = |error: crate::fs::PathError| bad_path(path, error);
                resolved(&parent)?.join(path.name()).map_err(bad)
            }
            None => Ok(path.clone()),
        },
        Err(error) => Err(error).at("resolve", path).map_err(Error::from),
    }
}

/// Reads a stream to its end, and makes its session in the store. A failure leaves nothing of it. `asks_a_person`: a session that is
/// committed already is refused, as its rollback would put back what the stream says was there.
pub fn import(fs: &Fs, store: &Store, from: &mut dyn Read, mapping: &Mapping, asks_a_person: bool) -> Result<Arrived, Error> {
    let (mut receiving, head) = Receiving::begin(from)?;
    check_head(&head)?;
    if head.checkpoint && asks_a_person {
        return Ok(Arrived::Refused);
    }
    if store.has(&head.id)? {
        let identity = mapping.identity(receiving.pass_over()?);
        let header = store.session(&head.id)?.header;
        // A discarded session holds nothing that could be committed.
        return if header.imported == Some(identity) && header.status() != Status::Discarded {
            Ok(Arrived::Before(head.id))
        } else {
            Err(already_here(head.id))
        };
    }
    let arriving = store.expect(fs, &head.id)?;
    match receive(fs, store, receiving, &head, mapping, &arriving) {
        Ok(header) => {
            let (locked, name) = store.welcome(fs, arriving, header)?;
            Ok(Arrived::New(Box::new(locked), name))
        }
        Err(error) => {
            // The first error counts. Leftovers have no name, and go with the next sweep.
            drop(store.turn_away(fs, arriving));
            Err(error)
        }
    }
}

fn check_head(head: &Head) -> Result<(), Error> {
    if let Some(name) = &head.name {
        id::check_name(name).map_err(|why| broken(format!("the session's name is invalid: {why}")))?;
    }
    if u32::try_from(head.changes).is_err() {
        return Err(broken("it counts more changes than a session can have"));
    }
    if head.command.as_ref().is_some_and(|command| command.chars().count() > 200) {
        return Err(broken("the start of its command is too long"));
    }
    if head.by.as_ref().is_some_and(|by| !by.is_short()) {
        return Err(broken("what it says of its agent is too long"));
    }
    Ok(())
}

/// Receives everything but the session's name. Durable when it returns.
fn receive(
    fs: &Fs,
    store: &Store,
    mut receiving: Receiving<'_>,
    head: &Head,
    mapping: &Mapping,
    arriving: &Arriving,
) -> Result<Header, Error> {
    let dir = &arriving.dir;
    let objects = part(dir, b"held/objects")?;
    let keeping = head.checkpoint.then(|| Keeping::begin(fs, dir)).transpose()?;
    let mut taking = ImportState {
        fs,
        keeping,
        store,
        mapping,
        objects: &objects,
        of: head.changes,
        list: Vec::new(),
        directory_times: Vec::new(),
        by_number: HashMap::new(),
        held: HashMap::new(),
        open: None,
        bytes: 0,
        unsynced: Vec::new(),
    };
    let stream = loop {
        interrupt::check().at("go on with", "standard input")?;
        match receiving.next()? {
            Record::Change(body) => taking.change(parse(body)?)?,
            Record::DirectoryTime(body) => taking.directory_time(parse(body)?)?,
            Record::Object(object) => taking.object(object)?,
            Record::Data(at, bytes) => taking.data(at, bytes)?,
            Record::Sum(hash) => taking.sum(hash)?,
            Record::End(hash) => break hash,
        }
    };
    let parts = taking.finish()?;
    let (is_in, bytes) = (parts.keeping.is_some(), parts.bytes);
    let changes = sync_content(fs, &objects, parts)?;
    let sizes = if is_in { Sizes { checkpoint: bytes, ..Sizes::default() } } else { Sizes { held: bytes, ..Sizes::default() } };
    let header = Header { imported: Some(mapping.identity(stream)), ..header_of(head, store, &changes, sizes) };
    if let Some(history) = &head.run {
        let at = dir.at(b"run.json");
        fs.replace(at, &crate::tree::text(&run_of(history, head.by.as_ref())))?;
    }
    let own = dir.open_below(b"")?;
    Session::new(own, header.clone()).rewrite(fs, &changes, header.lines)?;
    Ok(header)
}

fn header_of(head: &Head, store: &Store, changes: &Changes, sizes: Sizes) -> Header {
    let header = Header {
        name: head.name.clone(),
        command: head.command.clone(),
        // A stream says what it likes: an agent that brought it is no person.
        by: head.by.clone().or_else(|| store.by.clone()),
        beside: head.checkpoint || store.by.is_some(),
        unsynced: head.unsynced,
        lines: (changes.list.len() + changes.directory_times.len()) as u64,
        counts: Counts { changes: changes.list.len() as u64, ..Counts::default() },
        sizes,
        failed: head.run.as_ref().and_then(|history| Failed::of(history.ending, None)),
        ..Header::new(head.id.clone(), 0, head.origin, head.created)
    };
    if head.checkpoint { header.sealing(&vec![Side::In; changes.list.len()]) } else { header }
}

/// Makes all content durable, with its names.
fn sync_content(fs: &Fs, objects: &Dir, parts: ImportedParts<'_>) -> Result<Changes, Error> {
    let ImportedParts { changes, unsynced, many, keeping, .. } = parts;
    if let Some(keeping) = keeping {
        keeping.finish(&changes)?;
    } else if many {
        fs.sync_fs(objects)?; // D7
    } else {
        let files: Vec<_> = unsynced.iter().map(|file| (file, objects.path())).collect();
        fs.sync_all(&files)?; // D1: content before the lines that name it
    }
    fs.sync_dir(objects)?; // D2
    Ok(changes)
}

/// The record of a run on another machine. Its objects lie in `held/objects`, and no command can go on in it.
fn run_of(history: &History, by: Option<&ActingAgent>) -> Run {
    Run {
        command: CommandRecord {
            argv: history.argv.clone(),
            label: None,
            cwd: history.cwd.clone(),
            by: by.cloned(),
            started: history.started,
            ending: history.ending,
            took: None,
            service: None,
        },
        uid: history.uid,
        first: None,
        beside: Vec::new(),
        boot: String::new(),
        places: Vec::new(),
        coverage: Vec::new(),
        notes: vec!["imported: the command ran on another machine, or in another store".into()],
        scratch: Vec::new(),
        keeps_nothing_before: false,
        in_memory: true,
    }
}

/// From this many files on, their file system is synced as a whole (docs/ARCHITECTURE.md, D7).
const MANY: usize = 16;
/// The most bytes of holes that are hashed: a short stream can claim holes without limit. Beyond that the hash is believed until the
/// commit, which reads all content before it changes anything (docs/ARCHITECTURE.md, I11).
const HOLES_HASHED: u64 = 1 << 30;

/// The state of reading a stream.
struct ImportState<'a> {
    fs: &'a Fs,
    /// Set if the stream has a checkpoint.
    keeping: Option<Keeping<'a>>,
    store: &'a Store,
    mapping: &'a Mapping,
    objects: &'a Dir,
    of: u64,
    list: Vec<Change>,
    directory_times: Vec<DirectoryTime>,
    /// The index in `list` of a change, by its number.
    by_number: HashMap<u32, usize>,
    /// The hash of a change's held content, once it is whole.
    held: HashMap<u32, Hash>,
    open: Option<Open>,
    bytes: u64,
    unsynced: Vec<File>,
}

/// An object whose content is being received.
struct Open {
    n: u32,
    file: File,
    size: u64,
    at: u64,
    hasher: Hasher,
    /// Bytes of its holes.
    holes: u64,
}

struct ImportedParts<'a> {
    keeping: Option<Keeping<'a>>,
    changes: Changes,
    bytes: u64,
    unsynced: Vec<File>,
    many: bool,
}

impl<'a> ImportState<'a> {
    fn change(&mut self, mut change: Change) -> Result<(), Error> {
        if self.list.len() as u64 == self.of {
            return Err(broken("it holds more changes than it counts"));
        }
        change.path = self.mapping.map(&change.path)?;
        self.refuse_store(&change.path, change.before.object.as_ref(), change.after.as_ref())?;
        if matches!(change.before.object, Some(State { what: What::File { hash: None, .. }, .. })) {
            return Err(broken(format!("{}: the hash of its content before the change is missing", change.path)));
        }
        change.before.print = None;
        if self.keeping.is_some() && matches!(change.after, Some(State { what: What::File { hash: None, .. }, .. })) {
            return Err(broken(format!("{}: the hash of its content after the change is missing", change.path)));
        }
        if !is_file(&change) {
            // Any other object than a file is made from its record, each by itself.
            change.marks.linked = false;
        }
        if self.by_number.insert(change.n, self.list.len()).is_some() {
            return Err(broken("two changes have one number"));
        }
        self.list.push(change);
        Ok(())
    }

    fn directory_time(&mut self, mut time: DirectoryTime) -> Result<(), Error> {
        time.path = self.mapping.map(&time.path)?;
        if self.store.holds(&time.path) {
            return Err(bad_path(time.path, "it lies in recant's own store"));
        }
        self.directory_times.push(time);
        Ok(())
    }

    /// Refuses a change of recant's own files, or one that removes a directory above them.
    fn refuse_store(&self, path: &AbsPath, before: Option<&State>, after: Option<&State>) -> Result<(), Error> {
        let stays = before.is_some_and(State::is_dir) && after.is_some_and(State::is_dir);
        if self.store.holds(path) || self.store.path.is_under(path) && !stays {
            return Err(bad_path(path, "it holds recant's own store, or lies in it"));
        }
        Ok(())
    }

    fn object(&mut self, object: Object) -> Result<(), Error> {
        self.refuse_open()?;
        let state = self.by_number.get(&object.n).and_then(|at| self.coming(&self.list[*at]));
        let Some(State { what: What::File { size, hash, .. }, .. }) = state else {
            return Err(broken("there is content for no change of a file"));
        };
        let (size, known) = (*size, *hash);
        if self.held.contains_key(&object.n) {
            return Err(broken("there is content for one change twice"));
        }
        let name = match (&mut self.keeping, known) {
            // Every `before` has a hash, or its change was refused.
            (Some(keeping), Some(hash)) => keeping.name(object.n, hash),
            _ => name(object.n),
        };
        if let Some(keeping) = &mut self.keeping {
            keeping.note_names(object);
        }
        let Some(first) = object.link else {
            let at = self.directory().at(&name);
            let file = self.fs.create(at, 0o600)?;
            self.open = Some(Open { n: object.n, file, size, at: 0, hasher: Hasher::default(), holes: 0 });
            return Ok(());
        };
        let same_size = |at: &usize| self.coming(&self.list[*at]).is_some_and(|state| state.size() == size);
        let (Some(hash), true) = (self.held.get(&first).copied(), self.by_number.get(&first).is_some_and(same_size)) else {
            return Err(broken("a further name of a file comes before its first"));
        };
        let (directory, first) = (self.directory(), self.name(first, hash));
        self.fs.link(directory.at(&first), directory.at(&name))?;
        self.whole(object.n, hash)
    }

    /// The object of a change whose content is received.
    fn coming<'c>(&self, change: &'c Change) -> Option<&'c State> {
        if self.keeping.is_some() { change.before.object.as_ref() } else { change.after.as_ref() }
    }

    fn directory(&self) -> &Dir {
        self.keeping.as_ref().map_or(self.objects, Keeping::blobs)
    }

    /// The name of content that was received.
    fn name(&self, n: u32, hash: Hash) -> Vec<u8> {
        self.keeping.as_ref().map_or_else(|| name(n), |keeping| keeping.name_of(n, hash))
    }

    fn data(&mut self, at: u64, bytes: &[u8]) -> Result<(), Error> {
        let Some(open) = &mut self.open else { return Err(broken("there is content without a change")) };
        let end = at.checked_add(bytes.len() as u64).filter(|end| *end <= open.size && at >= open.at && !bytes.is_empty());
        let Some(end) = end else { return Err(broken("a piece of content is out of place")) };
        open.skip(at).at("go on with", "standard input")?;
        open.hasher.update(bytes);
        self.fs.write_at(&open.file, bytes, at, self.objects.at(b"."))?;
        open.at = end;
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    fn sum(&mut self, told: Hash) -> Result<(), Error> {
        let Some(mut open) = self.open.take() else { return Err(broken("there is a hash without content")) };
        if open.at < open.size {
            open.skip(open.size).at("go on with", "standard input")?;
            self.fs.set_size(&open.file, open.size, self.objects.at(b"."))?;
        }
        if open.holes <= HOLES_HASHED && open.hasher.finish() != told {
            return Err(broken("content does not match its hash"));
        }
        if self.unsynced.len() < MANY {
            self.unsynced.push(open.file);
        }
        self.whole(open.n, told)
    }

    /// Notes that a change's content is whole. It has to be what the record says, if that says it.
    fn whole(&mut self, n: u32, hash: Hash) -> Result<(), Error> {
        let keeping = self.keeping.is_some();
        let change = self.by_number.get(&n).map(|at| &mut self.list[*at]);
        let state = change.and_then(|change| if keeping { change.before.object.as_mut() } else { change.after.as_mut() });
        if let Some(State { what: What::File { hash: known, .. }, .. }) = state
            && *known.get_or_insert(hash) != hash
        {
            return Err(broken("content does not match the record of its change"));
        }
        self.held.insert(n, hash);
        Ok(())
    }

    fn refuse_open(&self) -> Result<(), Error> {
        if self.open.is_some() { Err(broken("content ends without its hash")) } else { Ok(()) }
    }

    /// Checks that all of it belongs together. Else none of it is believed.
    fn finish(mut self) -> Result<ImportedParts<'a>, Error> {
        self.refuse_open()?;
        if self.list.len() as u64 != self.of {
            return Err(broken("it holds fewer changes than it counts"));
        }
        let is_file = |state: &State| matches!(state.what, What::File { .. });
        for change in self.list.iter().filter(|change| self.coming(change).is_some_and(is_file)) {
            match (self.held.get(&change.n), change.in_place()) {
                (Some(_), false) | (None, true) => {}
                (None, false) => return Err(broken(format!("{}: its content is missing", change.path))),
                // Now known to be what is already there: the inode stays, and nothing needs the content.
                (Some(hash), true) => {
                    let name = self.name(change.n, *hash);
                    self.fs.unlink(self.directory().at(&name))?;
                }
            }
        }
        // Mapping changes the order of paths.
        self.list.sort_by(|a, b| a.path.cmp(&b.path));
        let times: BTreeMap<AbsPath, DirectoryTime> =
            self.directory_times.into_iter().map(|time| (time.path.clone(), time)).collect();
        let changes = Changes { list: self.list, directory_times: times.into_values().collect() };
        if let Some((path, why)) = changes.contradiction() {
            return Err(broken(format!("{path} {why}")));
        }
        let many = self.held.len() >= MANY;
        Ok(ImportedParts { changes, bytes: self.bytes, unsynced: self.unsynced, many, keeping: self.keeping })
    }
}

impl Open {
    fn skip(&mut self, to: u64) -> std::io::Result<()> {
        let hole = to - self.at;
        self.holes = self.holes.saturating_add(hole);
        if self.holes <= HOLES_HASHED {
            self.hasher.zeros(hole)?;
        }
        Ok(())
    }
}

fn is_file(change: &Change) -> bool {
    matches!(change.after, Some(State { what: What::File { .. }, .. }))
}

/// The name of an object in `held/objects`.
fn name(n: u32) -> Vec<u8> {
    let path = object_name(n);
    path.rsplit(|b| *b == b'/').next().unwrap_or_default().to_vec()
}

/// All paths where the tree differs from the session's record: conflicts of a commit; of a committed session, of a rollback.
pub fn conflicts(session: &Session) -> Result<Vec<Conflict>, Error> {
    let mut roots = Roots::read()?;
    let mut reading = session.read_changes()?;
    let (mut found, is_in) = (Vec::new(), session.header.counts.inside > 0);
    while let Some(change) = reading.next()? {
        let expected = if is_in { change.after } else { change.before.object };
        found.extend(compare(&mut roots, &change.path, &expected)?);
    }
    Ok(found)
}

fn compare(roots: &mut Roots, path: &AbsPath, expected: &Wanted) -> Result<Option<Conflict>, Error> {
    let parent = path.parent().unwrap_or_else(|| path.clone());
    let dir = match roots.directory(&parent) {
        Err(error) if error.leads_nowhere() => {
            // The session makes this directory, or it is missing: nothing can lie in it.
            let missing = || Conflict::of(path, expected, &None, Difference::Presence);
            return Ok(expected.is_some().then(missing));
        }
        dir => dir?,
    };
    let (seen, likeness) = match observe::compare(dir.at(path.name()), expected, None) {
        Err(error) if error.errno() == Some(libc::EACCES) => {
            return Ok(Some(Conflict::because(path, "you may not read it")));
        }
        found => found?,
    };
    let difference = match likeness {
        Likeness::Same => return Ok(None),
        Likeness::ReadToTell => Difference::Content,
        Likeness::Differs(difference) => difference,
    };
    Ok(Some(Conflict::of(path, expected, &seen.map(|seen| seen.state), difference)))
}
