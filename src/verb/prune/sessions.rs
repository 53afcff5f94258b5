//! `prune --sessions`, `--checkpoints` and `--discarded`: what nothing needs any more, or what is named.

use std::collections::HashMap;

use super::damaged;
use super::kind::{Kind, Loss};
use super::question::Prune;
use super::report::{Sessions, Skipped};
use crate::error::{Error, Kind as ErrorKind};
use crate::fs::{OnSignal, interrupt};
use crate::session::{Header, Id, Locked, Remains, Store, Which, is_needed, log, prune_sessions};
use crate::verb::desk::Desk;
use crate::verb::discard::is_done;
use crate::verb::error::{self, IS_CHANGED, IS_HELD, IS_INTERRUPTED, WAITS_FOR_CONFIRMATION};
use crate::verb::prunable::Committed;
use crate::verb::question::Question;
use crate::verb::resolve::guard;
use crate::verb::resolve::wanted_act::Want;

/// The sessions to prune: those that are named, else those that fit the conditions.
#[derive(Debug)]
pub struct Wanted {
    pub ids: Vec<String>,
    /// Without any, those of the settings.
    pub which: Which,
    pub committed: Committed,
    /// True if nothing is to be changed.
    pub dry_run: bool,
}

/// Prunes sessions, or what they keep. An error that stops it is in the value, if something went before.
///
/// # Errors
/// Neither names nor conditions are given or set; what is named cannot go; the answer is no, or nobody can be asked.
pub fn prune(desk: &Desk, kind: Kind, wanted: &Wanted) -> Result<Sessions, Error> {
    let mut done = Sessions { dry_run: wanted.dry_run, kind, ..Sessions::default() };
    let Some(store) = desk.store()? else {
        return wanted.ids.first().map_or(Ok(done), |key| desk.store_with(key).map(|_| Sessions::default()));
    };
    let pruning = Pruning { desk, store, kind, wanted };
    if !pruning.is_named() {
        pruning.refuse_unbounded()?;
        done.damaged = store.headers()?.1;
    }
    // Refused before the question.
    for header in pruning.chosen()?.iter().filter(|_| pruning.is_named()) {
        guard::refuse_waiting(header, "prune")?;
    }
    if wanted.dry_run {
        pruning.tell(&mut done)?;
    } else {
        let consent = pruning.ask()?;
        match pruning.carry_out(&consent, &mut done) {
            Err(error) if done.pruned.is_empty() => return Err(error),
            carried_out => done.stopped = carried_out.err(),
        }
        desk.clear_away(store);
    }
    if !pruning.is_named() && wanted.committed == Committed::Stays {
        done.committed = pruning.by_conditions(Committed::May)?.iter().filter(|header| is_needed(header)).count() as u64;
    }
    Ok(done)
}

/// The sessions that may go, as far as a person has agreed.
pub(super) enum Consent {
    /// All that fit: the conditions of the call are the consent.
    Any,
    /// These of those that fit: others have come to fit since.
    These(Vec<Id>),
    /// These, which were named, as long as they lose the same.
    Named(Vec<(Id, Vec<Loss>)>),
}

/// A prune under way.
pub(super) struct Pruning<'a> {
    pub desk: &'a Desk,
    pub store: &'a Store,
    pub kind: Kind,
    pub wanted: &'a Wanted,
}

