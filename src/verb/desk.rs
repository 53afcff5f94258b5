//! The desk of a verb: the store, the settings, and who calls. It knows no verb.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use super::error::{self, is_inside};
use super::fact::{Collected, Fact};
use super::parts::select::Selection;
use super::question::{Choosing, Question};
use crate::capture::{Inside, capture};
use crate::compare::{Names, Sources};
use crate::engine::{Progress, Recovered};
use crate::error::Error;
use crate::fs::{AbsPath, Dir, Fs, Lock, interrupt};
use crate::session::{ActingAgent, Id, Store};
use crate::settings::Settings;

/// Who calls, by the environment, and how that one is spoken to.
pub trait Caller {
    /// The store's path, absolute.
    ///
    /// # Errors
    /// None is known, or what names it is no path.
    fn store_path(&self) -> Result<AbsPath, Error>;
    /// The agent that calls, with its turn as the store knows it; `None` for a person.
    fn by(&self, store: &Dir) -> Option<ActingAgent>;
    /// The variable that tells of an agent.
    fn variable(&self) -> Option<&'static str>;
    /// Tells a fact while the verb works.
    fn tell(&self, said: Fact<'_>);
    /// Asks the person; true for yes. No answer counts as no.
    fn ask(&self, question: Question<'_>) -> bool;
    /// Asks the person what is taken.
    ///
    /// # Errors
    /// Nobody can be asked; a content cannot be read.
    fn choose(&self, fs: &Fs, choosing: Choosing<'_>, sources: &mut Sources<'_>) -> Result<Selection, Error>;
    /// The one that sees how far an operation is, until it is dropped.
    fn progress(&self) -> Box<dyn Progress>;
    /// Starts a watcher that rolls a commit back in so many seconds unless it is confirmed, and names it; `None` if none can be.
    fn watch(&self, store: &Store, id: &Id, seconds: i64) -> Option<String>;
}

/// The desk that a verb works at: a store, settings, and who calls. A desk is not `Sync`: each thread opens its own, on one store if it likes.
///
/// **Who may open one.** Nobody needs to be root. A store belongs to one user (mode 0700) and is refused to every other one, root included.
/// Within the run of a command (`recant run`) there is no store to open.
///
/// **Process.** [`Desk::open`] makes the process ignore SIGIO and SIGXFSZ if they would end it; programs that it starts inherit this. No
/// other signal is touched. The first call reads the umask by setting it (umask(2)): make that call before other threads create files.
/// The limit of open files stays as it is: where it is low, fewer directories are kept open.
pub struct Desk {
    pub(crate) fs: Fs,
    pub(crate) config: Settings,
    pub(crate) caller: Rc<dyn Caller>,
    /// True if questions are to be skipped.
    pub(crate) yes: bool,
    /// True if a person sits at a terminal, here or on the near side.
    pub(crate) can_ask: bool,
    /// True if it is carried out for a person at another machine.
    pub(crate) is_far: bool,
    pub(super) store: OnceCell<Option<Store>>,
    /// The session that `last` was reported to be.
    pub(crate) last: RefCell<Option<Id>>,
    /// Operations that were recovered before the verb began.
    pub(crate) recovered: RefCell<Vec<Recovered>>,
    /// Runs that this call has collected; `None` as long as nobody asks.
    pub(crate) collected: RefCell<Option<Vec<Collected>>>,
}

impl Desk {
    /// A desk on which nothing lies yet.
    pub(crate) fn new(config: Settings, caller: Rc<dyn Caller>, (yes, can_ask, is_far): (bool, bool, bool)) -> Self {
        Self {
            fs: Fs::new(),
            config,
            caller,
            yes,
            can_ask,
            is_far,
            store: OnceCell::new(),
            last: RefCell::default(),
            recovered: RefCell::default(),
            collected: RefCell::default(),
        }
    }

    /// A desk of the same call for an act of its own, about which nobody is asked.
    pub(crate) fn unasked(&self) -> Self {
        Self::new(self.config.clone(), self.caller.clone(), (true, false, self.is_far))
    }

    /// The directories that paths in commands start from.
    pub(crate) fn names(&self) -> Names {
        if self.is_far { Names::from_afar() } else { Names::here() }
    }

    /// Appends a line to the log after an operation. Only warns if the log cannot be written.
    pub(crate) fn note_in_log(&self, store: &Store, entry: &crate::session::Entry) {
        if let Err(error) = crate::session::append(&self.fs, store, entry) {
            self.caller.tell(Fact::NotLogged(&error));
        }
    }

    /// Asks the person at the terminal, unless `-y` was given. Without a terminal the verb alone is enough.
    ///
    /// # Errors
    /// The answer is no.
    pub(crate) fn confirm(&self, question: Question<'_>) -> Result<(), Error> {
        let goes_on = self.yes || !self.can_ask || self.caller.ask(question);
        if goes_on { Ok(()) } else { Err(error::not_confirmed()) }
    }

    /// Asks the person at the terminal what is taken.
    ///
    /// # Errors
    /// There is no terminal (2); a content cannot be read.
    pub(crate) fn choose(&self, choosing: Choosing<'_>, sources: &mut Sources<'_>) -> Result<Selection, Error> {
        if !self.can_ask {
            return Err(error::patch_unasked());
        }
        self.caller.choose(&self.fs, choosing, sources)
    }

    /// The store's path, made absolute.
    pub(crate) fn store_path(&self) -> Result<AbsPath, Error> {
        match capture().and_then(|inside| inside.store.clone()) {
            Some(own) => Ok(own),
            None => self.caller.store_path(),
        }
    }

    /// The store; `None` if there is none yet.
    pub(crate) fn store(&self) -> Result<Option<&Store>, Error> {
        if let Some(store) = self.store.get() {
            return Ok(store.as_ref());
        }
        refuse_without_store()?;
        let mut store = Store::open(&self.store_path()?)?;
        if let Some(store) = &mut store {
            store.begins_in = crate::capture::working_directory().ok();
            store.by = self.caller.by(&store.dir);
        }
        Ok(self.store.get_or_init(|| store).as_ref())
    }

    /// The store, made if it is missing.
    pub(crate) fn made_store(&self) -> Result<Store, Error> {
        refuse_without_store()?;
        let mut store = Store::create(&self.fs, &self.store_path()?)?;
        store.begins_in = crate::capture::working_directory().ok();
        store.by = self.caller.by(&store.dir);
        Ok(store)
    }

    /// The store, for a verb that needs an existing session.
    pub(crate) fn store_with(&self, key: &str) -> Result<&Store, Error> {
        match self.store()? {
            Some(store) => Ok(store),
            None if key == "last" => Err(error::no_session()),
            None => Err(crate::session::unknown(key, &[])),
        }
    }

    /// Removes what has lost its name in the store. Nobody waits for that: errors are warnings.
    pub(crate) fn clear_away(&self, store: &Store) {
        self.say_unswept(store.sweep_removed(&self.fs));
    }

    pub(crate) fn say_unswept(&self, errors: impl IntoIterator<Item = crate::error::Error>) {
        for error in errors {
            self.caller.tell(Fact::Unswept(&error));
        }
    }

    /// Ends here if a signal came during the work before the verb, which has been reported. Such a signal is not meant for the verb itself.
    pub(crate) fn stop_if_signalled(&self, state: &str) -> Result<(), Error> {
        interrupt::give_back();
        let Some(signal) = interrupt::signal_received() else { return Ok(()) };
        Err(error::stopped(signal, state))
    }

    /// Takes the store's lock: two operations of one store could undo each other.
    pub(crate) fn store_lock(&self, store: &Store) -> Result<Lock, Error> {
        store.lock(&self.fs, || self.say_waiting(store))
    }

    /// Says that another recant is at work in the store, and that this one waits.
    pub(crate) fn say_waiting(&self, store: &Store) {
        self.caller.tell(Fact::Waiting(&store.path));
    }
}

/// Refuses to work inside a run that has no store of its own: the other one is hidden there, and a command must not decide what is on the
/// tree.
fn refuse_without_store() -> Result<(), Error> {
    match capture() {
        Some(inside @ Inside { store: None, .. }) => Err(is_inside(inside)),
        _ => Ok(()),
    }
}
