//! One call of the command line: the desk of its verb, and what is printed.

use std::ops::Deref;
use std::rc::Rc;

use super::find_store::Place;
use super::out::Out;
use super::progress_bar::Bar;
use super::text::fact;
use super::{calling_agent, errors, notifier, watcher};
use crate::compare::Sources;
use crate::engine::Progress;
use crate::error::Error;
use crate::face::text::parts::ask;
use crate::face::text::question;
use crate::fs::{AbsPath, Dir, Fs};
use crate::session::{ActingAgent, Header, Id, Session, Store};
use crate::settings::Settings;
use crate::verb::resolve::acts_of_others;
use crate::verb::{CalledFrom, Caller, Choosing, Desk, Fact, Question, Selection};

/// One call, with what all verbs need.
pub struct Call {
    desk: Desk,
    pub place: Place,
    pub out: Rc<Out>,
}

impl Deref for Call {
    type Target = Desk;

    fn deref(&self) -> &Desk {
        &self.desk
    }
}

/// Whoever started this process, and what it prints.
struct Process {
    place: Place,
    out: Rc<Out>,
}

impl Caller for Process {
    fn store_path(&self) -> Result<AbsPath, Error> {
        self.place.resolve().map_err(|error| match error.advice() {
            None => error.with_remedy("use a store in a directory that you can enter: --store DIR, RECANT_STORE"),
            Some(_) => error,
        })
    }

    fn by(&self, store: &Dir) -> Option<ActingAgent> {
        calling_agent::caller(store)
    }

    fn variable(&self) -> Option<&'static str> {
        calling_agent::variable().map(|(variable, _)| variable)
    }

    fn tell(&self, said: Fact<'_>) {
        fact::tell(&self.out, &said);
    }

    fn ask(&self, question: Question<'_>) -> bool {
        is_yes(&self.out, &question::question(&self.out, &question))
    }

    fn choose(&self, fs: &Fs, choosing: Choosing<'_>, sources: &mut Sources<'_>) -> Result<Selection, Error> {
        ask::ask(&self.out, fs, &choosing, sources)
    }

    fn notify(&self, program: &[String], waits: &Header) {
        notifier::start(&self.out, program, waits);
    }

    fn progress(&self) -> Box<dyn Progress> {
        Box::new(Bar::of(&self.out))
    }

    fn watch(&self, store: &Store, id: &Id, seconds: i64) -> Option<String> {
        watcher::start(store, id, seconds)
    }
}

/// Asks the person at the terminal. If the question or the answer is lost, it counts as no.
fn is_yes(out: &Out, question: &str) -> bool {
    let mut answer = String::new();
    out.ask(question);
    drop(std::io::stdin().read_line(&mut answer));
    matches!(answer.trim(), "y" | "Y" | "yes")
}

impl Call {
    /// A call. `rights`: whether questions are to be skipped, whether a person can be asked, where it comes from.
    pub fn new(config: Settings, place: Place, out: Out, rights: (bool, bool, CalledFrom)) -> Self {
        let out = Rc::new(out);
        let caller = Rc::new(Process { place: place.clone(), out: out.clone() });
        Self { desk: Desk::new(config, caller, rights), place, out }
    }

    pub fn with_remedy(&self, problem: Error) -> Error {
        match self.store_path() {
            Ok(store) => errors::barred(problem, &store),
            // The store's path is what the problem is about.
            Err(_) => problem,
        }
    }

    /// Notes that the person at the terminal has looked at what a session holds.
    pub fn looked(&self, store: &Store, session: &Session) {
        if self.out.is_for_people() && !self.is_in_run() {
            acts_of_others::looked(self, store, session);
        }
    }

    /// A call for an act of the screen, which was asked for there: what it prints is kept, without rows.
    pub fn for_screen(&self) -> Self {
        Self::new(self.config.clone(), self.place.clone(), self.out.keeping(), (true, false, self.from.clone()))
    }

    /// This call once more.
    pub fn again(&self) -> Self {
        let rights = (self.yes, self.can_ask, self.from.clone());
        Self::new(self.config.clone(), self.place.clone(), self.out.again(), rights)
    }
}
