//! The tools of a person: looked at for a question, and carried out here once it was answered, with what was shown picked as on the screen.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use serde_json::json;

use super::child::{documents, named};
use super::look;
use crate::capture::inside::inside;
use crate::cli::args::Verb;
use crate::cli::out::Form;
use crate::cli::parts::select::{self, Selection, Way, settle};
use crate::cli::problem::Problem;
use crate::cli::which::Want;
use crate::cli::{Call, Ended, help, picks, place, snapshot_restore};
use crate::diff::entries::Taken;
use crate::diff::picked::{Pick, Picked, seen};
use crate::diff::sources::Sources;
use crate::error::{Kind, command, shell_word};
use crate::fs::path::AbsPath;
use crate::fs::signal_pipe;
use crate::mcp::carrier::{Asked, Outcome, Plan};
use crate::mcp::page;
use crate::mcp::tools::Name;
use crate::tree::hash::Hash;

/// A person's act, ready to be carried out on what was looked at.
struct Act {
    verb: Verb,
    digest: Hash,
    /// The act, for a question.
    what: String,
    command: String,
    notes: Vec<String>,
}

/// Looks at what an act would do.
pub fn plan(call: &Call, asked: &Asked, agent: Option<String>) -> Result<Plan, Outcome> {
    let planned = || -> Result<Plan, Problem> {
        if let Some(id) = inside() {
            let why = format!("this is inside the run of session {id}, where nothing reaches the real tree");
            let tail = id.rsplit('-').next().unwrap_or(&id);
            return Err(
                Problem::refused(why).remedy(format!("the person outside does that: {}", command(format_args!("review {tail}"))))
            );
        }
        let act = look_at(call, asked, true)?;
        let dry = Call { through: agent, ..call.kept_as(Form::Text) };
        dry.carry_out(act.verb)?;
        dry.out.finish()?;
        let mut summary = act.notes;
        summary.extend(dry.out.kept());
        let more = summary.len().saturating_sub(page::MOST);
        if more > 0 {
            // The line that sums it up is the last one.
            summary.drain(page::MOST - 2..page::MOST - 1 + more);
            summary.insert(page::MOST - 2, format!("… and {} more lines: {} --dry-run --all", more + 1, act.command));
        }
        Ok(Plan { digest: act.digest.to_string(), act: act.what, summary, command: act.command })
    };
    let planned = planned().map_err(|problem| refused(&call.with_remedy(problem)));
    signal_pipe::listen_again();
    planned
}

/// Carries an act out, if it still is the one of this digest (Q2).
pub fn act(call: &Call, asked: &Asked, agent: Option<String>, digest: &str) -> Outcome {
    let done = || -> Result<Outcome, Problem> {
        let act = look_at(call, asked, false)?;
        if act.digest.to_string() != digest {
            return Err(Problem { state: Some("nothing was changed".into()), ..Problem::new(Kind::Conflict, picks::STALE) }
                .remedy(format!("for the person to look at, and to type: {}", act.command)));
        }
        let doer = Call { through: agent, ..call.kept_as(Form::Json) };
        let ended = doer.carry_out(act.verb)?;
        doer.out.finish()?;
        Ok(report(ended, &doer.out.kept()))
    };
    let done = done().unwrap_or_else(|problem| refused(&call.with_remedy(problem)));
    signal_pipe::listen_again();
    done
}

/// The verb's own document.
fn report(ended: Ended, lines: &[String]) -> Outcome {
    let mut said = lines.iter().flat_map(|line| documents(line.as_bytes()).collect::<Vec<_>>());
    let Some(mut document) = said.rfind(|said| said.get("paths").is_some()) else {
        return Outcome::refused("refused", format!("it ended without a report ({ended:?})"));
    };
    look::count(&mut document, &["paths", "skipped", "notes", "displaced"]);
    Outcome::done(document)
}

/// A problem as a document.
fn refused(problem: &Problem) -> Outcome {
    let mut document = serde_json::to_value(problem).unwrap_or_else(|_| json!({ "message": problem.message }));
    document["schema"] = 2.into();
    look::count(&mut document, &["paths"]);
    Outcome::failed(document)
}

