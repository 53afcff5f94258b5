//! SOCKS5 without a password (RFC 1928): CONNECT alone.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpStream};

use super::admission::Admission;
use super::error::Denied;
use super::relay::both_ways;
use crate::settings::Host;

pub const VERSION: u8 = 5;

/// Reply codes: RFC 1928, 6.
const DONE: u8 = 0;
const FAILED: u8 = 1;
const NOT_ALLOWED: u8 = 2;
const HOST_UNREACHABLE: u8 = 4;
const NO_SUCH_COMMAND: u8 = 7;
const NO_SUCH_ADDRESS: u8 = 8;

/// The method without a password, and the answer where the client knows none that is known here.
const NO_PASSWORD: u8 = 0;
const NO_METHOD: u8 = 0xff;

const CONNECT: u8 = 1;

pub fn answer(mut client: &TcpStream, admission: &Admission) -> io::Result<()> {
    let [_version, methods] = take(client)?;
    let mut offered = vec![0; methods.into()];
    client.read_exact(&mut offered)?;
    let method = if offered.contains(&NO_PASSWORD) { NO_PASSWORD } else { NO_METHOD };
    client.write_all(&[VERSION, method])?;
    if method == NO_METHOD {
        return Ok(());
    }
    let [_version, command, _reserved, kind] = take(client)?;
    if command != CONNECT {
        return reply(client, NO_SUCH_COMMAND);
    }
    let Some(host) = host(client, kind)? else { return reply(client, NO_SUCH_ADDRESS) };
    let port = u16::from_be_bytes(take(client)?);
    match admission.connect(host, port) {
        Ok(server) => {
            server.set_nodelay(true)?;
            client.set_read_timeout(None)?;
            reply(client, DONE)?;
            both_ways(client, &server)
        }
        Err(why) if why.is_refusal() => reply(client, NOT_ALLOWED),
        Err(Denied::NotFound(..)) => reply(client, HOST_UNREACHABLE),
        Err(_) => reply(client, FAILED),
    }
}

/// The host that is asked for; `None` if it is none.
fn host(mut client: &TcpStream, kind: u8) -> io::Result<Option<Host>> {
    Ok(match kind {
        1 => Some(Host::Address(IpAddr::V4(Ipv4Addr::from(take::<4>(client)?)))),
        3 => {
            let [length] = take(client)?;
            let mut name = vec![0; length.into()];
            client.read_exact(&mut name)?;
            std::str::from_utf8(&name).ok().and_then(Host::parse)
        }
        4 => Some(Host::Address(IpAddr::V6(Ipv6Addr::from(take::<16>(client)?)).to_canonical())),
        _ => None,
    })
}

fn take<const N: usize>(mut client: &TcpStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    client.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Answers with this code, and with no address: none of this machine's is told.
fn reply(mut client: &TcpStream, code: u8) -> io::Result<()> {
    client.write_all(&[VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0])
}
