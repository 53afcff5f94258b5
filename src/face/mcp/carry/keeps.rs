//! The things that a server keeps between calls, in memory.

use super::cursors::Cursors;
use super::outputs::Outputs;
use super::own_session::Last;
use crate::fs::AbsPath;
use crate::settings::Settings;

pub struct Keeps {
    pub store: AbsPath,
    pub settings: Settings,
    /// The working directory, from which paths are given; `None` if it is gone.
    pub here: Option<AbsPath>,
    pub last: Last,
    pub outputs: Outputs,
    pub cursors: Cursors,
}
