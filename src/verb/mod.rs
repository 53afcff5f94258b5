//! The verbs as functions: plain arguments in, a value out. Prints nothing, reads no words and no environment.
//!
//! A face (`face`) turns words into arguments, and values into text or JSON. What a verb needs of it is a [`Caller`](desk::Caller): who
//! calls, what is said meanwhile ([`Said`](fact::Said)), and the answer to a question.
//!
//! - **I27** A verb that changes something calls [`prepare_to_change`](desk::Desk::prepare_to_change) first.

pub mod act;
pub mod agent;
pub mod cat;
pub mod checkpoint;
pub mod commit;
pub mod config;
pub mod confirm;
pub mod desk;
pub mod diff;
pub mod discard;
pub mod doctor;
pub mod error;
pub mod fact;
pub mod fork;
pub mod gate;
pub mod here;
pub mod list;
pub mod log;
pub mod moving;
pub mod parts;
pub mod path_log;
pub mod prune;
pub mod question;
pub mod recover;
pub mod redo;
pub mod resolve;
pub mod restore;
pub mod restored;
pub mod retention;
pub mod rewind;
pub mod rollback;
pub mod run;
pub mod show;
pub mod signalled;
pub mod snapshot;
pub mod stage;
pub mod status;
pub mod steps;
pub mod table;
pub mod undo;