fn look_at(call: &Call, asked: &Asked, dry_run: bool) -> Result<Act, Problem> {
    // What an act before has changed is read again.
    let call = call.kept_as(Form::Text);
    let (word, act, want, way) = match asked.tool.is {
        Name::Rollback => ("rollback", "roll back session {}", Want::RollBack, Way::Back),
        Name::Redo => ("redo", "commit session {} again", Want::Redo, Way::Forth),
        Name::SnapshotRestore => return of_snapshot(&call, asked, dry_run),
        _ => ("commit", "commit session {}", Want::Commit, Way::Forth),
    };
    let key = asked.text("session").unwrap_or("last");
    let store = call.store_with(key)?;
    let id = call.find(store, Some(key), want)?;
    let (_, session) = call.session(Some(id.as_str()))?;
    let (changes, paths) = (session.changes()?, words_of(asked));
    let sides = session.sides(changes.list.len())?;
    let mut sources = Sources::of(&session)?;
    let may = |i: usize| sides[i].is_in() == (asked.tool.is == Name::Rollback);
    let mut selection = match &paths[..] {
        [] => (0..changes.list.len()).map(|i| (i, Taken::Whole)).collect::<Selection>(),
        words => select::named(&id, (&changes, &sides), words, &mut sources)?,
    };
    selection.retain(|i, _| may(*i));
    if asked.tool.is == Name::Redo {
        if selection.values().any(|taken| *taken != Taken::Whole) {
            return Err(Problem::new(Kind::Usage, "what was rolled back is committed again by whole paths"));
        }
        picks::refuse_open(&changes.list, &selection.clone().into_iter().collect::<Vec<_>>())?;
    }
    let notes = settle(&changes, way, may, &mut selection);
    if selection.is_empty() {
        let problem = Problem::refused(format!("session {} has nothing there that a {word} could take", id.tail()));
        return Err(problem.remedy(format!("{} shows what it has", command(format_args!("show {}", id.tail())))));
    }
    let pick = |(i, taken): (usize, Taken)| Pick {
        path: changes.list[i].path.clone(),
        taken,
        seen: seen(&changes.list[i], sides[i], &mut sources),
    };
    let picked = Picked(selection.into_iter().map(pick).collect());
    let digest = Hash::of(format!("{word} {id} {}", picked.digest()).as_bytes());
    let mut verb = parsed(&[word.into(), id.as_str().into()])?;
    let of = match &mut verb {
        Verb::Commit(args) => Some((&mut args.what, &mut args.all)),
        Verb::Rollback(args) => Some((&mut args.what, &mut args.all)),
        Verb::Redo(args) => Some((&mut args.what, &mut args.all)),
        _ => None,
    };
    if let Some((of, all)) = of {
        // All lines, so that those which a question leaves out are counted.
        (of.dry_run, of.picked, *all) = (dry_run, Some(picked), dry_run);
    }
    let name = session.header.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
    let what = act.replace("{}", &format!("{}{name}", id.tail()));
    let command = command(format_args!("{word} {}{}", id.tail(), quoted(&paths)?));
    Ok(Act { verb, digest, what, command, notes })
}

fn of_snapshot(call: &Call, asked: &Asked, dry_run: bool) -> Result<Act, Problem> {
    let key = asked.text("snapshot").unwrap_or("last");
    let paths = words_of(asked);
    let mut words: Vec<OsString> = vec!["snapshot".into(), "restore".into()];
    words.extend(asked.text("dir").map(|dir| named("--dir", dir)));
    words.extend([OsString::from("--"), key.into()]);
    words.extend(paths.iter().map(OsString::from));
    let mut verb = parsed(&words)?;
    let Verb::Snapshot { verb: crate::cli::args::SnapshotVerb::Restore(args) } = &mut verb else {
        return Err(Problem::refused("no verb"));
    };
    let (directory, n, digest) = snapshot_restore::looked_at(call, args)?;
    // 'last' may be another one by then.
    args.key = n.to_string();
    args.dir = Some(directory.as_path().to_path_buf());
    (args.dry_run, args.seen, args.all) = (dry_run, Some(digest), dry_run);
    let words = format!("snapshot restore {n} --dir {}{}", shell_word(directory.as_bytes()), quoted(&paths)?);
    let what = format!("make {directory} as it was in snapshot {n}");
    Ok(Act { verb, digest, what, command: command(format_args!("{words}")), notes: Vec::new() })
}

fn words_of(asked: &Asked) -> Vec<PathBuf> {
    asked.texts("paths").into_iter().map(PathBuf::from).collect()
}

/// The paths for a shell in any directory, each with a blank before it.
fn quoted(paths: &[PathBuf]) -> Result<String, Problem> {
    let mut text = String::new();
    for path in paths {
        let plain: PathBuf = place::whole(path)?.components().collect();
        let plain = AbsPath::parse(plain.as_os_str().as_bytes()).map_or(plain, |path| path.as_path().to_path_buf());
        text.push(' ');
        text.push_str(&shell_word(plain.as_os_str().as_bytes()));
    }
    Ok(text)
}

fn parsed(words: &[OsString]) -> Result<Verb, Problem> {
    let all: Vec<OsString> = [OsString::from("recant")].into_iter().chain(words.iter().cloned()).collect();
    let cli = help::parse(&all).map_err(|error| Problem::new(Kind::Usage, error.to_string()))?;
    cli.verb.ok_or_else(|| Problem::new(Kind::Usage, "no verb"))
}
