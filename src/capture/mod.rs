//! Runs a command so that its file changes are held. The command gets a mount namespace of its own, where each place is read-only, or an
//! overlay whose upper lies in the session. Then the uppers are read into changes.
//!
//! The way of the data, each arrow a finished value:
//! `Request` → [`plan::Plan::make`] → `Plan` → [`plan::Plan::lay_out`] → `Laid` → [`run::run`] → `Ended` →
//! [`collect::finish`] → `Collected`.
//!
//! What always holds:
//! - **H1** Fail closed: what can't be mounted as planned ends the run before the command starts, and what the kernel mounted is read back
//!   from mountinfo. A mount that is neither planned nor read-only ends it too.
//! - **H2** The command dies with recant: its init has PDEATHSIG, and a socket that closes when recant ends.
//! - **H3** When [`run::run`] returns, only the run's init is left, and it is ending. So nothing writes to the uppers any more. The mounts
//!   are gone once [`run::Leaving::wait`] returns; the run is not over before that.
//! - **H4** Directories on the tree are never touched here: all that is made lies in the store or in a mount of the run's own.
//!
//! Files: `layout` is what is asked for and laid out, as data; `places` chooses what is captured; `plan` is the checked list of mounts;
//! `space` builds them in the namespace; `ids` maps its users and groups; `split` lays out a directory that can't be a lower, made of
//! `pieces`; `covers` lies over sockets of processes outside; `upper` is what an upper looks like; `command` is what is run and how it
//! ended, `ground` what it runs on; `rights` drops capabilities before it starts; `init` is the small pid 1, `orphans` ends what outlives
//! it; `run` forks and waits; `phase` decides what a signal means; `collect` reads the uppers, after `redirect` has filled in renamed
//! directories; `sys` holds the unsafe calls; `probe` looks at the machine's switches, which `switches` reads; `cause` tells why a set-up failed, and the remedy;
//! `sealed` finds the uppers of earlier steps, which `blocks` and `merge` join once they are many, and `fork` copies; `choice` is a step that
//! a person makes, `chosen` its terms, `choice_upper` its uppers; `closed` notes what was
//! opened up in uppers; `scratch` drops changes of scratch places; `limit` measures what is written, `early_sync` has it written out early; `terminal` is taken back
//! from the command; `confine` is the way without namespaces: it holds nothing, and denies writes except below some directories.

mod blocks;
pub mod cause;
pub mod choice;
mod choice_upper;
pub mod chosen;
mod closed;
pub mod collect;
pub mod command;
pub mod confine;
mod covers;
mod descriptors;
mod early_sync;
pub mod error;
mod feed;
mod file;
mod filter;
pub mod fork;
pub mod ground;
pub mod hold;
mod ids;
mod init;
pub mod inside;
pub mod layout;
mod limit;
mod memory;
mod merge;
mod messages;
mod orphans;
mod phase;
mod pieces;
pub mod places;
pub mod plan;
pub mod probe;
mod redirect;
pub mod rejoin;
mod rights;
pub mod run;
pub mod scope;
mod scratch;
pub mod sealed;
mod space;
mod split;
pub mod switches;
mod sys;
mod terminal;
mod upper;
