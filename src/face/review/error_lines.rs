//! Words for what goes wrong on the screen.

use std::sync::Arc;

use crate::error::Error;
use crate::face::screen::world::{Look, ViewedChanges};
use crate::tree::Hash;

/// An error as the screen shows it.
pub fn said(problem: impl Into<Error>) -> String {
    lines_of(&problem.into()).join("; ")
}

/// The lines of an error, with every path in its way.
pub fn lines_of(problem: &Error) -> Vec<String> {
    let paths = problem.rows().iter().map(ToString::to_string);
    let rest = [problem.state().map(str::to_owned), problem.remedy()].into_iter().flatten();
    [problem.message().to_owned()].into_iter().chain(paths).chain(rest).collect()
}

/// Makes a look of a function that makes [`ViewedChanges`] unless nothing differs from a mark.
pub fn look(find: impl Fn(Option<Hash>) -> Result<Option<ViewedChanges>, Error> + Send + Sync + 'static) -> Look {
    Arc::new(move |mark| find(mark).map_err(said))
}
