//! A program that uses recant as a library: its desk, and the caller, who hears nothing and answers no question.

use std::path::Path;
use std::rc::Rc;

use super::desk::{CalledFrom, Caller, Desk};
use super::error::{is_inside, patch_unasked};
use super::fact::Fact;
use super::parts::select::Selection;
use super::question::{Choosing, Question};
use crate::capture::capture;
use crate::compare::Sources;
use crate::engine::{Progress, Unwatched};
use crate::error::Error;
use crate::fs::{AbsPath, Dir, Fs, interrupt, lease, resolve};
use crate::session::{ActingAgent, Header, Id, Store};
use crate::settings::Settings;

/// A program with a store.
pub struct Silent {
    pub store: AbsPath,
}

impl Caller for Silent {
    fn store_path(&self) -> Result<AbsPath, Error> {
        Ok(self.store.clone())
    }

    fn by(&self, _: &Dir) -> Option<ActingAgent> {
        None
    }

    fn variable(&self) -> Option<&'static str> {
        None
    }

    fn tell(&self, _: Fact<'_>) {}

    fn ask(&self, _: Question<'_>) -> bool {
        false
    }

    fn choose(&self, _: &Fs, _: Choosing<'_>, _: &mut Sources<'_>) -> Result<Selection, Error> {
        Err(patch_unasked())
    }

    fn notify(&self, _: &[String], _: &Header) {}

    fn progress(&self) -> Box<dyn Progress> {
        Box::new(Unwatched)
    }

    fn watch(&self, _: &Store, _: &Id, _: i64) -> Option<String> {
        None
    }
}

impl Desk {
    /// Opens the store at an absolute path, for a program. If it is missing, makes it with its parents, with mode 0700. The settings are the
    /// defaults, nothing is asked, and nothing is said.
    ///
    /// # Errors
    /// [`Kind::Refused`](crate::Kind::Refused): the directory belongs to another user, others may write to it, it is no store and not
    /// empty, or it has a later format; the path is relative; this is inside the run of a command.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        if let Some(inside) = capture() {
            return Err(is_inside(inside));
        }
        interrupt::leave_to_the_program();
        lease::ignore_what_would_end_it();
        let store = resolve::absolute(path.as_ref())?;
        let desk = Self::new(Settings::defaults(None, None), Rc::new(Silent { store }), (true, false, CalledFrom::Here));
        let store = desk.made_store()?;
        drop(desk.store.set(store));
        Ok(desk)
    }
}
