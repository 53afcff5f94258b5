//! The words for what a summary tells together.

use crate::compare::summary::{Directory, GitAct, Group, Kind};
use crate::compare::{Summary, columns, cut_off, shortened};
use crate::face::figures::{self, Flexible, Side};
use crate::face::out::Out;
use crate::fs::Shown;
use crate::session::Sort;

/// Things that are told together.
pub struct Together {
    pub name: String,
    /// The words for them, then those with shorter names of branches.
    words: [String; 2],
    /// Their number and size, with what stands between it and the words.
    counts: String,
}

impl Together {
    /// The words and the counts.
    pub fn whole(&self) -> String {
        format!("{}{}", self.words[0], self.counts)
    }

    /// The words and the counts in so many columns: the words are shortened, as long as the counts have room.
    pub fn within(&self, width: usize) -> String {
        let room = width.saturating_sub(columns(&self.counts));
        match self.words.iter().find(|words| columns(words) <= room) {
            Some(words) => format!("{words}{}", self.counts),
            None if room < LEAST => cut_off(&self.whole(), width),
            None => format!("{}{}", cut_off(&self.words[1], room), self.counts),
        }
    }
}

/// The least columns of words before counts, and the most of a branch's name where there is not much room.
const LEAST: usize = 12;
const BRANCH: usize = 16;
/// The most columns of what git's log says about a branch, and where there is not much room.
const WHY: [usize; 2] = [40, 24];

/// The repositories whose branches lose commits, with the words for that: it stands with what is dangerous.
pub fn histories(out: &Out, summary: &Summary) -> Vec<(String, String)> {
    let of = |group: &Group| {
        let said: Vec<String> = group.git.iter().filter(|act| act.loses()).map(|act| words_of(act, usize::MAX)).collect();
        let said = said.join(", ");
        (!said.is_empty()).then(|| (name(out, group), format!("history: {said}")))
    };
    summary.groups.iter().filter_map(of).collect()
}

/// Prints these, a line each.
pub fn print_histories(out: &Out, summary: &Summary) {
    histories(out, summary).iter().for_each(|(name, words)| out.line(format_args!("{name}  {words}")));
}

/// Names all that is told together, and says what it is: a line each.
pub fn lines(out: &Out, summary: &Summary) -> Vec<Together> {
    let directories = summary.directories.iter().map(|found| directory(format!("{}/", out.shown(&found.path)), found));
    directories.chain(groups(out, summary)).collect()
}

/// Prints all that is told together, then the number of changes, and the command `whole` that lists them.
pub fn print(out: &Out, summary: &Summary, whole: &str) {
    out.first_of(table(out, summary).into_iter(), whole);
    if summary.folded() > 0 {
        out.line(format_args!("{} summed up: {whole}", figures::count(summary.folded(), "change")));
    }
}

/// The lines, with names in a column.
pub fn table(out: &Out, summary: &Summary) -> Vec<String> {
    let lines = lines(out, summary);
    let mut rows: Vec<[String; 2]> = lines.iter().map(|line| [line.name.clone(), line.whole()]).collect();
    figures::fit(&mut rows, out.width(), &[Flexible::path(0, 20)]);
    let names = rows.iter().map(|[name, _]| columns(name)).max().unwrap_or(0);
    let room = out.width().saturating_sub(names + 2).max(20);
    rows.iter_mut().zip(&lines).for_each(|([_, what], line)| *what = line.within(room));
    figures::table([Side::Left, Side::Left], &rows).collect()
}

/// The groups alone.
pub fn groups(out: &Out, summary: &Summary) -> Vec<Together> {
    summary.groups.iter().map(|found| group(name(out, found), found)).collect()
}

fn directory(name: String, directory: &Directory) -> Together {
    let word = if directory.change == Sort::Deleted { "deleted" } else { "new" };
    let counts = format!(": {}, {}", figures::count(directory.files, "file"), figures::bytes(directory.bytes));
    Together { name, words: [(); 2].map(|()| format!("{word} directory")), counts }
}

fn name(out: &Out, group: &Group) -> String {
    let path = out.shown(&group.path);
    let Some(name) = &group.name else { return format!("{path}/") };
    let (top, name) = (path.trim_end_matches('/'), safe(name));
    if top == "." { format!("…/{name}") } else { format!("{top}/…/{name}") }
}

