//! The way out of a run with a network of its own: the init listens at its loopback, and recant, outside, gets the socket. Whoever serves it
//! connects from the machine's network.

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use super::command::{Loopback, Network};
use super::passed_descriptors::{receive, send};
use crate::error::{At, IoError};

/// The port of the proxy. Nobody else is on that loopback.
const PORT: u16 = 3128;

const SOCKET: &str = "the socket of the proxy";

/// Listens, and passes the socket to recant.
pub fn open(recant: &UnixStream) -> Result<(), IoError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, PORT)).at("listen at", SOCKET)?;
    send(recant, 0, &[listener.as_fd()]).at("pass", SOCKET)
}

/// Takes the socket, which the init has passed.
pub fn take(init: &UnixStream) -> Result<TcpListener, IoError> {
    let passed = receive(init).at("take", SOCKET)?;
    let socket = passed.and_then(|(_, sockets)| sockets.into_iter().next()).ok_or(io::ErrorKind::UnexpectedEof);
    Ok(socket.map_err(io::Error::from).at("take", SOCKET)?.into())
}

/// Variables that name the proxy, in both spellings: curl, git, wget, apt, pip, Go and most other programs read some of these.
const BY_SCHEME: [&str; 6] = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

/// Those of programs whose own settings would count for more.
const OF_PROGRAMS: [&str; 3] = ["npm_config_proxy", "npm_config_https_proxy", "CARGO_HTTP_PROXY"];

/// The variables by which programs find the proxy; none if there is no proxy.
pub fn variables(network: Network) -> Vec<(OsString, OsString)> {
    let Network::Proxied(loopback) = network else { return Vec::new() };
    let proxy = format!("http://{}:{PORT}", Ipv4Addr::LOCALHOST);
    let own = if loopback == Loopback::Own { "localhost,127.0.0.1,::1" } else { "" };
    let named = BY_SCHEME.into_iter().chain(OF_PROGRAMS).map(|name| (name, &*proxy));
    let past = ["NO_PROXY", "no_proxy", "npm_config_noproxy"].map(|name| (name, own));
    // Node.js from 24 on.
    let all = named.chain(past).chain([("NODE_USE_ENV_PROXY", "1")]);
    all.map(|(name, value)| (name.into(), value.into())).collect()
}
