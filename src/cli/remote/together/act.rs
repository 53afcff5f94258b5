//! The act that all machines of a call are asked for.

use std::ffi::OsString;

use crate::cli::Call;
use crate::cli::remote::ways::Ways;
use crate::engine::job;
use crate::remote::host::Target;
use crate::remote::request::{Request, Word};
use crate::tree::hash::Hash;

/// An act on each machine.
pub struct Act {
    /// commit, rollback or redo.
    pub verb: job::Verb,
    /// The session: its whole id if this side knows it.
    pub key: String,
    /// The name that the call gives the session, if this side knows it: no machine may have another session of that name.
    pub called: Option<String>,
    /// The mark of what it puts on the tree, to compare with a machine that already has the session.
    pub mark: Option<Hash>,
    /// The words after the session.
    pub words: Vec<OsString>,
    /// The store there, as the call names it.
    pub store: Option<OsString>,
}

/// All machines of a call.
pub struct Machines<'a> {
    /// The call.
    pub call: &'a Call,
    /// The connections to them.
    pub ways: &'a Ways,
    /// The machines themselves.
    pub targets: &'a [Target],
    /// A request without words for each machine.
    pub blank: &'a [Request],
    /// The act that each is asked for.
    pub act: &'a Act,
}

impl Act {
    /// Options that tell a machine which session is meant, beside its key.
    pub fn meant(&self) -> impl Iterator<Item = OsString> {
        let meant = self.called.is_some().then(|| OsString::from(format!("--meant={}", self.key)));
        let mark = self.mark.map(|mark| OsString::from(format!("--mark={mark}")));
        meant.into_iter().chain(mark)
    }
}

impl Machines<'_> {
    /// The request to a machine.
    pub fn request(&self, host: usize, words: impl IntoIterator<Item = OsString>, input: bool) -> Request {
        let store = self.act.store.iter().flat_map(|store| [OsString::from("--store"), store.clone()]);
        let argv = store.chain(words).map(|word| Word::from(word.as_os_str())).collect();
        Request { argv, input, color: Vec::new(), terminals: Vec::new(), columns: None, ..self.blank[host].clone() }
    }
}
