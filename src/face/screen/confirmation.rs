//! The question before an act: what would be done, in numbers and names, and the digest of it.

use super::outline::Totals;
use super::selection::Selection;
use super::world::{Act, Decision, ViewedChanges};
use crate::compare::{Picked, Taken};
use crate::fs::AbsPath;
use crate::session::{Change, Sort};
use crate::tree::Danger;

/// The most paths that a question names, beside all deletions and all that is chosen in part.
const NAMED: usize = 1_000;

/// The characters of a digest that are shown.
const SHORT: usize = 12;

#[derive(Debug, Clone)]
pub struct Ask {
    pub deed: Decision,
    pub question: String,
    pub lines: Vec<String>,
    /// The first of the lines that is shown.
    pub top: usize,
    /// The reason as it is typed.
    pub typing: Option<String>,
}

impl Ask {
    /// The question before an act on what is chosen. `first`: what has to be said before.
    pub fn of(
        act: Act,
        seen: &ViewedChanges,
        chosens: &Selection,
        picked: Picked,
        first: Vec<String>,
        show: &dyn Fn(&AbsPath) -> String,
    ) -> Self {
        let (whole, blocks, files) = chosens.counts();
        let mut parts = Vec::new();
        if blocks > 0 {
            parts.push(format!("{} of {}", count(blocks, "block"), count(files, "file")));
        } else if files > 0 {
            parts.push(format!("the metadata of {}", count(files, "file")));
        }
        if whole > 0 || parts.is_empty() {
            parts.push(count(whole, "change"));
        }
        let question = format!("{} {} of {}?", act.verb(), parts.join(" and "), seen.changes.len());
        let mut lines = first;
        if !lines.is_empty() {
            lines.push(String::new());
        }
        if matches!(act, Act::RollBack | Act::Restore) {
            lines.push("takes back:".into());
        }
        lines.push(counted(chosens.indexes().map(|i| &seen.changes[i])));
        lines.push(String::new());
        lines.extend(named(&seen.changes, chosens, show));
        lines.push(String::new());
        let digest: String = picked.digest().to_string().chars().take(SHORT).collect();
        lines.push(format!("digest {digest}: if anything of it changes before you answer, it is asked again"));
        Self::plain(Decision::Picked(act, picked, None), question, lines)
    }

    pub fn plain(deed: Decision, question: String, lines: Vec<String>) -> Self {
        Self { deed, question, lines, top: 0, typing: None }
    }

    /// The reason that was given; the inner `None` if there is none, the outer one for an act that takes none.
    pub fn reason(&mut self) -> Option<&mut Option<String>> {
        match &mut self.deed {
            Decision::Picked(act, _, reason) if act.takes_reason() => Some(reason),
            _ => None,
        }
    }

    /// Begins to type a reason, at the one that was given.
    pub fn begin_reason(&mut self) {
        self.typing = self.reason().map(|reason| reason.clone().unwrap_or_default());
    }

    /// Takes what was typed as the reason.
    pub fn keep_reason(&mut self) {
        let typed = self.typing.take().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        if let Some(reason) = self.reason() {
            *reason = typed;
        }
    }
}

/// `n` of something, in words.
pub fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn counted<'c>(changes: impl Iterator<Item = &'c Change>) -> String {
    let mut totals = Totals::default();
    for change in changes {
        match change.sort() {
            Sort::Created => totals.created += 1,
            Sort::Deleted => totals.deleted += 1,
            Sort::Modified | Sort::Metadata | Sort::Times => totals.modified += 1,
        }
    }
    let kinds = [(totals.created, "created"), (totals.modified, "modified"), (totals.deleted, "deleted")];
    kinds.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect::<Vec<_>>().join(", ")
}

/// The paths: what is dangerous, every deletion and each of which a part is chosen, then the first others.
fn named(changes: &[Change], chosens: &Selection, show: &dyn Fn(&AbsPath) -> String) -> Vec<String> {
    let taken = chosens.taken();
    let is_first = |(i, taken): &&(usize, Taken)| {
        changes[*i].danger().is_some() || changes[*i].sort() == Sort::Deleted || *taken != Taken::Whole
    };
    let (mut first, others): (Vec<_>, Vec<_>) = taken.iter().partition(is_first);
    first.sort_by_cached_key(|(i, _)| Danger::place(changes[*i].danger()));
    let line = |(i, taken): &&(usize, Taken)| {
        let part = if *taken == Taken::Whole { "" } else { " (in part)" };
        let danger = changes[*i].danger().map_or_else(String::new, |danger| format!("  ({danger})"));
        format!("{:<9} {}{part}{danger}", changes[*i].sort().word(), show(&changes[*i].path))
    };
    let shown = if others.len() <= NAMED + 1 { others.len() } else { NAMED };
    let mut lines: Vec<String> = first.iter().chain(&others[..shown]).map(line).collect();
    let more = others.len() - shown;
    if more > 0 {
        lines.push(format!("… and {more} more: n, then v lists them"));
    }
    lines
}
