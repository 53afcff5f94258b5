//! The two sides of a change, opened to be read: the content before and after.
//!
//! Nothing is invented: a side is read from the tree only if the tree still holds what the session recorded. If it does not, the original that
//! the session keeps stands for it.

use std::fs::File;
use std::rc::Rc;

use crate::checkpoint::{Kept, Manifest, Original, manifest};
use crate::error::{At, Error, IoError, Kind};
use crate::fs::{AbsPath, Dir, Entry, Roots, Shown, Sort, stat_of};
use crate::session::{Change, Checkpoint, Run, Session, Side, part};
use crate::tree::{Likeness, Object, State, What, observe, sort_word};

pub enum Content {
    File(File),
    /// It is not available, for this reason.
    Gone(String),
}

#[derive(Debug, Clone, Copy)]
pub enum End {
    /// The object that was there.
    Before,
    /// The object that is there after it.
    After,
}

/// The state of the tree at a change's path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OnTree {
    /// The object that the session records: `before` while the change is out, `after` while it is in.
    AsRecorded,
    Changed,
    /// It cannot be looked at.
    Unseen(String),
}

impl OnTree {
    /// The message if the tree does not hold what it should.
    pub fn why(&self, side: Side) -> Option<String> {
        match self {
            OnTree::AsRecorded => None,
            OnTree::Changed if side.is_in() => Some("changed on the tree since it was committed".into()),
            OnTree::Changed => Some("changed since: conflict".into()),
            OnTree::Unseen(why) => Some(format!("it cannot be looked at: {why}")),
        }
    }
}

/// The places that contents are read from.
pub struct Sources<'s> {
    session: &'s Session,
    run: Option<Run>,
    originals: Originals,
    roots: Roots,
}

/// The manifest's lines by path: read in step with callers that ask in path order, as a whole only for others.
enum Originals {
    Along(Box<OriginalsInOrder>),
    Whole(Manifest),
}

struct OriginalsInOrder {
    reading: manifest::Reading,
    next: Option<Original>,
    asked: Option<AbsPath>,
}

impl Originals {
    fn of(session: &Session) -> Result<Self, Error> {
        let mut reading = manifest::Reading::of(session)?;
        Ok(Self::Along(Box::new(OriginalsInOrder { next: reading.next()?, reading, asked: None })))
    }

    fn at(&mut self, session: &Session, path: &AbsPath) -> Result<Option<&Original>, Error> {
        if matches!(self, Self::Along(along) if along.asked.as_ref().is_some_and(|last| path < last)) {
            *self = Self::Whole(Manifest::of(session)?);
        }
        match self {
            Self::Whole(manifest) => Ok(manifest.originals.get(path)),
            Self::Along(along) => along.at(path),
        }
    }
}

impl OriginalsInOrder {
    fn at(&mut self, path: &AbsPath) -> Result<Option<&Original>, Error> {
        while self.next.as_ref().is_some_and(|next| next.path < *path) {
            self.next = self.reading.next()?;
        }
        self.asked = Some(path.clone());
        Ok(self.next.as_ref().filter(|next| next.path == *path))
    }
}

impl<'s> Sources<'s> {
    pub fn of(session: &'s Session) -> Result<Self, Error> {
        let roots = Roots::read()?;
        Ok(Self { session, run: session.run()?, originals: Originals::of(session)?, roots })
    }

    /// Tells whether the tree still holds what the session recorded there.
    pub fn on_tree(&mut self, change: &Change, side: Side) -> OnTree {
        let (expected, print) = match side {
            Side::In => match self.originals.at(self.session, &change.path) {
                Ok(original) => (&change.after, original.and_then(|original| original.put)),
                Err(error) => return OnTree::Unseen(error.to_string()),
            },
            Side::Never => (&change.before.object, change.before.print),
            // It was put back by a rollback, with a new fingerprint.
            Side::Out | Side::Lost => (&change.before.object, None),
        };
        let directory = match self.directory(&change.path) {
            Ok(directory) => directory,
            Err(_) if expected.is_none() => return OnTree::AsRecorded,
            Err(error) if is_missing(&error) => return OnTree::Changed,
            Err(error) => return OnTree::Unseen(error.why()),
        };
        match observe::compare(directory.at(change.path.name()), expected, print.as_ref()) {
            Ok((_, Likeness::Same)) => OnTree::AsRecorded,
            Ok(_) => OnTree::Changed,
            Err(error) => OnTree::Unseen(error.why()),
        }
    }

