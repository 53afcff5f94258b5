//! The desk of a verb: the store, the settings, and who calls. It knows no verb.

use std::cell::{OnceCell, RefCell};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
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
use crate::session::{ActingAgent, Header, Id, Person, Store};
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
    /// Tells the person by a program, `agent.notify`, that a session waits. Nobody waits for the program.
    fn notify(&self, program: &[String], waits: &Header);
    /// The one that sees how far an operation is, until it is dropped.
    fn progress(&self) -> Box<dyn Progress>;
    /// Starts a watcher that rolls a commit back in so many seconds unless it is confirmed, and names it; `None` if none can be.
    fn watch(&self, store: &Store, id: &Id, seconds: i64) -> Option<String>;
}

/// The place that a call comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CalledFrom {
    Here,
    /// A person at another machine.
    Machine,
    /// A process in a run, which may be anybody.
    Run {
        /// The session that it sees, with its parts; `None`: all.
        only: Option<Id>,
    },
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
    pub(crate) from: CalledFrom,
    pub(super) store: OnceCell<Store>,
    /// The session that `last` was reported to be.
    pub(crate) last: RefCell<Option<Id>>,
    /// Operations that were recovered before the verb began.
    pub(crate) recovered: RefCell<Vec<Recovered>>,
    /// Runs that this call has collected; `None` as long as nobody asks.
    pub(crate) collected: RefCell<Option<Vec<Collected>>>,
}

impl Desk {
    /// A desk on which nothing lies yet.
    pub(crate) fn new(config: Settings, caller: Rc<dyn Caller>, (yes, can_ask, from): (bool, bool, CalledFrom)) -> Self {
        Self {
            fs: Fs::new(),
            config,
            caller,
            yes,
            can_ask,
            from,
            store: OnceCell::new(),
            last: RefCell::default(),
            recovered: RefCell::default(),
            collected: RefCell::default(),
        }
    }

    /// A desk of the same call for an act of its own, about which nobody is asked.
    pub(crate) fn unasked(&self) -> Self {
        Self::new(self.config.clone(), self.caller.clone(), (true, false, self.from.clone()))
    }

    /// A desk of the same call at which nobody answers a question, and none is skipped.
    pub(crate) fn unanswered(&self) -> Self {
        Self::new(self.config.clone(), self.caller.clone(), (false, false, self.from.clone()))
    }

    /// The directories that paths in commands start from.
    pub(crate) fn names(&self) -> Names {
        if self.from == CalledFrom::Here { Names::here() } else { Names::from_afar() }
    }

    /// True if the call comes from a run.
    pub(crate) fn is_in_run(&self) -> bool {
        matches!(self.from, CalledFrom::Run { .. })
    }

    /// True if the call comes from another machine.
    pub(crate) fn is_far(&self) -> bool {
        self.from == CalledFrom::Machine
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
            return Ok(Some(store));
        }
        refuse_without_store()?;
        // One that is missing may be there at the next look: a desk of the library makes it.
        let Some(mut store) = Store::open(&self.store_path()?)? else { return Ok(None) };
        store.begins_in = crate::capture::working_directory().ok();
        store.by = self.caller.by(&store.dir);
        if let CalledFrom::Run { only } = &self.from {
            store.only = only.clone();
        }
        Ok(Some(self.store.get_or_init(|| store)))
    }

    /// The store, made if it is missing.
    pub(crate) fn made_store(&self) -> Result<Store, Error> {
        let store = match self.store()? {
            Some(store) => store.clone(),
            None => {
                let mut store = Store::create(&self.fs, &self.store_path()?)?;
                store.begins_in = crate::capture::working_directory().ok();
                store.by = self.caller.by(&store.dir);
                store
            }
        };
        if store.person()?.is_none() {
            self.note_person(&store)?;
        }
        Ok(store)
    }

    /// Notes where the caller has settings and home, unless that is known: as those of the person whose store it is. A call that an agent
    /// makes tells nothing of the person.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn note_person(&self, store: &Store) -> Result<(), Error> {
        let is_of_person = self.from == CalledFrom::Here && capture().is_none() && self.caller.variable().is_none();
        let Some(person) = self.person().filter(|_| is_of_person) else { return Ok(()) };
        if store.person()?.as_ref() == Some(&person) { Ok(()) } else { store.note_person(&self.fs, &person) }
    }

    /// The places of the settings in force; `None` if no home directory is known.
    pub(crate) fn person(&self) -> Option<Person> {
        let path = |path: &Path| AbsPath::parse(path.as_os_str().as_bytes()).ok();
        let settings = self.config.file.as_deref().and_then(path)?;
        Some(Person { settings, home: dirs::home_dir().as_deref().and_then(path) })
    }

    /// The store, for a verb that needs an existing session.
    pub(crate) fn store_with(&self, key: &str) -> Result<&Store, Error> {
        match self.store()? {
            Some(store) => Ok(store),
            None if key == "last" => Err(error::no_session()),
            None if self.from == CalledFrom::Machine => Err(error::no_store_there(key, &self.store_path()?)),
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
