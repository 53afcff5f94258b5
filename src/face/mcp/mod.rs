//! The Model Context Protocol: a server on two streams, for agents. One JSON-RPC message a line, in both eras of the protocol.
//!
//! In: lines of a client, and what a [`Carrier`](carrier::Carrier) says of the calls that it carries out. Out: lines. This room knows no
//! session and runs nothing. Every line is a stranger's.
//!
//! - What would change real files is never carried out: the answer is the command for a person to type.
//! - A result is one line of JSON, as text alone, and has no key that tells nothing.
//! - A cancelled request gets no answer.
//!
//! The eras: up to 2025-11-25 a client opens with `initialize`. From 2026-07-28 on each request carries its version and capabilities. Source:
//! <https://modelcontextprotocol.io/specification>, the pages of these versions.

pub mod carrier;
pub mod carry;
pub mod client;
pub mod fields;
pub mod page;
pub mod serve;
pub mod tools;
pub mod wire;
