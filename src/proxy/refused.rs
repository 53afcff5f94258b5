//! The hosts that the proxy refused, or did not find, counted.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::error::Denied;

/// A host that was refused to a command, or not found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// A name in lower case, or an address; one of IPv6 in brackets.
    pub host: String,
    pub port: u16,
    /// The address that the name leads to, which is what was refused; absent if the host is not listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leads_to: Option<IpAddr>,
    /// True if it is listed, and this machine finds no address for its name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_found: bool,
    pub times: u64,
}

/// The most hosts that are named: a command may try as many as it likes.
const MOST: usize = 100;

/// A host, a port, where it leads, and whether it was not found.
type Asked = (String, u16, Option<IpAddr>, bool);

/// The hosts that were refused, with the number of times.
#[derive(Debug, Default)]
pub struct Tally(BTreeMap<Asked, u64>);

impl Tally {
    /// Counts a refusal, or a name without an address: clients tell nothing of it. Any other reason is the network's own.
    pub fn count(&mut self, why: &Denied) {
        let asked = match why {
            Denied::NotListed(host, port) => (host.to_string(), *port, None, false),
            Denied::LeadsTo(host, port, address) => (host.to_string(), *port, Some(*address), false),
            Denied::NotFound(host, port) => (host.to_string(), *port, None, true),
            Denied::Unreachable(..) => return,
        };
        if self.0.len() < MOST || self.0.contains_key(&asked) {
            *self.0.entry(asked).or_default() += 1;
        }
    }

    pub fn list(&self) -> Vec<Refused> {
        let row = |((host, port, leads_to, not_found), times): (&Asked, &u64)| Refused {
            host: host.clone(),
            port: *port,
            leads_to: *leads_to,
            not_found: *not_found,
            times: *times,
        };
        self.0.iter().map(row).collect()
    }
}
