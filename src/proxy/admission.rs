//! Connections to what is listed, and to nothing else.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::error::Denied;
use super::refused::{Refused, Tally};
use crate::settings::{Entry, Host};

/// The time that each address of a host has to answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// The list, and what it has refused.
pub struct Admission {
    list: Vec<Entry>,
    refused: Mutex<Tally>,
}

impl Admission {
    pub fn of(list: Vec<Entry>) -> Self {
        Self { list, refused: Mutex::default() }
    }

    pub fn refused(&self) -> Vec<Refused> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).list()
    }

    /// Connects to a host that is listed. A refusal is counted.
    ///
    /// # Errors
    /// It is refused, or cannot be reached.
    pub fn connect(&self, host: Host, port: u16) -> Result<TcpStream, Denied> {
        let connected = self.try_to_connect(host, port);
        if let Err(why) = &connected {
            self.refused.lock().unwrap_or_else(PoisonError::into_inner).count(why);
        }
        connected
    }

    fn try_to_connect(&self, host: Host, port: u16) -> Result<TcpStream, Denied> {
        if !self.has(&host, port) {
            return Err(Denied::NotListed(host, port));
        }
        let Some(found) = resolve(&host, port) else { return Err(Denied::NotFound(host, port)) };
        let (open, closed): (Vec<_>, Vec<_>) = found.into_iter().partition(|to| self.may_lead_to(&host, *to));
        let mut failed = match closed.first() {
            Some(to) if open.is_empty() => return Err(Denied::LeadsTo(host, port, to.ip())),
            _ => io::Error::from(io::ErrorKind::AddrNotAvailable),
        };
        for to in open {
            match TcpStream::connect_timeout(&to, PATIENCE) {
                Ok(connected) => return Ok(connected),
                Err(error) => failed = error,
            }
        }
        Err(Denied::Unreachable(host, port, failed))
    }

    fn has(&self, host: &Host, port: u16) -> bool {
        self.list.iter().any(|entry| entry.admits(host, port))
    }

    /// True if a listed host may lead to this address: it is a usual one, or listed itself.
    fn may_lead_to(&self, host: &Host, to: SocketAddr) -> bool {
        let is_this_machine = *host == Host::Name("localhost".into()) && to.ip().to_canonical().is_loopback();
        is_this_machine || !is_special(to.ip()) || self.has(&Host::Address(to.ip().to_canonical()), to.port())
    }
}

/// The addresses of a host, as this machine resolves it; `None` if it has none.
fn resolve(host: &Host, port: u16) -> Option<Vec<SocketAddr>> {
    let found: Vec<SocketAddr> = match host {
        Host::Address(address) => vec![SocketAddr::new(*address, port)],
        Host::Name(name) => (&**name, port).to_socket_addrs().ok()?.collect(),
    };
    Some(found).filter(|found| !found.is_empty())
}

/// Addresses at which clouds answer a machine, with its credentials too, beside 169.254.169.254: Amazon over IPv6, Azure, Alibaba, Oracle.
const METADATA: [IpAddr; 4] = [
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
];

/// True for an address that no public name should lead to. Private ones are not among them: a company's registry has one.
fn is_special(address: IpAddr) -> bool {
    METADATA.contains(&address)
        || match address {
            IpAddr::V4(four) => {
                four.is_loopback() || four.is_link_local() || four.is_multicast() || four.is_broadcast() || four.octets()[0] == 0
            }
            IpAddr::V6(six) => {
                six.is_loopback()
                    || six.is_unspecified()
                    || six.is_multicast()
                    || six.is_unicast_link_local()
                    || inner(six).is_some_and(|four| is_special(IpAddr::V4(four)))
            }
        }
}

/// The address of IPv4 that one of IPv6 stands for: mapped, compatible (RFC 4291, 2.5.5), or translated (RFC 6052, NAT64).
fn inner(six: Ipv6Addr) -> Option<Ipv4Addr> {
    match six.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => {
            let [.., a, b, c, d] = six.octets();
            Some(Ipv4Addr::new(a, b, c, d))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_machine_and_its_link_are_special() {
        let special = "127.0.0.1 127.9.9.9 0.0.0.0 0.1.2.3 169.254.169.254 224.0.0.1 255.255.255.255 ::1 :: ff02::1 fe80::1 febf::1 \
            ::ffff:127.0.0.1 ::ffff:169.254.1.1 ::127.0.0.1 64:ff9b::7f00:1 fd00:ec2::254 168.63.129.16";
        let usual = "1.1.1.1 10.0.0.1 172.16.0.1 192.168.1.1 100.64.0.1 2606:4700::1 fd00::1 ::ffff:10.0.0.1 64:ff9b::101:101";
        for (list, want) in [(special, true), (usual, false)] {
            for address in list.split(' ') {
                assert_eq!(is_special(address.parse().unwrap()), want, "{address}");
            }
        }
    }
}
