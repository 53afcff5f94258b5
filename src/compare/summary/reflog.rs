//! The log of a branch, by git-reflog(1): what moved it, and whether commits left it. Pure: the caller reads.

use std::collections::{HashMap, HashSet};

/// A line of a log: from which commit to which, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Line<'a> {
    old: &'a str,
    new: &'a str,
    message: &'a str,
}

/// The log of a branch before and after.
pub struct Reflog<'a> {
    before: Vec<Line<'a>>,
    added: Vec<Line<'a>>,
    is_anew: bool,
}

/// The fate of the commits that a branch had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// All are still on it.
    Kept,
    /// Some left it.
    Lost,
    /// The branch has another log: it is another branch of that name.
    Replaced,
    /// The log does not tell.
    Unknown,
}

impl<'a> Reflog<'a> {
    /// Compares the texts of a log. git removes old lines from its beginning.
    pub fn of(before: &'a str, after: &'a str) -> Self {
        let before: Vec<Line<'_>> = before.lines().filter_map(Line::of).collect();
        let known: HashSet<_> = before.iter().copied().collect();
        let after: Vec<Line<'_>> = after.lines().filter_map(Line::of).collect();
        let is_anew = !before.is_empty() && !after.iter().any(|line| known.contains(line));
        let added = after.into_iter().filter(|line| !known.contains(line)).collect();
        Self { before, added, is_anew }
    }

    /// The number of commits that were added, amended ones aside.
    pub fn commits(&self) -> usize {
        self.added.iter().filter(|line| line.is_commit()).count()
    }

    /// The commit that the branch led to before, by the first line that was added; `None` if it is new.
    pub fn led_to(&self) -> Option<&'a str> {
        self.added.first().map(|line| line.old).filter(|old| old.contains(|digit| digit != '0'))
    }

    /// The message of the last line that was added.
    pub fn why(&self) -> Option<&'a str> {
        self.added.last().map(|line| line.message)
    }

    /// Finds out what became of the commits of a branch that led to `from` and leads to `to`, each in hexadecimal.
    pub fn fate(&self, from: &str, to: &str) -> Fate {
        if self.is_anew {
            return Fate::Replaced;
        }
        let parents = self.parents();
        let leads_to = |start: &str, end: &str| {
            let mut seen = HashSet::new();
            std::iter::successors(Some(start), |at| parents.get(at).copied().filter(|at| seen.insert(*at))).any(|at| at == end)
        };
        match () {
            () if leads_to(to, from) => Fate::Kept,
            () if leads_to(from, to) || self.added.iter().any(Line::goes_back) => Fate::Lost,
            () => Fate::Unknown,
        }
    }

    /// A commit that each commit stands on, as far as the log tells.
    fn parents(&self) -> HashMap<&'a str, &'a str> {
        let mut parents = HashMap::new();
        for line in self.before.iter().chain(&self.added) {
            let parent =
                if line.is_amended() { parents.get(line.old).copied() } else { Some(line.old).filter(|_| line.goes_on()) };
            if let Some(parent) = parent {
                parents.entry(line.new).or_insert(parent);
            }
        }
        parents
    }
}

impl<'a> Line<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let (commits, message) = line.split_once('\t')?;
        let mut words = commits.split(' ');
        Some(Self { old: words.next()?, new: words.next()?, message })
    }

    /// The word before the colon: what was done.
    fn act(&self) -> &'a str {
        self.message.split_once(':').map_or("", |(act, _)| act)
    }

    fn is_commit(&self) -> bool {
        let acts = ["commit", "commit (initial)", "commit (merge)", "commit (cherry-pick)", "cherry-pick", "revert"];
        acts.contains(&self.act())
    }

    fn is_amended(&self) -> bool {
        self.act() == "commit (amend)"
    }

    /// True if the new commit stands on the old one.
    fn goes_on(&self) -> bool {
        let merges = ["merge ", "pull"].iter().any(|act| self.act().starts_with(act)) && !self.act().contains("rebase");
        self.is_commit() || merges || self.act() == "am"
    }

    /// True if the old commit, or one below it, is surely not below the new one.
    fn goes_back(&self) -> bool {
        let reset = self.message.strip_prefix("reset: moving to ");
        let is_back = reset.is_some_and(|to| ["HEAD~", "HEAD^", "@~", "@^"].iter().any(|back| to.starts_with(back)));
        // A branch that had no commits apart from the other one leads to that one now.
        let is_rebased = self.act().contains("rebase") && !self.message.ends_with(&format!("onto {}", self.new));
        is_back || is_rebased || self.is_amended() || self.act() == "filter-branch"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log of lines `old new message`.
    fn log(lines: &[(&str, &str, &str)]) -> String {
        lines.iter().map(|(old, new, message)| format!("{old} {new} A <a@b> 1 +0000\t{message}\n")).collect()
    }

    #[test]
    fn a_branch_loses_what_its_new_tip_does_not_stand_on() {
        let made = [("0", "a", "commit (initial): a"), ("a", "b", "commit: b"), ("b", "c", "commit: c")];
        for (added, to, fate, commits) in [
            (&[("c", "d", "commit: d")][..], "d", Fate::Kept, 1),
            (&[("c", "d", "merge topic: Fast-forward")], "d", Fate::Kept, 0),
            (&[("c", "a", "reset: moving to HEAD~2")], "a", Fate::Lost, 0),
            // By the log alone: a name that tells nothing.
            (&[("c", "b", "reset: moving to v1")], "b", Fate::Lost, 0),
            (&[("c", "x", "reset: moving to v1")], "x", Fate::Unknown, 0),
            (&[("c", "x", "reset: moving to HEAD^")], "x", Fate::Lost, 0),
            (&[("c", "a", "reset: moving to HEAD~2"), ("a", "d", "commit: d")], "d", Fate::Lost, 1),
            (
                &[("c", "a", "reset: moving to HEAD~2"), ("a", "c", "reset: moving to ORIG_HEAD"), ("c", "d", "commit: d")],
                "d",
                Fate::Kept,
                1,
            ),
            (&[("c", "d", "commit (amend): c")], "d", Fate::Lost, 0),
            (&[("c", "d", "commit: d"), ("d", "e", "commit (amend): d")], "e", Fate::Kept, 1),
            (&[("c", "x", "rebase (finish): refs/heads/main onto y")], "x", Fate::Lost, 0),
            (&[("c", "x", "pull --rebase (finish): refs/heads/main onto x")], "x", Fate::Unknown, 0),
        ] {
            let (before, after) = (log(&made), log(&[&made[..], added].concat()));
            let log = Reflog::of(&before, &after);
            assert_eq!((log.fate("c", to), log.commits()), (fate, commits), "{added:?}");
        }
        let (before, fresh) = (log(&made), log(&[("0", "x", "commit (initial): x")]));
        assert_eq!(Reflog::of(&before, &fresh).fate("c", "x"), Fate::Replaced);
        assert_eq!(Reflog::of(&before, "").fate("c", "x"), Fate::Replaced);
        // git removed old lines.
        let shorter = log(&[made[2], ("c", "d", "commit: d")]);
        assert_eq!(Reflog::of(&before, &shorter).fate("c", "d"), Fate::Kept);
        assert_eq!(Reflog::of("", "").fate("c", "d"), Fate::Unknown);
    }
}