    pub fn open(&mut self, change: &Change, side: Side, end: End) -> Result<Content, Error> {
        let on_tree = self.on_tree(change, side);
        match end {
            End::Before => self.before(change, side, &on_tree),
            End::After => self.after(change, side, &on_tree),
        }
    }

    /// The content that a file had before the session.
    pub fn before(&mut self, change: &Change, side: Side, on_tree: &OnTree) -> Result<Content, Error> {
        if side.is_in() && !change.in_place() {
            return self.original(change);
        }
        if *on_tree == OnTree::Changed
            && !side.is_in()
            && let Some(kept) = self.base(change)?
        {
            return Ok(Content::File(kept));
        }
        self.read_tree(change, side, on_tree)
    }

    /// The content that a file has after the session.
    pub fn after(&mut self, change: &Change, side: Side, on_tree: &OnTree) -> Result<Content, Error> {
        if side == Side::Lost {
            return Ok(Content::Gone("what was committed was edited since, and is lost".into()));
        }
        match Session::held_at(change, side, self.run.as_ref()) {
            Some(held) => {
                let opened = self.session.split(&held).and_then(|(dir, name)| open(dir.at(name), &change.after));
                match opened {
                    Err(_) if self.session.is_so_far() => Ok(Content::Gone("the command has changed it meanwhile".into())),
                    opened => opened,
                }
            }
            None => self.read_tree(change, side, on_tree),
        }
    }

    /// The content that a commit put on the tree, if the session keeps it.
    pub fn committed(&mut self, change: &Change) -> Result<Content, Error> {
        let gone = || Content::Gone("no copy of what the commit put there is kept (capture.keep_before)".into());
        Ok(self.session.committed(change)?.map_or_else(gone, Content::File))
    }

    /// The content that a step wrote at `path`, from its upper; `object` is what was recorded of it. What no commit put on the tree may have
    /// been let go since then.
    pub fn written(&self, step: u32, path: &AbsPath, object: &Object) -> Result<Content, Error> {
        let gone = || Content::Gone(format!("what step {step} wrote is no longer held"));
        let Some(held) = self.run.as_ref().filter(|run| !run.in_memory).and_then(|run| run.upper_of(Some(step), path)) else {
            return Ok(gone());
        };
        let held = [b"held/", &*held].concat();
        let found = self.session.split(&held).and_then(|(dir, name)| open(dir.at(name), object));
        match found {
            Ok(Content::File(file)) => {
                let mtime = stat_of(&file).at("look at", path)?.mtime;
                let is_it = object.as_ref().is_some_and(|state| state.meta.mtime == mtime);
                Ok(if is_it { Content::File(file) } else { gone() })
            }
            Err(error) if error.kind() == Kind::Damaged && self.lets_go() => Ok(gone()),
            found => found,
        }
    }

    /// True if contents of steps may have been let go: after a commit, or as older steps were merged.
    fn lets_go(&self) -> bool {
        let header = &self.session.header;
        header.generation > 0 || header.steps.as_ref().is_some_and(|steps| steps.floor > 0) || self.session.is_so_far()
    }

    /// The original of a change that is in, from the checkpoint.
    fn original(&mut self, change: &Change) -> Result<Content, Error> {
        match self.original_at(change)? {
            Ok((place, state)) => {
                let (dir, name) = self.session.split(&place)?;
                open(dir.at(name), &state)
            }
            Err(why) => Ok(Content::Gone(why)),
        }
    }

    /// The place of the original of a change that is in, below the session's directory, and the object; or why there is none.
    ///
    /// # Errors
    /// The manifest cannot be read.
    pub fn original_at(&mut self, change: &Change) -> Result<Result<(Vec<u8>, Object), String>, Error> {
        if self.session.header.checkpoint == Checkpoint::Pruned {
            return Ok(Err("its original was pruned with the checkpoint".into()));
        }
        let original = self.originals.at(self.session, &change.path)?;
        let Some(original) = original.filter(|original| original.n == change.n) else {
            return Ok(Err("the checkpoint has no line for it".into()));
        };
        if let Kept::Uncovered { why } = &original.kept {
            return Ok(Err(format!("its original is not kept: {why}")));
        }
        let place = original.place().map(|place| (place, original.state.clone()));
        Ok(place.ok_or_else(|| "the checkpoint keeps no content of it".into()))
    }

