//! Words for what the verbs of snapshots say while they work.

use crate::face::figures;
use crate::face::out::Out;
use crate::settings::From;
use crate::snapshot::{Moved, heal};
use crate::verb::SnapshotFact;
use crate::verb::error::content_stays;

/// Says it.
pub fn tell(out: &Out, fact: &SnapshotFact<'_>) {
    match fact {
        SnapshotFact::OwnSnapshots { directory, key } => {
            out.note(format_args!("{} has its own snapshots: {key} is one of them", out.shown(directory)));
        }
        SnapshotFact::RepositoriesStay { first, more, n } => {
            let more = if *more == 0 { String::new() } else { format!(" and {} more", figures::grouped(*more as u64)) };
            let first = out.shown(first);
            out.note(format_args!("{first}{more}: snapshot {n} has it, too; left as it is without --with-vcs"));
        }
        SnapshotFact::HeadMoves(moved) => out.warn(head(out, moved)),
        SnapshotFact::OtherNameStays { first, more } => {
            let more = match *more as u64 {
                0 => String::new(),
                more => format!(" (so has what was at {})", figures::count(more, "more path")),
            };
            out.note(format_args!(
                "{first}: what was there has another name that stays{more}: what is written to that one changes the backup, and a \
                 rollback stops at it"
            ));
        }
        SnapshotFact::ContentStays(why) => out.warn(content_stays(why)),
        SnapshotFact::OldSnapshotsStay { directory, why } => {
            out.warn(format_args!("{directory}: old snapshots were not pruned: {}", why.message()));
        }
        SnapshotFact::SnapshotLimits { keep: (keep, of), max_size: (max_size, from) } => {
            let (keep, max_size) = (limit(figures::grouped(*keep as u64), *of), limit(figures::bytes(*max_size), *from));
            out.note(format_args!("by the settings: snapshot.keep is {keep}, snapshot.max_size {max_size}"));
        }
        SnapshotFact::EarlierSnapshots(made) => earlier(out, made.n, &made.damaged, made.unindexed.as_deref()),
    }
}

/// Warns of damage in earlier snapshots. The new one, `n`, is whole.
pub fn earlier(out: &Out, n: u64, damaged: &[String], unindexed: Option<&str>) {
    damaged.iter().for_each(|what| out.warn(format_args!("{what}; snapshot {n} needs nothing of it")));
    if !damaged.is_empty() {
        out.note(heal());
    }
    if let Some(why) = unindexed {
        out.warn(format_args!("snapshot {n} has no index, so the next one takes longer: {why}"));
    }
}

/// A setting's value, with its source unless that is the file.
fn limit(value: String, from: From) -> String {
    if from == From::File { value } else { format!("{value} ({from})") }
}

fn head(out: &Out, Moved { directory, from, to, commits, uncounted }: &Moved) -> String {
    let short = |commit: &str| commit.chars().take(10).collect::<String>();
    let to = to.as_ref().map_or_else(|| "no commit".to_owned(), |to| short(to));
    let by = match (commits, uncounted) {
        (Some(0), _) => "; all commits of now stay reachable".to_owned(),
        (Some(1), _) => ": back by 1 commit".to_owned(),
        (Some(n), _) => format!(": back by {n} commits"),
        (None, why) => format!("; the number of commits is unknown: {}", why.as_deref().unwrap_or("git does not say")),
    };
    format!("{}: HEAD goes from {} to {to}{by}", out.place(directory), short(from))
}
