//! From the words of a call to the session that they mean: which one, whose it is, whether the act can be done to it; and opened for it.

pub mod acts_of_others;
pub mod find_session;
pub mod go_on;
pub mod guard;
pub mod killed_run;
pub mod named_changes;
pub mod open;
pub mod scope;
pub mod service_rows;
pub mod services;
pub mod standing;
pub mod target;
pub mod wanted_act;
