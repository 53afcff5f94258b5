//! `agent diff`, in words: the difference between two snapshots, and what is to be known of it.

use crate::agent::Turn;
use crate::compare::{About, cut_off};
use crate::error::Error;
use crate::face::args::{SnapshotDiff, TurnDiff as Asked, turn_and_paths};
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::figures;
use crate::face::find_store::all_whole;
use crate::face::text::agent::uncovered;
use crate::face::text::fact::outside as wrote_outside;
use crate::face::text::list::shown;
use crate::face::text::snapshot::diff::diff_of;
use crate::snapshot::whole;
use crate::verb::TurnDiff;
use crate::verb::agent::diff::{diff as find, outside};
use crate::verb::snapshot::series::inner;

pub fn diff(call: &Call, args: Asked) -> Result<Ended, Error> {
    let (named, words) = turn_and_paths(&args.of);
    let found = find(call, named, |directory| inner(directory, &all_whole(words)?))?;
    let n = found.turn.head.n;
    if found.is_empty() {
        say_uncovered(call, &found.turn);
        call.out.note(format_args!("turn {n} changed nothing"));
        if !args.much.html {
            return Ok(Ended::Done);
        }
    }
    let say_others = || {
        found.others.iter().for_each(|path| call.out.note(format_args!("{}: turn {n} did not change it", call.out.shown(path))));
    };
    if found.paths.is_empty() && !words.is_empty() {
        say_others();
        return Ok(Ended::Done);
    }
    let after = if found.is_empty() { Some(found.before) } else { found.after };
    let paths = found.paths.iter().map(|path| Ok(whole(&found.directory, path)?.as_path().to_owned()));
    let paths = paths.collect::<Result<_, Error>>()?;
    let (other, key, dir) = (after.map(|n| n.to_string()), found.before.to_string(), found.directory.as_path().to_owned());
    let args = SnapshotDiff { key, other, paths, dir: Some(dir), with_vcs: false, much: args.much };
    let ended = diff_of(call, &args, Some(about(&found)))?;
    // From here on it is said after the pager's end.
    if named.is_none() {
        say_which(call, &found.turn);
    }
    say_uncovered(call, &found.turn);
    say_others();
    say_more(call, &found);
    Ok(ended)
}

/// Warns of a turn of which something may be missing.
fn say_uncovered(call: &Call, turn: &Turn) {
    if !turn.covered {
        let n = turn.head.n;
        call.out.warn(format_args!("turn {n} began before its snapshot was complete: some of its changes may be missing here"));
    }
}

fn say_which(call: &Call, turn: &Turn) {
    let which = format!("this is turn {} of {}: ", turn.head.n, turn.head.agent.word());
    // With "recant: " it is one line of 80 columns.
    let prompt = cut_off(&shown(&turn.head.prompt), 72_usize.saturating_sub(which.len()));
    call.out.note(format_args!("{which}{prompt}"));
}

fn say_more(call: &Call, found: &TurnDiff) {
    let (out, n) = (&call.out, found.turn.head.n);
    if found.after.is_some() {
        found.against.iter().for_each(|(path, why)| out.note(format_args!("{}: {why}", out.shown(path))));
    }
    uncovered::lines(out, &found.not_covered, false).iter().for_each(|line| out.note(line));
    outside(&found.turn).into_iter().for_each(|path| out.note(wrote_outside(n, path)));
    let (by, is_partly) = &found.undone;
    if !by.is_empty() {
        let part = if *is_partly { " in part" } else { "" };
        let by: Vec<&str> = by.iter().map(|id| id.tail()).collect();
        out.note(format_args!("turn {n} is undone{part} by {}", figures::list(&by)));
    }
}

/// The head of a turn's page.
fn about(found: &TurnDiff) -> About {
    let (turn, head) = (&found.turn, &found.turn.head);
    let mut facts = vec![("agent", format!("{}, session {}", head.agent.word(), shown(&head.session)))];
    facts.extend(head.model.as_ref().map(|model| ("model", shown(model))));
    facts.push(("prompt", shown(&head.prompt)));
    let ended = turn.ended.map(|time| format!(", ended {}", figures::time(time, true))).unwrap_or_default();
    facts.push(("begun", format!("{}{ended}", figures::time(head.time, true))));
    let mut notes = Vec::new();
    if !turn.covered {
        let why = "it began before its snapshot was complete: some of its changes may be missing here";
        notes.push(("not covered", why.to_owned()));
    }
    if !turn.is_settled {
        notes.push(("not ended", "it is compared with the directory as it is now".to_owned()));
    }
    notes.extend(outside(turn).into_iter().map(|path| {
        let path = shown(&path.to_string_lossy());
        ("outside", format!("{path}: written by the turn, but not covered: it lies outside of the project"))
    }));
    if found.after.is_some() {
        notes.extend(found.against.iter().map(|(path, why)| ("not the turn's", format!("{path}: {why}"))));
    }
    let owned = |list: Vec<(&str, String)>| list.into_iter().map(|(word, text)| (word.to_owned(), text)).collect();
    let title = format!("Turn {} of {}", head.n, head.agent.word());
    About { title, facts: owned(facts), notes: owned(notes), ..About::default() }
}
