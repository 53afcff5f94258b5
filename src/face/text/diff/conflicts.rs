//! `diff --conflicts`: what stands against a commit or rollback, in words. Conflicts path by path: what is on the tree now against what the
//! verb would put there. Where the session keeps the original, what became of it on either side. What the verb would refuse, with its reason.

use super::about;
use super::showing::{self, Show};
use super::shown::{again, names};
use super::stat::Together;
use crate::compare::NOW;
use crate::engine::Verb;
use crate::error::Error;
use crate::face::call::Call;
use crate::face::text::patch;
use crate::face::{args, figures};
use crate::verb::diff::conflicts::Row;
use crate::verb::{Conflicts, Refused};

pub fn show(call: &Call, args: &args::Diff, found: &mut Conflicts<'_>) -> Result<(), Error> {
    if args.much.name_only {
        names(call, found.conflicts.iter().map(|conflict| &conflict.path).collect());
        if call.out.is_text() {
            say_how_many(call, found, |_| false);
        }
        return Ok(());
    }
    if !call.out.is_text() {
        if args.much.stat {
            found.count_lines()?;
        }
        call.out.document(found);
        return Ok(());
    }
    let is_patch = !args.much.stat && args.much.form.tool.is_none();
    if found.conflicts.is_empty() && !args.much.html {
        showing::page(call);
    } else {
        let (store, session) = (found.store, found.session);
        let refused = |Refused { path, verb, why }: &Refused| ("refused".into(), format!("{} of {path}: {why}", verb.word()));
        let refused: Vec<_> = found.refused.iter().map(refused).collect();
        let page = || about::conflicts(call, store, session, refused);
        let each = |_, show: &mut Show<'_>| found.for_each(is_patch, &mut |view| show(view).map(drop)).map(|()| 0);
        showing::all(call, (&args.much, Together::default(), None), page, each, |options| {
            again(args, session.id().tail(), options)
        })?;
    }
    let remarked = found.refused.iter().filter(|_| !args.much.html);
    remarked.for_each(|Refused { path, why, .. }| patch::remark(&call.out, &format!("{path}: refused: {why}")));
    say_how_many(call, found, |conflict| conflict.base && is_patch);
    Ok(())
}

/// Says how many there are. `in_two` tells which were shown by what became of their original on either side.
fn say_how_many(call: &Call, found: &Conflicts<'_>, in_two: impl Fn(&Row<'_>) -> bool) {
    let Conflicts { conflicts, refused, session, .. } = found;
    if conflicts.is_empty() && refused.is_empty() {
        call.out.note(format_args!("session {}: no conflicts", session.id()));
        return;
    }
    for (verb, what) in [(Verb::Commit, "is held"), (Verb::Rollback, "would be put back")] {
        let (two, one): (Vec<_>, Vec<_>) = conflicts.iter().filter(|conflict| conflict.verb == verb).partition(|row| in_two(row));
        let say = |conflicts: &[&Row<'_>], shown: &str| {
            if !conflicts.is_empty() {
                let conflicts = figures::count(conflicts.len() as u64, "conflict");
                call.out.note(format_args!("{conflicts} for {}: {shown}", verb.word()));
            }
        };
        say(&one, &format!("- is {NOW}, + {what}"));
        say(&two, &format!("what changed on the tree, then what {what}"));
        let refused = refused.iter().filter(|refused| refused.verb == verb).count() as u64;
        if refused > 0 {
            call.out.note(format_args!("a {} would be refused for {}", verb.word(), figures::count(refused, "path")));
        }
    }
}
