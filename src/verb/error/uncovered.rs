//! The commands that take back what a turn did to things that its snapshots do not cover. They leave the files alone.

use crate::agent::Part;
use crate::compare::Names;
use crate::error::shell_word;
use crate::fs::AbsPath;
use crate::remedy::{Command, shell};
use crate::tree::Head;

/// Moves a thing back.
pub fn move_back(names: &Names, from: &AbsPath, to: &AbsPath) -> Command {
    shell(format_args!("mv {} {}", names.word(from), names.word(to)))
}

/// Takes a part of a repository back; `None` if there is no such command. What is in a stash may be all that there is of it.
pub fn part_back(names: &Names, path: &AbsPath, from: Option<&Part>, to: Option<&Part>) -> Option<Command> {
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
        (_, None, Some(_)) if from.is_none() && part.is_obeyed() => return Some(shell(format_args!("rm {}", names.word(path)))),
        _ => return None,
    };
    Some(shell(format_args!("{} {deed}", git_at(names, &git))))
}

/// Moves HEAD back.
pub fn head_back(names: &Names, git: &AbsPath, from: &Head, to: &Head) -> Command {
    let git = git_at(names, git);
    let commit = from.commit.as_deref().map(|commit| &commit[..10]);
    shell(match (&from.name, commit) {
        (name, Some(commit)) if *name == to.name => format!("{git} reset -q {commit}"),
        (Some(_), None) if from.name == to.name => format!("{git} update-ref -d HEAD"),
        (Some(name), _) => format!("{git} symbolic-ref HEAD {} && {git} reset -q", shell_word(name.as_bytes())),
        (None, Some(commit)) => format!("{git} update-ref --no-deref HEAD {commit} && {git} reset -q"),
        (None, None) => format!("{git} log -g"),
    })
}

/// A call of git for a repository, by its own directory.
fn git_at(names: &Names, git: &AbsPath) -> String {
    let directory = if git.name() == b".git" { git.parent().unwrap_or_else(|| git.clone()) } else { git.clone() };
    let is_here = names.show(&directory) == ".";
    if is_here { "git".to_owned() } else { format!("git -C {}", names.word(&directory)) }
}
