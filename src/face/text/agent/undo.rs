//! `agent undo`, in words.

use std::path::PathBuf;

use super::uncovered;
use crate::agent::{Built, Reach};
use crate::compare::cut_off;
use crate::engine::LeftPath;
use crate::error::{Error, Kind, command, shell_word};
use crate::face::args::{TurnUndo, turn_and_paths};
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::figures;
use crate::face::find_store::all_whole;
use crate::face::out::Out;
use crate::face::text::list::shown;
use crate::session::Id;
use crate::verb::agent::undo::undo as take_back;
use crate::verb::error::turns_in_words;
use crate::verb::snapshot::series::inner;
use crate::verb::{TakeBack, TakenBack};

pub fn undo(call: &Call, args: &TurnUndo) -> Result<Ended, Error> {
    let (n, words): (_, &[PathBuf]) = turn_and_paths(&args.of);
    let reach = match (args.only, args.session) {
        (true, _) => Reach::Only,
        (false, true) => Reach::Conversation,
        (false, false) => Reach::Later,
    };
    let asked = TakeBack { n, reach, force: args.force, dry_run: args.dry_run };
    let taken = take_back(call, &asked, |directory| inner(directory, &all_whole(words)?))?;
    if call.out.is_text() {
        say(&call.out, &taken)
    } else {
        call.out.document(&taken)
    }
    Ok(if taken.is_whole() { Ended::Done } else { Ended::With(Kind::LeftOut) })
}

/// Reports what was taken back.
pub fn say(out: &Out, taken: &TakenBack) {
    list(out, taken);
    let (turns, stays) = (turns_in_words(&taken.turns), stays(taken));
    match (&taken.already[..], taken.paths.is_empty()) {
        (_, false) => {}
        ([], true) => return out.note(format_args!("{turns}: nothing to take back{stays}")),
        (already, true) => {
            let tails: Vec<&str> = already.iter().map(Id::tail).collect();
            let again = match tails[..] {
                [one] => format!(": {} brings it back", command(format_args!("rollback {one}"))),
                _ => String::new(),
            };
            return out.note(format_args!("{turns}: already undone by {}{again}{stays}", figures::list(&tails)));
        }
    }
    let would = if taken.dry_run { "would be " } else { "" };
    out.note(format_args!("{turns}: {} {would}taken back{stays}", figures::count(taken.paths.len() as u64, "path")));
    taken.built.iter().for_each(|built| say_built(out, taken, built));
    if let Some(id) = &taken.session {
        out.note(format_args!("to undo this: {}", command(format_args!("rollback {}", id.tail()))));
        // An edit cannot be told from what the command wrote.
        if taken.by_commands {
            out.note("this also restores any edit you made while a command ran");
        }
        say_conversation(out, taken);
    }
}

fn list(out: &Out, TakenBack { turns, session, paths, skipped, not_covered, .. }: &TakenBack) {
    let first = turns.first().copied().unwrap_or_default();
    let all = command(format_args!("agent undo {first} --dry-run -v"));
    let whole = session.as_ref().map_or_else(|| all.clone(), |id| command(format_args!("show {} -v", id.tail())));
    out.listing(paths.iter().map(|row| format!("{:<9} {}", row.done.word(), out.shown(&row.path))), &whole);
    let stay =
        |row: &str| if out.is_for_people() { figures::filled_after("stays", row, 10) } else { format!("{:<10}{row}", "stays") };
    out.first_of(skipped.iter().map(|LeftPath { path, why }| stay(&format!("{}: {why}", out.shown(path)))), &all);
    uncovered::lines(out, not_covered, out.is_verbose()).iter().for_each(|line| out.line(stay(line)));
}

/// The number of things that stay, for the end of a sentence.
fn stays(taken: &TakenBack) -> String {
    match taken.skipped.len() + taken.not_covered.len() {
        0 => String::new(),
        1 => ", 1 stays".into(),
        stay => format!(", {} stay", figures::grouped(stay as u64)),
    }
}

fn say_built(out: &Out, taken: &TakenBack, Built { path, touched }: &Built) {
    let Ok(path) = crate::snapshot::whole(&taken.directory, path) else { return };
    let files = figures::count(*touched, "file");
    let get = if *touched == 1 { "gets" } else { "get" };
    out.note(format_args!("{} is newer: {files} {get} the present time, so that it is rebuilt", out.shown(&path)));
}

/// Names the command that takes the agent's own conversation back, where it has one.
fn say_conversation(out: &Out, taken: &TakenBack) {
    let Some(head) = taken.first.as_ref().map(|turn| &turn.head) else { return };
    let (session, prompt) = (shell_word(head.session.as_bytes()), cut_off(&shown(&head.prompt), 48));
    (head.agent.back)(&session, &prompt).iter().for_each(|line| out.note(line));
}
