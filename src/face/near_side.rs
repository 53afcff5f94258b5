//! The side of a person who calls from another machine, or from inside a run.

use std::io::IsTerminal;

use crate::remote::Request;
use crate::session::Id;
use crate::verb::CalledFrom;

/// Facts about the near side for a verb: the descriptors on which colour is wanted, those that are terminals, and how it reaches this
/// machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Near {
    color: Vec<u8>,
    terminals: Vec<u8>,
    /// The options with which it reaches this machine.
    reached: String,
    /// Set if it is in a run: whoever looks there may be anybody.
    in_run: Option<InRun>,
}

/// A run in which somebody looks at sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InRun {
    /// The session that is seen there, with its parts; `None`: all.
    pub only: Option<Id>,
}

impl Near {
    pub fn of(request: &Request) -> Self {
        Self {
            color: request.color.clone(),
            terminals: request.terminals.clone(),
            reached: request.reached.clone().unwrap_or_default(),
            in_run: None,
        }
    }

    /// Places this side in a run.
    pub fn in_run(self, in_run: Option<InRun>) -> Self {
        Self { in_run, ..self }
    }

    pub fn word(&self) -> String {
        let digits = |list: &[u8]| list.iter().map(u8::to_string).collect::<String>();
        let in_run = match &self.in_run {
            None => "",
            Some(InRun { only: None }) => "all",
            Some(InRun { only: Some(id) }) => id.as_str(),
        };
        format!("{}:{}:{}:{}", digits(&self.color), digits(&self.terminals), in_run, self.reached)
    }

    pub fn read(word: &str) -> Self {
        let digits = |text: &str| text.bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0').collect();
        let mut parts = word.splitn(4, ':');
        let mut part = || parts.next().unwrap_or_default();
        let (color, terminals) = (digits(part()), digits(part()));
        let in_run = Some(part()).filter(|word| !word.is_empty()).map(|word| InRun { only: Id::parse(word) });
        Self { color, terminals, in_run, reached: part().into() }
    }

    /// The options with which the near side reaches this machine: `-H web1`. Empty if it did not say.
    pub fn reached(&self) -> &str {
        &self.reached
    }

    pub fn called_from(&self) -> CalledFrom {
        match &self.in_run {
            Some(InRun { only }) => CalledFrom::Run { only: only.clone() },
            None => CalledFrom::Machine,
        }
    }

    /// True if colour is wanted on the near side's descriptor.
    pub fn colors(&self, descriptor: u8) -> bool {
        self.color.contains(&descriptor)
    }

    /// True if the near side's descriptor is a terminal.
    pub fn has_terminal(&self, descriptor: u8) -> bool {
        self.terminals.contains(&descriptor)
    }

    /// True if a person can be asked: the near side's standard input and standard error are terminals.
    pub fn can_ask(&self) -> bool {
        [0, 2].into_iter().all(|descriptor| self.has_terminal(descriptor))
    }
}

/// The descriptors of this process that are terminals.
pub fn terminals() -> Vec<u8> {
    let all = [std::io::stdin().is_terminal(), std::io::stdout().is_terminal(), std::io::stderr().is_terminal()];
    (0..).zip(all).filter(|(_, is)| *is).map(|(n, _)| n).collect()
}

/// True for a variable that is passed on: recant's own, but for those that name a store or a machine. RECANT_AGENT is not either: the near
/// side decides about agents, by the settings of its user.
pub fn is_recants_own(name: &std::ffi::OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name == b"NO_COLOR"
        || name.starts_with(b"RECANT_") && ![&b"RECANT_STORE"[..], b"RECANT_HOST", b"RECANT_AGENT"].contains(&name)
}
