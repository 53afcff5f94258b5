//! The command line: from the words of a process to a verb, and a file for each verb or small group that has no face yet.
//!
//! Prints by [`Out`](crate::face::out::Out); the screen alone draws by itself. An error ends as an [`Error`](crate::error::Error) with its
//! [`Kind`](crate::error::Kind), and [`exit`] alone knows exit statuses.

mod dispatch;
mod far;
mod misuse;
mod review;
mod start;

pub use start::main;
