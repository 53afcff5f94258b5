//! `diff`.
use super::args;
use super::problem::Problem;
use super::{Call, Ended};

/// Prints it.
pub fn diff(_call: &Call, _args: &args::Diff) -> Result<Ended, Problem> {
    Ok(Ended::Done)
}
