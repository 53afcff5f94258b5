//! The verbs as functions: plain arguments in, a value out. Prints nothing, reads no words and no environment.
//!
//! A face (`face`) turns words into arguments, and values into text or JSON. What a verb needs of it is a [`Caller`](desk::Caller): who
//! calls, what is said meanwhile ([`Said`](said::Said)), and the answer to a question.
//!
//! - **V1** A verb that changes something calls [`prepare_to_change`](desk::Desk::prepare_to_change) first.

pub mod act;
pub mod acted;
pub mod begun;
pub mod behind;
pub mod cat;
pub mod chosen;
pub mod collect;
pub mod commit;
pub mod confirm;
pub mod deadline;
pub mod desk;
pub mod diff;
pub mod discard;
pub mod error;
pub mod fork;
pub mod go_on;
pub mod guard;
pub mod list;
pub mod log;
pub mod merge;
pub mod news;
pub mod open;
pub mod parts;
pub mod question;
pub mod redo;
pub mod rewind;
pub mod rollback;
pub mod said;
pub mod scope;
pub mod show;
pub mod standing;
pub mod status;
pub mod steps;
pub mod table;
pub mod target;
pub mod touched;
pub mod turns;
pub mod undo;
pub mod unneeded;
pub mod waiting;
pub mod want;
pub mod which;
