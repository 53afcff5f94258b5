//! The answers of the proxy, in this room's words.

use std::fmt;
use std::io;
use std::net::IpAddr;

use crate::settings::Host;

/// The reason why something cannot be reached.
#[derive(Debug)]
pub enum Denied {
    NotListed(Host, u16),
    /// A listed name leads to such an address, and to no other.
    LeadsTo(Host, u16, IpAddr),
    NotFound(Host, u16),
    Unreachable(Host, u16, io::Error),
}

impl Denied {
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::NotListed(..) | Self::LeadsTo(..))
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotListed(host, port) => write!(f, "recant: {host}:{port} is not listed by --network"),
            Self::LeadsTo(host, port, address) => {
                write!(f, "recant: {host}:{port} leads to {address}, which is not listed by --network")
            }
            Self::NotFound(host, _) => write!(f, "recant: {host}: no such host"),
            Self::Unreachable(host, port, error) => write!(f, "recant: {host}:{port}: {}", crate::error::reason(error)),
        }
    }
}

/// The reason why a request is not carried out, whomever it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    Head,
    TooLong,
    Target,
    Host,
    Length,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Head => "recant: the head of the request is malformed",
            Self::TooLong => "recant: the head of the request is too long",
            Self::Target => "recant: a proxy takes CONNECT HOST:PORT, or http://HOST/",
            Self::Host => "recant: the request names two hosts",
            Self::Length => "recant: the length of the request's body is not clear",
        })
    }
}
