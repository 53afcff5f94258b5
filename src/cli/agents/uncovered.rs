//! Names what a turn did to things that its snapshots do not cover, each with the command that helps, if there is one.

use serde::Serialize;

use crate::agent::look::Out;
use crate::agent::repository::Part;
use crate::agent::turn::Turn;
use crate::agent::uncovered::{Became, Fate, fates};
use crate::error::{Error, shell_word};
use crate::face::call::Call;
use crate::face::figures;
use crate::fs::path::{AbsPath, Shown};
use crate::snapshot::rules::Why;
use crate::snapshot::whole;
use crate::tree::git_head::Head;

/// A thing that is not covered, in JSON: docs/json.md.
#[derive(Serialize)]
pub struct Row {
    pub path: AbsPath,
    /// deleted, overwritten, moved, made, entries, names, head, metadata or changed.
    pub what: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<AbsPath>,
    directory: bool,
    /// Bytes of content of a file.
    size: u64,
    /// The names that came to a directory.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    made: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gone: Vec<String>,
    /// The reason why it is not covered.
    why: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
    #[serde(skip)]
    text: String,
    #[serde(skip)]
    is_byproduct: bool,
}

/// The rows of what is not covered, with paths as `call` shows them. `goes_back` are those that are put back.
///
/// # Errors
/// A path cannot be made.
pub fn rows(call: &Call, directory: &AbsPath, fates: &[Fate], goes_back: &[AbsPath]) -> Result<Vec<Row>, Error> {
    fates.iter().map(|fate| row(call, directory, fate, goes_back)).collect()
}

fn row(call: &Call, directory: &AbsPath, fate: &Fate, goes_back: &[AbsPath]) -> Result<Row, Error> {
    let Fate { path, became, out } = fate;
    let at = whole(directory, path)?;
    let to = if let Became::Moved(to) = became { Some(whole(directory, to)?) } else { None };
    let remedy = match (became, &to) {
        // Where something is, or goes back to either place, a move would take that along, or stop at it.
        (_, Some(to)) => {
            let is_free = at.as_path().symlink_metadata().is_err();
            let is_own = |path: &AbsPath| !path.is_under(to) && !path.is_under(&at);
            (is_free && goes_back.iter().all(is_own)).then(|| format!("mv {} {}", call.out.word(to), call.out.word(&at)))
        }
        (Became::Head { from, to: Some(now) }, _) => Some(back(call, &at, from, now)),
        (Became::Part { from, to }, None) => part_back(call, &at, from.as_ref(), to.as_ref()),
        _ => None,
    };
    let (made, gone) = match became {
        Became::Entries { made, gone } => (made.clone(), gone.clone()),
        _ => (Vec::new(), Vec::new()),
    };
    let back = remedy.as_ref().map_or_else(String::new, |remedy| format!("; back: {remedy}"));
    Ok(Row {
        what: word_of(became),
        text: format!("{}: {}{back}", call.out.shown(&at), said(call, became, out, to.as_ref())),
        directory: out.directory,
        size: out.size,
        why: out.why.text(),
        is_byproduct: out.why == Why::Byproduct,
        path: at,
        to,
        made,
        gone,
        remedy,
    })
}

/// Says in a word, for programs, what became of a thing.
fn word_of(became: &Became) -> &'static str {
    match became {
        Became::Deleted => "deleted",
        Became::Overwritten => "overwritten",
        Became::Moved(_) => "moved",
        Became::Made => "made",
        Became::Entries { .. } => "entries",
        Became::Names => "names",
        Became::Head { .. } => "head",
        Became::Metadata => "metadata",
        Became::Part { from: None, .. } => "made",
        Became::Part { to: None, .. } => "deleted",
        Became::Part { .. } => "changed",
    }
}

/// Says what became of a thing; `to` is its new path.
fn said(call: &Call, became: &Became, out: &Out, to: Option<&AbsPath>) -> String {
    let why = out.why.text();
    let size = match (out.directory, &out.names) {
        (true, Some(names)) if names.len() == 1 => "1 entry".to_owned(),
        (true, Some(names)) => format!("{} entries", figures::grouped(names.len() as u64)),
        (true, None) => "a directory".to_owned(),
        (false, _) => figures::bytes(out.size),
    };
    match became {
        Became::Deleted => format!("deleted ({size}), and not kept: {why}"),
        Became::Overwritten => format!("overwritten ({size}), and not kept: {why}"),
        Became::Moved(_) => format!("moved to {}", to.map_or_else(String::new, |to| call.out.shown(to))),
        Became::Made => format!("made ({size}), and stays: {why}"),
        Became::Entries { made, gone } => {
            let of = |word: &str, names: &[String]| (!names.is_empty()).then(|| format!("{} {word}", named(names)));
            let parts: Vec<String> = of("made", made).into_iter().chain(of("gone", gone)).collect();
            format!("{} in it, and stays so: {why}", parts.join("; "))
        }
        Became::Names => format!("names came to it or went, and it stays so: {why}"),
        Became::Head { from, to: Some(to) } => format!("HEAD went from {} to {}", place(from, to), place(to, from)),
        Became::Head { from, to: None } => {
            let is = from.name.as_ref().map_or_else(|| place(from, from), |name| format!("ref: {name}"));
            format!("HEAD is gone, and not kept; it was \"{is}\"")
        }
        Became::Metadata => format!("its mode or owner was changed, and stays so: {why}"),
        Became::Part { from, to } => said_of_part(from.as_ref(), to.as_ref()),
    }
}

