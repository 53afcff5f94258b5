//! Staging by hand: write, delete, mkdir, symlink, chmod. Each takes the next number. Content and its line are durable before the header
//! that counts the line; the object that was replaced goes last (I10).

mod acts;
mod finish;
mod resolve;
mod staging;

pub use staging::{Staging, Write};
