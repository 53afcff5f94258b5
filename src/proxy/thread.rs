//! The threads of connections.

use std::io;
use std::thread::{Builder, JoinHandle};

/// Room for the C library, which resolves names. What is copied has room of its own.
const STACK: usize = 512 << 10;

pub fn start(work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    Builder::new().stack_size(STACK).spawn(work)
}
