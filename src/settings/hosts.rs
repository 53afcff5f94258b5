//! Hosts that a run may reach, as options and settings list them: `HOST[:PORT]`, `*.DOMAIN[:PORT]`, an address, or a word for many.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// The ports of an entry that names none: HTTPS and HTTP.
const PORTS: [u16; 2] = [443, 80];

/// The word for [`REGISTRIES`].
const WORD: &str = "registries";

/// Hosts that package managers download from: those of npm, PyPI, crates.io and Debian, Go's proxy and its sums, and those of GitHub that
/// git and releases use.
const REGISTRIES: &[&str] = &[
    "registry.npmjs.org",
    "registry.yarnpkg.com",
    "pypi.org",
    "files.pythonhosted.org",
    "crates.io",
    "index.crates.io",
    "static.crates.io",
    "deb.debian.org",
    "security.debian.org",
    "ftp.debian.org",
    "proxy.golang.org",
    "sum.golang.org",
    "github.com",
    "codeload.github.com",
    "objects.githubusercontent.com",
    "raw.githubusercontent.com",
    "release-assets.githubusercontent.com",
];

/// The longest name: RFC 1035, 2.3.4.
const LONGEST: usize = 253;

/// A host that somebody asks for: a name in lower case, without a dot at its end, or an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    Name(String),
    Address(IpAddr),
}

impl Host {
    /// Reads a host without a port. An address of IPv4 that is written as one of IPv6 is that of IPv4. `None`: it is not a host.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(inner) = text.strip_prefix('[') {
            let address: Ipv6Addr = inner.strip_suffix(']')?.parse().ok()?;
            return Some(Self::Address(address.to_canonical()));
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Some(Self::Address(address.to_canonical()));
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        let is_label = |label: &str| {
            (1..=63).contains(&label.len()) && label.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
        };
        (name.len() <= LONGEST && name.split('.').all(is_label)).then_some(Self::Name(name))
    }

    /// Reads `HOST` or `HOST:PORT`, an address of IPv6 in brackets.
    pub fn with_port(text: &str) -> Option<(Self, Option<u16>)> {
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !text.ends_with(']') => (host, Some(port)),
            _ => (text, None),
        };
        let is_number = |port: &str| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
        let port = match port {
            Some(port) => Some(port.parse().ok().filter(|n| is_number(port) && *n > 0)?),
            None => None,
        };
        // Only in brackets is it clear where an address of IPv6 ends.
        let host = if host.contains(':') && !host.starts_with('[') { None } else { Self::parse(host) };
        Some((host?, port))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
            Self::Address(address) => write!(f, "{address}"),
        }
    }
}

/// An entry of a list of hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    names: Names,
    /// `None`: [`PORTS`].
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Names {
    Registries,
    /// Every name below this one.
    Below(String),
    One(Host),
}

impl Entry {
    /// Reads an entry.
    ///
    /// # Errors
    /// It names no host, with the reason.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == WORD {
            return Ok(Self { names: Names::Registries, port: None });
        }
        let wrong = || format!("{text:?} is not a host: HOST, HOST:PORT, *.DOMAIN, an address, or '{WORD}'");
        let (host, port) = Host::with_port(text.strip_prefix("*.").unwrap_or(text)).ok_or_else(wrong)?;
        let names = match host {
            Host::Name(name) if is_number(&name) => return Err(wrong()),
            Host::Name(name) if text.starts_with("*.") => Names::Below(name),
            Host::Address(_) if text.starts_with("*.") => return Err(wrong()),
            host => Names::One(host),
        };
        Ok(Self { names, port })
    }

    /// The shortest entry that lets a command reach this host at this port; `None` if no entry can.
    pub fn opening(host: &str, port: u16) -> Option<Self> {
        let at_port = if PORTS.contains(&port) { String::new() } else { format!(":{port}") };
        Self::parse(&format!("{host}{at_port}")).ok()
    }

    /// True if it lets a command reach this host at this port.
    pub fn admits(&self, host: &Host, port: u16) -> bool {
        let is_port = self.port.map_or_else(|| PORTS.contains(&port), |own| own == port);
        is_port
            && match (&self.names, host) {
                (Names::One(one), host) => one == host,
                (Names::Registries, Host::Name(name)) => REGISTRIES.contains(&&**name),
                (Names::Below(domain), Host::Name(name)) => {
                    name.strip_suffix(&**domain).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
                }
                (Names::Registries | Names::Below(_), Host::Address(_)) => false,
            }
    }

    /// True if it means the loopback of this machine.
    pub fn is_loopback(&self) -> bool {
        match &self.names {
            Names::One(Host::Name(name)) => name == "localhost",
            Names::One(Host::Address(address)) => address.is_loopback(),
            Names::Registries | Names::Below(_) => false,
        }
    }
}

/// True if a C library may take a name for an address: `127.1`, `0x7f.1`, `2130706433` (inet_aton(3)).
fn is_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_hexadecimal = |digits: &str| digits.bytes().all(|b| b.is_ascii_hexdigit());
    last.bytes().all(|b| b.is_ascii_digit()) || last.strip_prefix("0x").is_some_and(is_hexadecimal)
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.names {
            Names::Registries => f.write_str(WORD)?,
            Names::Below(domain) => write!(f, "*.{domain}")?,
            Names::One(host) => write!(f, "{host}")?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admits(entry: &str, asked: &str) -> bool {
        let (host, port) = Host::with_port(asked).expect(asked);
        Entry::parse(entry).expect(entry).admits(&host, port.unwrap_or(443))
    }

    #[test]
    fn an_entry_admits_what_it_names_and_nothing_beside_it() {
        for (entry, asked, want) in [
            ("example.com", "example.com", true),
            ("Example.COM.", "eXample.com.:80", true),
            ("example.com", "example.com:8080", false),
            ("example.com:8080", "example.com:8080", true),
            ("example.com:8080", "example.com", false),
            ("example.com", "www.example.com", false),
            ("example.com", "example.com.evil.org", false),
            ("*.example.com", "a.b.example.com", true),
            ("*.example.com", "example.com", false),
            ("*.example.com", "notexample.com", false),
            ("xn--bcher-kva.example", "XN--bcher-kva.example", true),
            ("10.1.2.3", "10.1.2.3", true),
            ("10.1.2.3", "[::ffff:10.1.2.3]", true),
            ("10.1.2.3", "10.1.2.4", false),
            ("[fd00::1]:22", "[fd00:0::1]:22", true),
            ("registries", "pypi.org", true),
            ("registries", "pypi.org:22", false),
            ("registries", "evil.pypi.org", false),
            ("registries", "registries", false),
        ] {
            assert_eq!(admits(entry, asked), want, "{entry} {asked}");
        }
    }

    #[test]
    fn what_names_no_host_is_no_entry() {
        let wrong = "https://example.com example.com/ user@example.com a..b .example.com * *.* *.10.0.0.1 a:b a:0 a:70000 a:+80 fd00::1 \
            [::1 127.1 0x7f.1 2130706433 0x7f000001 a\u{e4}.example -- a,b";
        for text in wrong.split(' ').chain([""]).filter(|text| *text != "--") {
            assert!(Entry::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_entry_is_written_as_it_is_read() {
        for text in ["registries", "*.example.com:8443", "[fd00::1]:22", "10.1.2.3", "example.com"] {
            assert_eq!(Entry::parse(text).expect(text).to_string(), text);
        }
    }
}
