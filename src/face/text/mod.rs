//! Values in words, a file a verb or family; and the words that several of them have.

pub mod acts;
pub mod agent;
pub mod cat;
pub mod coverage;
pub mod cut_run;
pub mod diff;
pub mod discard;
pub mod fact;
pub mod graph;
pub mod heads;
pub mod list;
pub mod log;
pub mod man;
pub mod moving;
pub mod parts;
pub mod patch;
pub mod path_log;
pub mod question;
pub mod recovered;
pub mod rewind;
pub mod run;
pub mod show;
pub mod stage;
pub mod status;
pub mod steps;
pub mod waiting;
