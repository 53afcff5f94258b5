//! The desk of a call: the store, the settings, who calls, and what is printed. It knows no verb.

use std::cell::{OnceCell, RefCell};

use super::by;
use super::errors;
use super::out::{Form, Out};
use super::place::Place;
use crate::capture::inside::{Inside, capture};
use crate::config::Config;
use crate::engine::recover::Recovered;
use crate::error::{Error, Kind};
use crate::fs::Fs;
use crate::fs::dir::Dir;
use crate::fs::lock::Lock;
use crate::fs::path::AbsPath;
use crate::session::by::By;
use crate::session::id::Id;
use crate::session::store::Store;

/// One call, with what all verbs need.
pub struct Call {
    pub fs: Fs,
    pub config: Config,
    pub place: Place,
    pub out: Out,
    pub yes: bool,
    /// True if a person sits at a terminal, here or on the near side.
    pub can_ask: bool,
    /// True if it is carried out for a person at another machine.
    pub is_far: bool,
    pub store: OnceCell<Option<Store>>,
    /// The session that `last` was reported to be.
    pub last: RefCell<Option<Id>>,
    /// Operations that were recovered before the verb began.
    pub recovered: RefCell<Vec<Recovered>>,
    /// Runs that this call has collected; `None` as long as nobody asks.
    pub collected: RefCell<Option<Vec<Collected>>>,
}

/// A run that was cut off, and is collected.
pub struct Collected {
    pub id: Id,
    pub said: String,
    /// True if something is lost that it had changed.
    pub is_lost: bool,
}

impl Call {
    /// Appends a line to the log after an operation. Only warns if the log cannot be written.
    pub fn note_in_log(&self, store: &Store, entry: &crate::session::log::Entry) {
        if let Err(error) = crate::session::log::append(&self.fs, store, entry) {
            self.out.warn(format_args!("the log could not be written: {error}"));
        }
    }

    pub fn with_remedy(&self, problem: Error) -> Error {
        match self.store_path() {
            Ok(store) => errors::barred(problem, &store),
            // The store's path is what the problem is about.
            Err(_) => problem,
        }
    }

    /// The store's path, made absolute.
    pub fn store_path(&self) -> Result<AbsPath, Error> {
        if let Some(own) = capture().and_then(|inside| inside.store.clone()) {
            return Ok(own);
        }
        self.place.resolve().map_err(|problem| match problem.remedy() {
            None => problem.with_remedy("the store has to be where you can get at it: --store DIR, RECANT_STORE"),
            Some(_) => problem,
        })
    }

    /// The store; `None` if there is none yet.
    pub fn store(&self) -> Result<Option<&Store>, Error> {
        if let Some(store) = self.store.get() {
            return Ok(store.as_ref());
        }
        refuse_without_store()?;
        let mut store = Store::open(&self.store_path()?)?;
        if let Some(store) = &mut store {
            store.begins_in = crate::capture::plan::working_directory().ok();
            store.by = self.caller(&store.dir);
        }
        Ok(self.store.get_or_init(|| store).as_ref())
    }

    /// The store, made if it is missing.
    pub fn made_store(&self) -> Result<Store, Error> {
        refuse_without_store()?;
        let mut store = Store::create(&self.fs, &self.store_path()?)?;
        store.begins_in = crate::capture::plan::working_directory().ok();
        store.by = self.caller(&store.dir);
        Ok(store)
    }

    /// The agent that calls; `None` for a person.
    pub fn caller(&self, store: &Dir) -> Option<By> {
        by::caller(store)
    }

    /// The store, for a verb that needs an existing session.
    pub fn store_with(&self, key: &str) -> Result<&Store, Error> {
        match self.store()? {
            Some(store) => Ok(store),
            None if key == "last" => {
                Err(Error::refused("there is no session yet").with_remedy("recant run -- COMMAND begins one"))
            }
            None => Err(crate::session::error::unknown(key, &[])),
        }
    }

    /// Removes what has lost its name in the store. Nobody waits for that: errors are warnings.
    pub fn clear_away(&self, store: &Store) {
        self.say_unswept(store.sweep_removed(&self.fs));
    }

    pub fn say_unswept(&self, errors: impl IntoIterator<Item = crate::error::Error>) {
        for error in errors {
            self.out.warn(format_args!("{error}; nothing needs it, and the next verb that changes something tries again"));
        }
    }

    /// Ends here if a signal came during the work before the verb, which has been reported. Such a signal is not meant for the verb itself.
    pub fn go_on(&self, state: &str) -> Result<(), Error> {
        crate::fs::interrupt::give_back();
        let Some(signal) = crate::fs::interrupt::came() else { return Ok(()) };
        Err(Error::refused(format!("stopped by {signal}")).with_state(state))
    }

    /// Takes the store's lock: two operations of one store could undo each other.
    pub fn store_lock(&self, store: &Store) -> Result<Lock, Error> {
        store.lock(&self.fs, || self.say_waiting(store))
    }

    pub fn say_waiting(&self, store: &Store) {
        self.out.note(format_args!("another recant is at work in {}; waiting", store.path));
    }

    /// Refuses to drop what recant itself chose, unless a person can be asked or `-y` is given. `what`: which verb drops what. `shows`:
    /// the command that lists it.
    pub fn need_asking(&self, what: &str, shows: &str) -> Result<(), Error> {
        if self.yes || self.can_ask {
            return Ok(());
        }
        let problem = Error::new(Kind::Usage, format!("{what}, and there is no terminal to ask at"));
        Err(problem.with_remedy(format!("{shows} shows it; -y goes on")))
    }

    /// Asks, if a person sits at a terminal and `-y` was not given. Without a terminal the verb alone is enough.
    pub fn confirm(&self, question: &str) -> Result<(), Error> {
        if self.yes || !self.can_ask { Ok(()) } else { self.ask(question) }
    }

    /// Asks the person at the terminal.
    pub fn ask(&self, question: &str) -> Result<(), Error> {
        let mut answer = String::new();
        self.out.ask(question);
        // If the question or the answer is lost, it counts as no.
        drop(std::io::stdin().read_line(&mut answer));
        match answer.trim() {
            "y" | "Y" | "yes" => Ok(()),
            _ => Err(Error::refused("not confirmed").with_remedy("-y skips the question")),
        }
    }

    /// A call for an act of the screen, which was asked for there: what it prints is kept.
    pub fn for_screen(&self) -> Self {
        self.kept_as(Form::Text)
    }

    /// A call for an act that was asked for elsewhere than on a terminal: what it prints is kept, in this form.
    pub fn kept_as(&self, form: Form) -> Self {
        Self { out: self.out.keeping(form), yes: true, can_ask: false, ..self.again() }
    }

    pub fn again(&self) -> Self {
        Self {
            fs: Fs::new(),
            config: self.config.clone(),
            place: self.place.clone(),
            out: self.out.again(),
            yes: self.yes,
            can_ask: self.can_ask,
            is_far: self.is_far,
            store: OnceCell::new(),
            last: RefCell::default(),
            recovered: RefCell::default(),
            collected: RefCell::default(),
        }
    }
}

/// Refuses to work inside a run that has no store of its own: the other one is hidden there, and a command must not decide what is on the
/// tree.
pub fn refuse_without_store() -> Result<(), Error> {
    match capture() {
        Some(inside @ Inside { store: None, .. }) => Err(is_inside(inside)),
        _ => Ok(()),
    }
}

pub fn is_inside(inside: &Inside) -> Error {
    let session = &inside.session;
    Error::refused(format!("this is inside the run of session {session}, where only 'recant run' can be used"))
        .with_remedy("do it outside, when the run has ended")
}