fn group(name: String, group: &Group) -> Together {
    if !group.git.is_empty() {
        let counts = format!(" ({}, {})", figures::count(group.count(), "path"), figures::bytes(group.bytes));
        let words = [usize::MAX, BRANCH].map(|most| acts(&group.git, most).join(", "));
        return Together { name, words, counts };
    }
    let counts = [(group.created, Sort::Created), (group.modified, Sort::Modified), (group.deleted, Sort::Deleted)];
    let counted = counts.iter().filter(|(n, _)| *n > 0).map(|(n, sort)| format!("{} {}", figures::grouped(*n), sort.word()));
    let counted = counted.chain([figures::bytes(group.bytes)]).collect::<Vec<_>>().join(", ");
    let word = match group.kind {
        Kind::Dependencies => "dependencies",
        Kind::Built => "built",
        Kind::Caches => "caches",
        Kind::Repository => "repository",
    };
    Together { name, words: [word; 2].map(str::to_owned), counts: format!(": {counted}") }
}

/// Words for the acts of git, with names of so many columns at most. A branch that is new is told with the commits on it, and not once more
/// as that of HEAD.
fn acts(all: &[GitAct], most: usize) -> Vec<String> {
    let is_new = |branch: &Option<String>| {
        all.iter().any(|act| matches!(act, GitAct::BranchCreated { branch: new } if Some(new) == branch.as_ref()))
    };
    let has_commits =
        |new: &String| all.iter().any(|act| matches!(act, GitAct::Commits { branch, .. } if branch.as_ref() == Some(new)));
    let words = |act: &GitAct| match act {
        GitAct::Head { branch } if is_new(branch) => None,
        GitAct::BranchCreated { branch } if has_commits(branch) => None,
        act if act.loses() => None,
        GitAct::Commits { branch: Some(name), count } if is_new(&Some(name.clone())) => {
            Some(format!("{} on new branch {}", figures::count(*count as u64, "commit"), named(name, most)))
        }
        act => Some(words_of(act, most)),
    };
    all.iter().filter_map(words).collect()
}

/// The name of a branch or remote, in so many columns at most.
fn named(name: &str, most: usize) -> String {
    shortened(&safe(name).to_string(), most)
}

/// A name that somebody else gave, made safe for a terminal.
fn safe(name: &str) -> Shown<'_> {
    Shown(name.as_bytes())
}

fn words_of(act: &GitAct, most: usize) -> String {
    let count = |n: &usize, what: &str| figures::count(*n as u64, what);
    match act {
        GitAct::Created => "new repository".into(),
        GitAct::Deleted => "repository deleted".into(),
        GitAct::Head { branch: Some(branch) } => format!("on {} now", named(branch, most)),
        GitAct::Head { branch: None } => "HEAD detached".into(),
        GitAct::Commits { branch: Some(branch), count: n } => format!("{} on {}", count(n, "commit"), named(branch, most)),
        GitAct::Commits { branch: None, count: n } => format!("{} on no branch", count(n, "commit")),
        GitAct::BranchCreated { branch } => format!("new branch {}", named(branch, most)),
        GitAct::BranchMoved { branch, why } => {
            let room = if most > BRANCH { WHY[0] } else { WHY[1] };
            let why = why.as_ref().map_or_else(String::new, |why| format!(" ({})", named(why, room)));
            format!("{} moved{why}", named(branch, most))
        }
        GitAct::CommitsLost { branch } => format!("{} loses commits", named(branch, most)),
        GitAct::HistoryReplaced { branch } => format!("{} is replaced", named(branch, most)),
        GitAct::BranchDeleted { branch } => format!("branch {} deleted", named(branch, most)),
        GitAct::Tags { count: n } => count(n, "tag"),
        GitAct::Fetched { remote } => format!("branches of {}", named(remote, most)),
        GitAct::Stash => "stash".into(),
        GitAct::Begun { what } => format!("{what} begun"),
        GitAct::Index => "index".into(),
    }
}

#[cfg(test)]
mod tests {
    use crate::face::text::summary::*;

    #[test]
    fn counts_stay_where_there_is_no_room_for_all_words() {
        let branch = "feature/a-long-name-of-a-branch";
        let all = [
            GitAct::BranchCreated { branch: branch.into() },
            GitAct::Commits { branch: Some(branch.into()), count: 2 },
            GitAct::Index,
        ];
        let words = [usize::MAX, BRANCH].map(|most| acts(&all, most).join(", "));
        let git = Together { name: ".git/".into(), words, counts: " (34 paths, 12 KiB)".into() };
        for (width, want) in [
            (81, "2 commits on new branch feature/a-long-name-of-a-branch, index (34 paths, 12 KiB)"),
            (80, "2 commits on new branch featu…f-a-branch, index (34 paths, 12 KiB)"),
            (46, "2 commits on new branch fe… (34 paths, 12 KiB)"),
            (31, "2 commits o… (34 paths, 12 KiB)"),
            (20, "2 commits on new br…"),
        ] {
            assert_eq!(git.within(width), want, "{width}");
            assert!(columns(&git.within(width)) <= width);
        }
    }
}
