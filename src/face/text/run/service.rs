//! Words about services.

use serde::Serialize;

use crate::compare::escape_terminal;
use crate::error::command;
use crate::face::out::Out;
use crate::fs::AbsPath;
use crate::session::{Ending, Id, Stopped};
use crate::verb::resolve::service_rows::{ServiceRow, StoppedService};
use crate::verb::run::service::Service;

/// How a service ended.
pub fn said(StoppedService { name, ending, stopped, .. }: &StoppedService) -> String {
    match (stopped, ending) {
        (Some(Stopped::Asked), _) => format!("{name} is stopped (SIGTERM)"),
        (Some(Stopped::Killed), _) => format!("{name} did not end within 10 s of SIGTERM, and is killed (SIGKILL)"),
        (None, Some(ending)) => format!("{name} had ended ({})", exited(*ending)),
        (None, None) => format!("{name} has ended: its recant was killed"),
    }
}

/// `web since 19:50`.
pub fn since(service: &ServiceRow) -> String {
    format!("{} since {}", service.name, crate::tree::since(service.started))
}

fn exited(ending: Ending) -> String {
    match ending {
        Ending::Exited(status) => format!("exit {status}"),
        Ending::Signaled(signal) => format!("signal {signal}"),
    }
}

/// A service that runs: docs/json.md.
#[derive(Serialize)]
struct Serves<'a> {
    session: &'a Id,
    result: &'static str,
    service: &'a str,
    output: &'a AbsPath,
}

/// Says that a service runs.
pub fn say_serves(out: &Out, id: &Id, name: &str, output: &AbsPath) {
    if !out.is_text() {
        out.divert();
        out.document(&Serves { session: id, result: "serves", service: name, output });
        return out.flush();
    }
    let stop = command(format_args!("run --session {} --stop {name}", id.tail()));
    out.note(format_args!("{name} runs in session {}; {stop} ends it", id.tail()));
    out.note(format_args!("output: {}", out.place(output)));
}

/// The most lines of a service's output that are shown.
const LINES: usize = 10;

/// Says that a service ended at once, with its last lines.
pub fn say_end(out: &Out, service: &Service, ending: Ending) {
    let tail = service.tail();
    let text = String::from_utf8_lossy(&escape_terminal::content(&tail)).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(LINES)..];
    let colon = if last.is_empty() { "" } else { ":" };
    out.warn(format_args!("{} ended at once ({}){colon}", service.name, exited(ending)));
    last.iter().for_each(|line| out.say(format_args!("  {line}")));
}
