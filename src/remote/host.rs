//! The name of a machine: `user@host:port`, or a name of the settings.

use std::collections::BTreeMap;

use super::error::no_host;
use crate::error::Error;
use crate::settings::Remote;

/// A machine, with the words for ssh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The name as it was given, for messages.
    pub name: String,
    /// The host for ssh: a name of its own settings, of DNS, or an address.
    pub host: String,
    /// The user to log in as; else ssh's choice.
    pub user: Option<String>,
    /// The port; else ssh's choice.
    pub port: Option<u16>,
    /// The store there; else the far side's choice.
    pub store: Option<String>,
    /// True if recant is run by `sudo -n` there.
    pub sudo: bool,
}

impl Target {
    /// Parses `host`, `user@host`, `host:port`, `user@host:port`. `remotes` may have more about `host`. An IPv6 address with a port has brackets.
    pub fn parse(words: &str, remotes: &BTreeMap<String, Remote>) -> Result<Self, Error> {
        let wrong = |why: &'static str| no_host(words, why);
        let (user, rest) = match words.rsplit_once('@') {
            Some((user, rest)) => (Some(user.to_owned()), rest),
            None => (None, words),
        };
        let (host, port) = match rest.strip_prefix('[') {
            Some(rest) => {
                let (host, after) = rest.split_once(']').ok_or(wrong("a ']' is missing"))?;
                (host, after.strip_prefix(':'))
            }
            // More than one colon: an IPv6 address, without a port.
            None if rest.matches(':').count() > 1 => (rest, None),
            None => rest.split_once(':').map_or((rest, None), |(host, port)| (host, Some(port))),
        };
        let port =
            port.map(|port| port.parse().ok().filter(|port| *port > 0).ok_or(wrong("the port is not a number up to 65535")));
        let port = port.transpose()?;
        let known = remotes.get(host).or_else(|| remotes.get(words)).cloned().unwrap_or_default();
        let host = plain(host, OF_HOST).ok_or(wrong("not a host name"))?;
        let user = match user {
            Some(user) => Some(plain(&user, OF_USER).ok_or(wrong("not a user name"))?),
            None => None,
        };
        Ok(Self { name: words.into(), host, user, port, store: known.store, sudo: known.sudo.unwrap_or_default() })
    }
}

/// A word that ssh takes for a name and nothing else: no option, and nothing that the shell of a ProxyCommand interprets.
fn plain(word: &str, more: &str) -> Option<String> {
    let fits = |c: char| c.is_alphanumeric() || more.contains(c);
    (!word.is_empty() && !word.starts_with('-') && word.chars().all(fits)).then(|| word.to_owned())
}

/// Characters of a host's name beside letters and digits; it may be an address with its zone.
const OF_HOST: &str = "._-:%";
/// Characters of a user's name, likewise; it may contain an address or a domain.
const OF_USER: &str = "._-+~=@\\";

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<(Option<String>, String, Option<u16>), String> {
        Target::parse(words, &BTreeMap::new())
            .map(|target| (target.user, target.host, target.port))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn hosts_are_read_as_ssh_has_them() {
        let some = |text: &str| Some(text.to_owned());
        for (words, user, host, port) in [
            ("h", None, "h", None),
            ("u@h", some("u"), "h", None),
            ("h:22", None, "h", Some(22)),
            ("a@b@h:1", some("a@b"), "h", Some(1)),
            ("::1", None, "::1", None),
            ("u@[fe80::1%eth0]:70", some("u"), "fe80::1%eth0", Some(70)),
        ] {
            assert_eq!(parse(words), Ok((user, host.to_owned(), port)), "{words}");
        }
    }

    #[test]
    fn what_is_no_host_is_refused_by_name() {
        for words in
            ["-oProxyCommand=x", "u@-h", "-u@h", "h:", "h:0", "h:x", "h:70000", "@h", "u@", "[::1", "a b", "h;id", "$(id)", "h\n"]
        {
            let said = parse(words).unwrap_err();
            assert!(said.contains(&format!("{words:?}")), "{words}: {said}");
        }
    }
}
