//! Runs a command so that its file changes are held. The command gets a private mount namespace, where each place is read-only, or an
//! overlay whose upper lies in the session. Then the uppers are read into changes. Used by `verb` and the faces.
//!
//! The way of the data, each arrow a finished value:
//! `Request` → [`place::mount_plan::Plan::make`] → `Plan` → [`place::mount_plan::Plan::lay_out`] → `Laid` → [`run::supervise::run_captured`] → `EndedRun` →
//! [`collect::finish`] → `Collected`.
//!
//! What always holds:
//! - **H1** Fail closed: what can't be mounted as planned ends the run before the command starts, and what the kernel mounted is read back
//!   from mountinfo. A mount that is neither planned nor read-only ends it too.
//! - **H2** The command dies with recant: its init has PDEATHSIG, and a socket that closes when recant ends.
//! - **H3** When [`run::supervise::run_captured`] returns, only the run's init is left, and it is ending. So nothing writes to the uppers any more. The mounts
//!   are gone once [`run::supervise::EndingInit::wait`] returns; the run is not over before that.
//! - **H4** Directories on the tree are never touched here: all that is made lies in the store or in a mount of the run's own.
//!
//! Folders: [`place`] decides, place by place, what is captured and how: the checked list of mounts; [`space`] builds them in the namespace;
//! [`run`](mod@run) forks, passes signals on and waits, also for a command on the real tree, which holds nothing; [`collect`] reads the
//! uppers into changes; [`layers`] has the uppers of a session's steps: sealed, joined, copied, and chosen by a person.

pub mod collect;
mod error;
pub mod layers;
pub mod place;
pub mod run;
pub mod space;

pub use error::not_found;
pub use layers::choice::{choose, may_choose};
pub use layers::choice_terms::Choice;
pub use layers::fork::fill;
pub use layers::rejoin::Rest;
pub use place::layout::{Hide, Pass, Request};
pub use place::mount_plan::{Plan, working_directory};
pub use run::collect_killed::collect_killed;
pub use run::command::{Command, Linger, Loopback, Network, Output};
pub use run::confine::Confinement;
pub use run::descriptors::close_inherited;
pub use run::detached::{Launch, Side, detach};
pub use run::door::NAME as DOOR;
pub use run::ground::Ground;
pub use run::held_run::{Held, hold, start_of};
pub use run::is_inside::{Inside, capture, inside};
pub use run::joined_run::join;
pub use run::keep_changes::changes_so_far;
pub use run::orphans::children_of;
pub use run::supervise::{Event, run_command};
pub use space::probe::{Finding, Here};
pub use space::refusals::Cause;
