//! The Model Context Protocol: a server on two streams, for agents. One JSON-RPC message a line, in both eras of the protocol.
//!
//! In: lines of a client, and what a [`Carrier`](carrier::Carrier) says of the calls that it carries out. Out: lines. This room knows no
//! session and runs nothing. Every line, and each `requestState` that comes back, is a stranger's.
//!
//! - **Q1** A tool that decides about real files ([`Effect::Decides`](tools::Effect)) is carried out after one right answer to one question,
//!   and in no other way ([`question`]). All else is a refusal with the command for a person to type.
//! - **Q2** What is carried out is what was shown: the digest of the question goes along, and the carrier compares it again.
//! - **Q3** A question is answered once: right or wrong, it is spent. The code stands in its text, and nowhere else.
//! - **Q4** A cancelled request gets no answer.
//!
//! The eras: up to 2025-11-25 a client opens with `initialize`, and the server sends it `elicitation/create`. From 2026-07-28 on each request
//! carries its version and capabilities, and a question is a result of the call, which is then repeated with the answer. Source:
//! <https://modelcontextprotocol.io/specification>, the pages of these versions.

pub mod carrier;
pub mod client;
pub mod fields;
pub mod hmac;
pub mod page;
pub mod question;
pub mod schema;
pub mod serve;
pub mod tools;
pub mod wire;
