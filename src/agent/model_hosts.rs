//! The hosts that an agent needs for its model, where its network is listed.

use super::facts::Agent;
use super::surroundings::Surroundings;
use crate::settings::{Entry, Host};

impl Agent {
    /// The hosts of its model, as its environment names them.
    pub fn model_hosts(self, here: &Surroundings<'_>) -> Vec<Entry> {
        let model = &self.0.model;
        let usual = model.hosts.iter().filter_map(|host| Entry::parse(host).ok());
        let named = model.variables.iter().filter_map(|name| of_address((here.variable)(name)?.to_str()?));
        usual.chain(named).collect()
    }
}

/// The host of an address like `http://localhost:8080/v1`, at its port.
fn of_address(address: &str) -> Option<Entry> {
    let (scheme, rest) = address.split_once("://")?;
    let (host, port) = Host::with_port(rest.split(['/', '?', '#']).next()?)?;
    let port = port.unwrap_or(if scheme == "http" { 80 } else { 443 });
    Entry::parse(&format!("{host}:{port}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_agent_has_hosts_that_can_be_listed() {
        for agent in Agent::ALL {
            assert!(agent.0.model.hosts.iter().all(|host| Entry::parse(host).is_ok()), "{}", agent.word());
        }
    }

    #[test]
    fn an_address_of_a_model_is_its_host_at_its_port() {
        for (address, want) in [
            ("https://gateway.example/v1", Some("gateway.example:443")),
            ("http://localhost:8080", Some("localhost:8080")),
            ("http://10.0.0.1", Some("10.0.0.1:80")),
            ("gateway.example", None),
        ] {
            assert_eq!(of_address(address).map(|entry| entry.to_string()).as_deref(), want, "{address}");
        }
    }
}