/// Says what became of a part of a repository.
fn said_of_part(from: Option<&Part>, to: Option<&Part>) -> String {
    let at = |part: &Part| part.commit.as_ref().map_or_else(String::new, |commit| format!(" (at {})", &commit[..10]));
    match (from, to) {
        (None, Some(part)) if part.is_hook() => "made, and git runs it".to_owned(),
        (None, Some(part)) if part.is_obeyed() => "made, and git obeys it".to_owned(),
        (None, Some(part)) => format!("made{}, and stays", at(part)),
        (Some(part), None) => format!("deleted{}, and not kept", at(part)),
        (Some(Part { commit: Some(from), .. }), Some(Part { commit: Some(to), .. })) => {
            format!("went from {} to {}", &from[..10], &to[..10])
        }
        (Some(part), _) if part.name == "index" => "what is staged was changed, and stays so".to_owned(),
        _ => "changed, and stays so: it is version control's own".to_owned(),
    }
}

/// The command that takes such a deed back, and leaves the files alone. What is in a stash may be all that there is of it.
fn part_back(call: &Call, path: &AbsPath, from: Option<&Part>, to: Option<&Part>) -> Option<String> {
    let part = from.or(to)?;
    let git = AbsPath::parse(path.as_bytes().strip_suffix(part.name.as_bytes())?.strip_suffix(b"/")?).ok()?;
    let name = shell_word(part.name.as_bytes());
    let deed = match (&*part.name, from.and_then(|from| from.commit.as_deref()), to) {
        ("refs/stash", _, Some(_)) => return None,
        (_, Some(commit), _) => format!("update-ref {name} {}", &commit[..10]),
        ("index", ..) => "reset -q".to_owned(),
        ("MERGE_HEAD", _, Some(_)) => "merge --quit".to_owned(),
        ("CHERRY_PICK_HEAD", _, Some(_)) => "cherry-pick --quit".to_owned(),
        ("REVERT_HEAD", _, Some(_)) => "revert --quit".to_owned(),
        ("rebase-merge" | "rebase-apply", _, Some(_)) => "rebase --quit".to_owned(),
        (_, None, Some(Part { commit: Some(_), .. })) => format!("update-ref -d {name}"),
        (_, None, Some(_)) if from.is_none() && part.is_obeyed() => return Some(format!("rm {}", call.out.word(path))),
        _ => return None,
    };
    Some(format!("{} {deed}", git_at(call, &git)))
}

/// The most names that are listed of a directory.
const NAMES: usize = 3;

fn named(names: &[String]) -> String {
    let (first, more) = names.split_at(names.len().min(NAMES));
    let shown: Vec<String> = first.iter().map(|name| Shown(name.as_bytes()).to_string()).collect();
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", figures::grouped(more.len() as u64)) };
    format!("{}{more}", shown.join(", "))
}

/// A HEAD in words; its branch only if the `other` is on another one.
fn place(head: &Head, other: &Head) -> String {
    let commit = head.commit.as_deref().map_or("no commit", |commit| &commit[..10]);
    match head.branch().filter(|_| head.name != other.name) {
        Some(branch) => format!("{branch} ({commit})"),
        None => commit.to_owned(),
    }
}

/// A call of git for a repository, by its own directory.
fn git_at(call: &Call, git: &AbsPath) -> String {
    let directory = if git.name() == b".git" { git.parent().unwrap_or_else(|| git.clone()) } else { git.clone() };
    let here = crate::face::place::cwd().ok().is_some_and(|cwd| cwd == directory.as_path());
    if here { "git".to_owned() } else { format!("git -C {}", call.out.word(&directory)) }
}

/// The command that moves HEAD back, and leaves the files alone.
fn back(call: &Call, git: &AbsPath, from: &Head, to: &Head) -> String {
    let git = git_at(call, git);
    let commit = from.commit.as_deref().map(|commit| &commit[..10]);
    match (&from.name, commit) {
        (name, Some(commit)) if *name == to.name => format!("{git} reset -q {commit}"),
        (Some(_), None) if from.name == to.name => format!("{git} update-ref -d HEAD"),
        (Some(name), _) => format!("{git} symbolic-ref HEAD {} && {git} reset -q", shell_word(name.as_bytes())),
        (None, Some(commit)) => format!("{git} update-ref --no-deref HEAD {commit} && {git} reset -q"),
        (None, None) => format!("{git} log -g"),
    }
}

/// The most things that are named.
const MOST: usize = 20;

/// The lines that name them, one a thing; what compilers and editors make is counted.
pub fn lines(rows: &[Row], all: bool) -> Vec<String> {
    let (byproducts, things): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.is_byproduct);
    let shown = if all { things.len() } else { things.len().min(MOST) };
    let mut lines: Vec<String> = things[..shown].iter().map(|row| row.text.clone()).collect();
    if let Some(more) = things.len().checked_sub(shown).filter(|more| *more > 0) {
        lines.push(format!("{} more things that are not covered: -v names them", figures::grouped(more as u64)));
    }
    if !byproducts.is_empty() {
        let count = figures::count(byproducts.len() as u64, "file");
        lines.push(format!("{count} that compilers or editors make changed, and stay so (agent.byproducts)"));
    }
    lines
}

/// Says what a turn took away that is not covered, for a person who may know where else it is; `None` if it took nothing away.
pub fn lost(call: &Call, directory: &AbsPath, turn: &Turn) -> Result<Option<String>, Error> {
    let mut lost = fates(&[turn], None);
    lost.retain(|fate| fate.became.is_loss() && fate.out.why != Why::Byproduct);
    let lines = lines(&rows(call, directory, &lost, &[])?, false);
    Ok((!lines.is_empty()).then(|| format!("turn {}: {}", turn.head.n, lines.join("\n"))))
}
