//! The program that tells a person that a session waits: `agent.notify`.

use std::os::unix::process::CommandExt;
use std::process::Stdio;

use super::figures;
use super::out::Out;
use crate::error::{command, reason};
use crate::session::Header;

/// Starts the program, apart from this process's group; the line is its last argument.
pub fn start(out: &Out, program: &[String], waits: &Header) {
    let [name, words @ ..] = program else { return };
    let (tail, held) = (waits.id.tail(), figures::count(waits.counts.changes, "change"));
    let named = waits.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
    let line = format!("session {tail}{named} waits for you: {held}; {}", command(format_args!("review {tail}")));
    let mut program = crate::fs::command(name);
    program.args(words).arg(line).process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Err(error) = program.spawn() {
        out.warn(format_args!("agent.notify: {name}: {}", reason(&error)));
    }
}
