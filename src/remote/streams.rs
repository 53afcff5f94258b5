//! The streams of a verb that runs on the far side.

use std::io::{self, Read};

/// A stream of the far side's verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Output,
    /// Standard error.
    Errors,
}

/// Takes the far side's output. If a stream is no longer read it returns an error, which the far side's verb then gets too.
pub type Sink<'a> = dyn FnMut(Stream, &[u8]) -> io::Result<()> + 'a;

/// Standard input of the far side's verb.
pub type Input = Box<dyn Read + Send>;
