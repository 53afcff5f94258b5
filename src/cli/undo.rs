//! `undo`: a rollback that shows what it will do, and asks.

use super::parts::select::may_name_blocks;
use super::problem::Problem;
use super::which::{self, Want};
use super::{Call, Ended, agents, apply, args, list, parts, text};
use crate::error::{Kind, command};

/// The most paths that are shown before the question.
const SHOWN: usize = 10;

/// Rolls a session back after a person at the terminal has seen what that does, or with `-y`.
pub fn undo(call: &Call, mut args: args::Back) -> Result<Ended, Problem> {
    say_turns(call, &args.what.id);
    if !args.what.dry_run && !call.yes {
        if !call.can_ask {
            return Err(unasked());
        }
        // These ask of each block, or name the ones that are meant.
        if args.patch || args.merge || args.what.paths.iter().any(|word| may_name_blocks(word)) {
            return parts::rollback::rollback(call, &args);
        }
        let (id, report) = apply::would_roll_back(call, &args)?;
        if !report.rows.is_empty() {
            let status = call.store_with(id.as_str())?.session(&id)?.header;
            call.out.say(format_args!("recant: undo takes {id} ({}) back:", list::status(&status)));
            for row in report.rows.iter().take(SHOWN) {
                call.out.say(format_args!("  {:<9} {}", apply::word(report.verb, row.done), call.out.shown(&row.path)));
            }
            if let Some(more) = report.rows.len().checked_sub(SHOWN).filter(|more| *more > 0) {
                let all = command(format_args!("rollback {} --dry-run --all", id.tail()));
                call.out.say(format_args!("  … and {more} more: {all}"));
            }
            call.confirm(&format!("Take {} back?", text::count(report.rows.len() as u64, "change")))?;
        }
        // The session that was shown, even if another is the newest by now.
        args.what.id = id.to_string();
    }
    parts::rollback::rollback(call, &args)
}

/// Names the undo of turns, if this one would take an agent's hooks away.
fn say_turns(call: &Call, key: &str) {
    let id = which::meant(call, key, Want::RollBack).filter(|_| key == "last");
    let session = id.and_then(|id| call.store().ok()??.session(&id).ok());
    let command_of_it = session.and_then(|session| session.header.command);
    let Some(install) = command_of_it.filter(|of| of.starts_with("agent install ")) else { return };
    if agents::turns::newest(call).is_some() {
        let undo = command("agent undo");
        call.out.note(text::filled(&format!("last is {install}; {undo} takes back what an agent's turn wrote")));
    }
}

/// The error that nobody can be asked.
pub fn unasked() -> Problem {
    let (yes, rollback) = (command("undo -y"), command("rollback ID"));
    Problem {
        state: Some("nothing was changed".into()),
        ..Problem::new(Kind::Usage, "undo asks first, and there is no terminal")
    }
    .remedy(format!("{yes} asks nothing; nor does {rollback}"))
}
