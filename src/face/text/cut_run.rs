//! Words for a run of `run --in` whose recant was killed.

use crate::capture::start_of;
use crate::compare::cut_off;
use crate::error::command;
use crate::face::figures;
use crate::fs::Shown;
use crate::session::{Id, Record};
use crate::verb::{CutRun, Outcome};

/// The outcome of a recovery, in a line or two.
pub fn line(run: &CutRun) -> String {
    let (what, tail) = (what(&run.id, run.record.as_ref()), run.id.tail());
    match &run.outcome {
        Outcome::Made(changes, _) => {
            let changes = figures::count(*changes, "change");
            let [rollback, diff] = ["rollback", "diff"].map(|verb| command(format_args!("{verb} {tail}")));
            format!(
                "{what} was cut off; what has changed there since it began, {changes}, is session {id}\n\
                 {rollback} takes it back; what others have changed there is in it, too: {diff}",
                id = run.id
            )
        }
        Outcome::WasMade => format!("{what} was cut off when its session was made: {}", run.id),
        Outcome::Unchanged => format!("{what} was cut off; nothing there has changed since it began"),
        Outcome::GivenUp(befores) => {
            let way = |(n, dir): &(u64, _)| String::from(command(format_args!("snapshot restore {n} --with-vcs --dir {dir}")));
            let ways: Vec<String> = befores.iter().map(way).collect();
            let back = if ways.is_empty() { String::new() } else { format!("\n{} goes back to before it", ways.join("; ")) };
            format!("{what} is given up: its changes stay, without a session{back}")
        }
        Outcome::Failed(problem) => {
            let remedy = problem.advice().map_or(String::new(), |remedy| format!("\n{remedy}"));
            format!("{what} was cut off; no session can be made of what it changed: {}{remedy}", problem.message())
        }
    }
}

/// Describes what recovery would do with a run that was cut off, for verbs that only read.
pub fn would(id: &Id, record: Option<&Record>) -> String {
    format!("{} was cut off; the next verb that changes something makes a session of what it changed", what(id, record))
}

/// Names a run for a sentence, also if its record cannot be read.
pub fn what(id: &Id, record: Option<&Record>) -> String {
    let Some(record) = record else { return format!("run {id} on the real tree") };
    let command = Shown(start_of(&record.words()).as_bytes()).to_string();
    let directories: Vec<String> = record.directories.iter().map(|of| of.directory.to_string()).collect();
    format!("the run of {} in {}", cut_off(&command, 60), figures::list(&directories))
}