impl Pruning<'_> {
    /// True if sessions are named; else conditions choose them.
    fn is_named(&self) -> bool {
        !self.wanted.ids.is_empty()
    }

    fn chosen(&self) -> Result<Vec<Header>, Error> {
        if self.is_named() { self.by_name() } else { self.by_conditions(self.wanted.committed) }
    }

    fn tell(&self, done: &mut Sessions) -> Result<(), Error> {
        for header in self.chosen()? {
            done.bytes += self.kind.size(self.store, &header)?;
            done.pruned.push(header.id);
        }
        self.damaged()?.iter().try_for_each(|remains| damaged::take_along(self.desk, self.store, remains, done))
    }

    /// Prunes what was agreed to, and records each. A signal stops it between two sessions.
    pub fn carry_out(&self, consent: &Consent, done: &mut Sessions) -> Result<(), Error> {
        let Self { desk, store, .. } = *self;
        let lock = desk.store_lock(store)?;
        desk.recover_under(store, &lock)?;
        store.journals_last(&desk.fs)?;
        let journaled = store.journaled()?;
        let damaged = self.damaged()?;
        let _noting = interrupt::note(OnSignal::Stops);
        let is_agreed = |id: &Id| !matches!(consent, Consent::These(ids) if !ids.contains(id));
        for Header { id, .. } in self.chosen()?.into_iter().filter(|header| is_agreed(&header.id)) {
            refuse_signal()?;
            if let Some(why) = self.drop_one(&id, consent, &journaled, done)? {
                done.skipped.push(Skipped { id, why });
            }
        }
        for remains in damaged {
            refuse_signal()?;
            let id = remains.id.clone();
            let why = if journaled.contains(&id) { Some(IS_INTERRUPTED) } else { damaged::remove(desk, store, remains, done)? };
            done.skipped.extend(why.map(|why| Skipped { id, why }));
        }
        Ok(())
    }

    /// Drops what is to go of a session. Returns the reason why it stays, if it does and was to go.
    fn drop_one(&self, id: &Id, consent: &Consent, journaled: &[Id], done: &mut Sessions) -> Result<Option<&'static str>, Error> {
        if journaled.contains(id) {
            return Ok(Some(IS_INTERRUPTED));
        }
        let session = match self.store.lock_session(&self.desk.fs, id) {
            Err(error) if error.kind() == ErrorKind::Busy => return Ok(Some(IS_HELD)),
            session => session?,
        };
        let header = &session.header;
        // Something has come to need it, and nobody named it.
        if !self.is_named() && !self.kind.may_go(self.store, header, self.wanted.committed)? {
            return Ok(None);
        }
        if header.waits().is_some() {
            return Ok(Some(WAITS_FOR_CONFIRMATION));
        }
        if let Consent::Named(asked) = consent
            && !asked.contains(&(id.clone(), self.kind.losses(self.store, header)?))
        {
            return Ok(Some(IS_CHANGED));
        }
        self.remove(session, done).map(|()| None)
    }

    fn remove(&self, session: Locked, done: &mut Sessions) -> Result<(), Error> {
        let Self { desk, kind, store, .. } = *self;
        let header = session.header.clone();
        let bytes = kind.size(store, &header)?;
        let removed = kind.remove(&desk.fs, store, session);
        if is_done(&removed) {
            let entry = log::Entry::new(kind.logged(), &header.id, header.generation, "done", header.counts.changes);
            desk.note_in_log(store, &entry.of(&header));
        }
        removed?;
        done.bytes += bytes;
        done.pruned.push(header.id);
        Ok(())
    }

    /// The named sessions whose header is unreadable. Only a whole id names them: nothing else of them is certain.
    fn damaged(&self) -> Result<Vec<Remains>, Error> {
        let mut found: Vec<Remains> = Vec::new();
        for id in self.wanted.ids.iter().filter_map(|key| Id::parse(key)).filter(|_| self.kind == Kind::Sessions) {
            if !found.iter().any(|known| known.id == id)
                && let Some(remains) = self.store.remains(&id)?
            {
                found.push(remains);
            }
        }
        Ok(found)
    }

    fn by_name(&self) -> Result<Vec<Header>, Error> {
        let damaged = self.damaged()?;
        let mut headers: Vec<Header> = Vec::new();
        for key in &self.wanted.ids {
            let id = self.desk.find(self.store, Some(key), Want::Tend)?;
            if id.as_str() == key && damaged.iter().any(|remains| remains.id == id) {
                continue;
            }
            let header = self.store.session(&id)?.header;
            if !headers.iter().any(|known| known.id == header.id) {
                headers.push(header);
            }
        }
        Ok(headers)
    }

    /// The conditions of the call, or those of the settings if it has none.
    fn conditions(&self) -> Which {
        match self.wanted.which {
            given if given.is_unbounded() && self.kind != Kind::Discarded => by_settings(self.desk),
            given => given,
        }
    }

    fn refuse_unbounded(&self) -> Result<(), Error> {
        if self.kind != Kind::Discarded && self.conditions().is_unbounded() {
            Err(error::which(self.kind, self.wanted.committed))
        } else {
            Ok(())
        }
    }

    /// The sessions that fit the conditions.
    pub fn by_conditions(&self, committed: Committed) -> Result<Vec<Header>, Error> {
        let Self { kind, store, .. } = *self;
        let (headers, _) = store.headers()?;
        let mut prunable = Vec::new();
        // Until when a discard can be undone retention.discarded has said: other settings do not end that.
        let stays = |header: &Header| self.wanted.which.is_unbounded() && kind == Kind::Sessions && header.is_aside();
        for header in headers.iter().filter(|header| !stays(header)) {
            if kind.may_go(store, header, committed)? {
                prunable.push(header);
            }
        }
        let conditions = self.conditions();
        let mut sizes = HashMap::new();
        // Computed only if needed: it reads every directory.
        for header in prunable.iter().filter(|_| conditions.max_size.is_some()) {
            sizes.insert(&header.id, kind.size(store, header)?);
        }
        let size = |header: &Header| sizes.get(&header.id).copied().unwrap_or(0);
        Ok(prune_sessions::choose(&prunable, conditions, crate::fs::now(), size).into_iter().cloned().collect())
    }

    fn ask(&self) -> Result<Consent, Error> {
        if self.is_named() { self.ask_of_named() } else { self.ask_of_chosen() }
    }

    /// Shows what fits the conditions, and asks, at a terminal. Without one, conditions of the call count as consent, those of the settings
    /// do not.
    fn ask_of_chosen(&self) -> Result<Consent, Error> {
        let Self { desk, kind, .. } = *self;
        if desk.yes || !desk.can_ask && !self.wanted.which.is_unbounded() {
            return Ok(Consent::Any);
        }
        let headers = self.chosen()?;
        if !headers.is_empty() {
            let bytes = kind.sizes(self.store, &headers)?;
            if !desk.can_ask {
                return Err(error::prunes_unasked(kind, headers.len() as u64, bytes));
            }
            desk.confirm(Question::Prune(Prune::Chosen { kind, headers: &headers, bytes }))?;
        }
        Ok(Consent::These(headers.into_iter().map(|header| header.id).collect()))
    }

    /// Asks before held changes and rollbacks are lost for good.
    fn ask_of_named(&self) -> Result<Consent, Error> {
        let Self { desk, kind, store, .. } = *self;
        // Recovers first, so that this recant does not change what it asks about.
        desk.prepare_to_change(store)?;
        let losses = |header: &Header| Ok((header.id.clone(), kind.losses(store, header)?));
        let asked = self.chosen()?.iter().map(losses).collect::<Result<Vec<_>, Error>>()?;
        let losing = |loss| asked.iter().filter(move |(_, losses)| losses.contains(&loss)).map(|(id, _)| id.clone());
        let confirm = |ids: &[Id], loss| {
            if ids.is_empty() { Ok(()) } else { desk.confirm(Question::Prune(Prune::Named { kind, ids, loss })) }
        };
        for loss in [Loss::Redo, Loss::Rollback, Loss::Held] {
            confirm(&losing(loss).collect::<Vec<_>>(), loss)?;
        }
        for id in losing(Loss::Overwritten) {
            confirm(&[id], Loss::Overwritten)?;
        }
        for remains in self.damaged()? {
            confirm(&[remains.id], Loss::Damaged)?;
        }
        Ok(Consent::Named(asked))
    }
}

/// The limits of the settings.
pub(super) fn by_settings(desk: &Desk) -> Which {
    Which { older_than: desk.config.older_than.value, keep: desk.config.keep.value, max_size: None }
}

/// Stops between two of them if a signal came.
pub(super) fn refuse_signal() -> Result<(), Error> {
    interrupt::check().map_err(|asked| Error::refused(asked.to_string()))
}
