//! The side of a person who calls from another machine, or from inside a run.

use std::io::IsTerminal;

use crate::remote::Request;

/// Facts about the near side for a verb: the descriptors on which colour is wanted, those that are terminals, and how it reaches this
/// machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Near {
    color: Vec<u8>,
    terminals: Vec<u8>,
    /// The options with which it reaches this machine.
    reached: String,
}

impl Near {
    pub fn of(request: &Request) -> Self {
        Self {
            color: request.color.clone(),
            terminals: request.terminals.clone(),
            reached: request.reached.clone().unwrap_or_default(),
        }
    }

    pub fn word(&self) -> String {
        let digits = |list: &[u8]| list.iter().map(u8::to_string).collect::<String>();
        format!("{}:{}:{}", digits(&self.color), digits(&self.terminals), self.reached)
    }

    pub fn read(word: &str) -> Self {
        let digits = |text: &str| text.bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0').collect();
        let mut parts = word.splitn(3, ':');
        let mut part = || parts.next().unwrap_or_default();
        Self { color: digits(part()), terminals: digits(part()), reached: part().into() }
    }

    /// The options with which the near side reaches this machine: `-H web1`. Empty if it did not say.
    pub fn reached(&self) -> &str {
        &self.reached
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
