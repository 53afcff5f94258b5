//! The faces of the verbs: words turned into arguments ([`args`]), and values into text ([`text`]) or JSON ([`json`]). No room below
//! uses them; a process begins in [`program`].
//!
//! Each face is a function from a [`Call`](call::Call) and its arguments to how the call [`Ended`](call_end::Ended). It prints by
//! [`Out`](out::Out) alone: results to standard output, everything said about them to standard error. What it tells, a verb has found out.
//!
//! [`program`] is the call of a process, [`screen`] draws and reads keys for [`review`], [`mcp`] serves agents, [`far`] carries a call to
//! another machine and back, [`door`] lets a held agent ask outside.

pub mod args;
pub mod call;
pub mod call_end;
pub mod calling_agent;
pub mod door;
pub mod errors;
pub mod exit;
pub mod far;
pub mod figures;
pub mod find_store;
pub mod finish;
pub mod json;
pub mod mcp;
pub mod near_side;
pub mod notifier;
pub mod out;
pub mod person_only;
pub mod program;
pub mod progress_bar;
pub mod review;
pub mod screen;
pub mod surroundings;
pub mod text;
pub mod watcher;
