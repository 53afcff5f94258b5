//! The only way out of a run whose network is listed: a proxy outside, which reaches what is listed, by name. Used by `verb` and the faces.
//!
//! A separate process serves it, and holds nothing of the run but the socket that the command connects to. HTTP with CONNECT, or SOCKS5, by
//! the first byte. What always holds:
//! - A name is resolved here, once: the addresses that are checked are those that are connected to ([`admission`]).
//! - What leads to this machine, to its link, or to a cloud's metadata is refused though a listed name leads there: such an address has to
//!   be listed itself.
//! - Of HTTP without TLS, one request a connection goes on, written anew: what follows it goes nowhere ([`http`]). TLS is not opened.

mod admission;
mod error;
mod forward;
mod head;
mod http;
mod refused;
mod relay;
mod serve;
mod socks;
mod thread;

pub use refused::Refused;
pub use serve::serve;
