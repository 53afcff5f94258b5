//! What is asked of all machines of a call.

use std::ffi::OsString;

use crate::cli::Call;
use crate::cli::remote::ways::Ways;
use crate::engine::job;
use crate::remote::host::Target;
use crate::remote::request::{Request, Word};
use crate::tree::digest::Digest;

/// What each machine is asked.
pub struct Act {
    /// commit, rollback or redo.
    pub verb: job::Verb,
    /// The session, by its whole id where this side knows it.
    pub key: String,
    /// What the call names it by, where this side knows it by that: no machine may know another one by it.
    pub called: Option<String>,
    /// What it puts on the tree, where this side's is to be compared with that of a machine that has it already.
    pub mark: Option<Digest>,
    /// What stands behind it.
    pub words: Vec<OsString>,
    /// The store there, as the call names it.
    pub store: Option<OsString>,
}

/// All machines of the call.
pub struct Machines<'a> {
    /// The call.
    pub call: &'a Call,
    /// The ways to them.
    pub ways: &'a Ways,
    /// They themselves.
    pub targets: &'a [Target],
    /// A request without words for each.
    pub blank: &'a [Request],
    /// What each is asked.
    pub act: &'a Act,
}

impl Act {
    /// What tells a machine which session is meant, beside its key.
    pub fn meant(&self) -> impl Iterator<Item = OsString> {
        let meant = self.called.is_some().then(|| OsString::from(format!("--meant={}", self.key)));
        let mark = self.mark.map(|mark| OsString::from(format!("--mark={mark}")));
        meant.into_iter().chain(mark)
    }
}

impl Machines<'_> {
    /// What a machine gets.
    pub fn request(&self, host: usize, words: impl IntoIterator<Item = OsString>, input: bool) -> Request {
        let store = self.act.store.iter().flat_map(|store| [OsString::from("--store"), store.clone()]);
        let argv = store.chain(words).map(|word| Word::from(word.as_os_str())).collect();
        Request { argv, input, color: Vec::new(), terminals: Vec::new(), columns: None, ..self.blank[host].clone() }
    }
}
