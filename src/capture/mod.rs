//! Runs a command so that its file changes are held: in a mount namespace of its own, where every place that it could
//! write is an overlay whose upper lies in the session, or is read-only. Then reads the uppers into changes.
//!
//! The way of the data, each arrow a finished value:
//! `Request` → [`plan::Plan::make`] → `Plan` → [`plan::Plan::lay_out`] → `Laid` → [`run::run`] → `Ended` →
//! [`collect::finish`] → `Collected`.
//!
//! What always holds:
//! - **H1** Fail closed: what can't be mounted as planned ends the run before the command starts, and what the kernel
//!   mounted is read back from mountinfo. A mount that is neither planned nor read-only ends it too.
//! - **H2** The command dies with recant: its init has PDEATHSIG and a socket that ends with recant.
//! - **H3** When [`run::run`] returns, no process of the run is left but its init, which is ending, so the uppers are still. Its
//!   mounts are gone once [`run::Leaving::wait`] returns, and a run is not over before.
//! - **H4** Folders on the tree are never touched here: all that is made lies in the store or in a mount of the run's own.
//!
//! Files: `layout` is what is asked for and laid out, as data; `plan` is the checked list of mounts, `places` chooses what is on it; `space` builds them
//! inside the namespace, `ids` maps its users and groups; `split` lays out a directory that can be no lower, of `pieces`; `covers` is what lies over sockets outside; `upper` is what an upper looks like; `command` is what is run and how it ended, `ground` what it runs on; `rights` are given up before it is there; `init` is the small pid 1, `orphans` what goes on without it;
//! `run` forks and waits, `phase` tells it what a signal means; `collect` reads the uppers, once
//! `redirect` has filled in the folders that were renamed; `sys` holds the unsafe calls; `probe` looks
//! at the machine's switches; `refused` guesses what a command that failed was refused;
//! `scratch` drops what is to be dropped; `limit` watches how much is written; `ahead` has it written out early; `terminal` is taken back from the command;
//! `confine` is the way without namespaces: nothing is held, and writes but to some folders are denied.

mod ahead;
pub mod collect;
pub mod command;
pub mod confine;
mod covers;
mod descriptors;
pub mod error;
mod feed;
mod file;
mod filter;
pub mod ground;
pub mod hold;
mod ids;
mod init;
pub mod inside;
pub mod layout;
mod limit;
mod memory;
mod orphans;
mod phase;
mod pieces;
pub mod places;
pub mod plan;
pub mod probe;
mod redirect;
mod refused;
mod rights;
pub mod run;
mod scratch;
mod space;
mod split;
mod sys;
mod terminal;
mod upper;
mod words;