    /// The object that the tree holds at `path` now, by its metadata alone: content is not read. A path that leads nowhere holds nothing.
    pub fn now(&mut self, path: &AbsPath) -> Result<Object, IoError> {
        match self.directory(path) {
            Ok(directory) => Ok(observe::object(directory.at(path.name()))?.map(|seen| seen.state)),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The content of the file that the tree holds at `path` now.
    pub fn content_now(&mut self, path: &AbsPath) -> Content {
        let opened = self.directory(path).and_then(|directory| directory.at(path.name()).open_file());
        opened.map_or_else(|error| Content::Gone(format!("it cannot be read: {}", error.why())), Content::File)
    }

    /// The object that the rollback of a change that is in restores: by the checkpoint, else by the change itself.
    pub fn original_object(&mut self, change: &Change) -> Result<Object, Error> {
        let original = self.originals.at(self.session, &change.path)?;
        Ok(original.filter(|original| original.n == change.n).map_or(&change.before.object, |original| &original.state).clone())
    }

    /// The content that the file had before the change, if the session keeps it.
    pub fn base(&self, change: &Change) -> Result<Option<File>, Error> {
        self.session.original(change)
    }

    /// The content that a commit would put on the tree; for a change that is in, that of a rollback.
    pub fn held(&mut self, change: &Change, side: Side) -> Result<Content, Error> {
        if side.is_in() { self.original(change) } else { self.after(change, side, &OnTree::Changed) }
    }

    /// The object that `--force` overwrote last at `path`, and its content.
    pub fn displaced(&self, path: &AbsPath) -> Result<Option<(Object, Content)>, Error> {
        let directory = part(&self.session.dir, b"displaced")?;
        let names = directory.names()?;
        let mut generations: Vec<u64> = names.iter().filter_map(|name| std::str::from_utf8(name).ok()?.parse().ok()).collect();
        generations.sort_unstable();
        for generation in generations.iter().rev() {
            let name = generation.to_string().into_bytes();
            let at = directory.at(&name);
            let manifest = Manifest::read_in(&at.open_dir()?)?;
            if let Some(original) = manifest.originals.get(path)
                && let Some(place) = original.place()
            {
                let content = match original.state.as_ref().map(State::sort) {
                    Some(Sort::File) => {
                        let (dir, name) = self.session.split(&place)?;
                        match dir.at(name).stat()? {
                            Some(_) => open(dir.at(name), &original.state)?,
                            None => Content::Gone("it is no longer kept: it was put back".into()),
                        }
                    }
                    sort => {
                        let (what, session) = (sort.map_or("name", sort_word), self.session.dir.path().display());
                        let place = Shown(&place);
                        Content::Gone(format!("it was a {what}, which has no content to print; it is kept as {session}/{place}"))
                    }
                };
                return Ok(Some((original.state.clone(), content)));
            }
        }
        Ok(None)
    }

    fn read_tree(&mut self, change: &Change, side: Side, on_tree: &OnTree) -> Result<Content, Error> {
        match on_tree {
            OnTree::AsRecorded => {}
            other => return Ok(Content::Gone(other.why(side).unwrap_or_default())),
        }
        let opened = self.directory(&change.path).and_then(|directory| directory.at(change.path.name()).open_file());
        Ok(opened.map_or_else(|error| Content::Gone(error.why()), Content::File))
    }

    fn directory(&mut self, path: &AbsPath) -> Result<Rc<Dir>, IoError> {
        let no_parent = || std::io::Error::other("the root directory lies in no directory");
        let parent = path.parent().ok_or_else(no_parent).at("look at", path)?;
        self.roots.directory(&parent)
    }
}

/// Opens an object in the session. A size that differs from the recorded one is damage.
fn open(at: Entry<'_>, expected: &Object) -> Result<Content, Error> {
    let damaged = |why: &str| crate::session::damaged(at, why);
    let file = match at.open_file() {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(damaged("it is missing"));
        }
        Err(error) => return Err(error.into()),
    };
    let size = stat_of(&file).at("look at", at)?.size;
    match expected.as_ref().map(|state| &state.what) {
        Some(What::File { size: recorded, .. }) if *recorded != size => Err(damaged("it has another size than recorded")),
        _ => Ok(Content::File(file)),
    }
}

fn is_missing(error: &IoError) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}
