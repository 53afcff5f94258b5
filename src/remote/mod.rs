//! A verb on another machine: the far side's recant works on the far side's files with the far side's store. The system's own ssh carries
//! words, streams and signals between the two; docs/remote.md has the protocol. Used by `verb` and the faces.
//!
//! In: a call's words and streams, and the machine. Out: the output of the far side's recant, and its exit status. Touches no tree and
//! no store on this side. What always holds:
//! - No word of a user becomes text of a shell: the command that ssh carries is constant, and the request is data behind it
//!   ([`frame`]), or one word of letters and digits ([`request::Request::word`]).
//! - A connection that is cut decides nothing: the far side finishes or undoes by its own journal ([`far_side`]), and an end of standard
//!   input counts only where it was sent.
//! - ssh is the user's: no option of its settings is overridden, no password is read.

mod connection;
pub mod error;
pub mod far_side;
mod frame;
mod host;
mod install;
mod install_path;
mod longest_silence;
mod near;
mod protocol;
pub mod request;
mod run_verb;
mod send_frames;
mod signals;
mod ssh;
pub mod streams;

pub use far_side::Cut;
pub use frame::{Down, Up};
pub use host::Target;
pub use near::NearSide;
pub use protocol::{MISSING, PROTOCOL};
pub use request::{Line, Request, Word};
pub use signals::Signals;
pub use ssh::{Install, Link, Ssh};
pub use streams::Stream;
