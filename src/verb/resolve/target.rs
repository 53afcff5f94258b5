//! The session that an act is about, and what of it.

use std::path::Path;

use super::named_changes::TypedPath;
use super::wanted_act::Want;
use crate::compare::Picked;
use crate::engine::{Effect, Verb};
use crate::error::Error;
use crate::fs::AbsPath;
use crate::session::{Locked, Part, Store, TakesBack};
use crate::settings::OnLimit;
use crate::verb::act::carry_out::{Act, Conflicts};
use crate::verb::desk::Desk;
use crate::verb::error;
use crate::verb::parts::picks;

/// A session, and what of it: by its id, its last four characters, its name, or `last`.
#[derive(Debug, Clone)]
pub struct Target {
    /// Its id, name, or `last`.
    pub(crate) key: String,
    pub(crate) what: What,
    /// True if the act is only to tell what it would do.
    pub(crate) dry_run: bool,
    /// The reason, for the log.
    pub(crate) reason: Option<String>,
    /// The globs of a person's policy that allow an agent the act.
    pub(crate) policy: Vec<String>,
    /// The act that this one takes back.
    pub(crate) takes_back: Option<TakesBack>,
}

/// The changes of a session that an act is about.
#[derive(Debug, Clone)]
pub enum What {
    All,
    /// Those that an earlier act moved.
    Moved(Part),
    /// Those at and under these paths; blocks of one where numbers stand behind a colon.
    Named(Vec<TypedPath>),
    /// Those that the person takes when asked, of these paths or all.
    Asked(Vec<TypedPath>),
    /// Those that a person picked on a screen.
    Picked(Picked),
    /// Those that recant picked by itself, as a session beside this one, also where they are all of it.
    Beside(Picked),
}

impl What {
    /// Those at and under paths; all if there are none.
    pub fn named(paths: Vec<TypedPath>) -> Self {
        if paths.is_empty() { Self::All } else { Self::Named(paths) }
    }

    /// The words that name it.
    pub fn words(&self) -> &[TypedPath] {
        match self {
            Self::Named(words) | Self::Asked(words) => words,
            _ => &[],
        }
    }

    pub fn picked(&self) -> Option<&Picked> {
        match self {
            Self::Picked(picked) | Self::Beside(picked) => Some(picked),
            _ => None,
        }
    }

    /// The changes that an earlier act moved, if it is about these.
    pub fn moved(&self) -> Option<&Part> {
        match self {
            Self::Moved(part) => Some(part),
            _ => None,
        }
    }
}

impl Target {
    /// All of a session.
    pub fn all(key: impl Into<String>) -> Self {
        Self { key: key.into(), what: What::All, dry_run: false, reason: None, policy: Vec::new(), takes_back: None }
    }

    /// Of it what lies at and under these paths, which are relative to `cwd`, with the directories that they need; all if there are none.
    pub fn at(self, cwd: &Path, paths: impl IntoIterator<Item = impl AsRef<Path>>) -> Self {
        let below = |path| TypedPath::below(cwd, AsRef::as_ref(&path));
        Self { what: What::named(paths.into_iter().map(below).collect()), ..self }
    }

    /// Only to tell what the act would do.
    pub fn dry_run(self) -> Self {
        Self { dry_run: true, ..self }
    }

    pub(crate) fn effect(&self) -> Effect {
        if self.dry_run { Effect::Print } else { Effect::Apply }
    }

    /// Opens the session, and locks it; for a dry run nothing is recovered.
    ///
    /// # Errors
    /// No session is meant, or the verb cannot act on it; something else stands there than was picked.
    pub(crate) fn open<'d>(&self, desk: &'d Desk, want: Want) -> Result<(&'d Store, Locked), Error> {
        let (store, session) = if self.dry_run { desk.to_look_at(&self.key, want)? } else { desk.locked(&self.key, want)? };
        if let Some(picked) = self.what.picked() {
            picks::refuse_changed(picked, &session)?;
        }
        Ok((store, session))
    }

    /// A commit of it, as the settings have that. By a policy all that goes is kept: nobody was asked.
    pub(crate) fn act(&self, desk: &Desk, conflicts: Conflicts) -> Act<'static> {
        let act = Act::new(desk, Verb::Commit, conflicts);
        if self.policy.is_empty() { act } else { Act { on_limit: OnLimit::Full, ..act } }
    }

    /// Notes in a session the purpose of the act to come.
    pub(crate) fn note_purpose(&self, session: &mut Locked) {
        self.takes_back.into_iter().for_each(|act| session.takes_back(act));
        session.for_reason(self.reason.as_deref());
        session.by_policy(&self.policy);
    }

    /// The session's paths that are named; none if all are meant.
    ///
    /// # Errors
    /// A session is named where a path belongs.
    pub(crate) fn paths(&self, store: &Store, session: &Locked, verb: Verb) -> Result<Vec<AbsPath>, Error> {
        if matches!(self.what, What::All | What::Moved(_)) {
            return Ok(Vec::new());
        }
        let changes = session.changes()?;
        if let Some(picked) = self.what.picked() {
            return picks::paths(picked, session, &changes);
        }
        let as_named = |word: &TypedPath| {
            let named = changes.named(word.path())?;
            let is_path = !changes.under(&named).is_empty() || named.as_path().symlink_metadata().is_ok();
            match word.typed().to_str() {
                Some(key) if !is_path && store.find(key, |_| true).is_ok() => Err(error::of_its_own(verb, &self.key, key)),
                _ => Ok(named),
            }
        };
        self.what.words().iter().map(as_named).collect()
    }
}
