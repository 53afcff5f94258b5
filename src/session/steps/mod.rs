//! Steps: what each command of a session changed, in the order in which they ended. `steps.jsonl` has a record for each, followed by its
//! lines. It is appended to alone: the header counts the bytes, so that what a killed recant left behind them is nothing.
//!
//! A step's own list says what it changed against the step that it stands on. The net changes at a step are the last line for each path
//! along its chain. So a line of the list stands for both, but where an earlier step had changed the path: there a `net` line follows.
//!
//! A session in which one command ran has no such file: its step 1 is told by `run.json` and `changes.jsonl`.

mod list;
mod move_head;
mod record;

pub use list::StepList;
pub use move_head::{HeaderFacts, is_block};
pub use record::{Added, PartedPaths, Step};
