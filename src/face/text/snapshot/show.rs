//! `snapshot show`, in words.

use crate::engine::LeftPath;
use crate::error::Error;
use crate::face::args::SnapshotShow;
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::figures;
use crate::face::out::Out;
use crate::face::text::list::shown;
use crate::snapshot::{Counts, Vcs};
use crate::verb::snapshot::show::{self as verb, Shown};
use crate::verb::{Named, Rules};

pub fn show(call: &Call, args: &SnapshotShow) -> Result<Ended, Error> {
    let of = Named { dir: args.dir.as_deref(), key: &args.key, paths: &[] };
    let shown = verb::show(call, of, call.out.is_verbose())?;
    if call.out.is_text() {
        call.out.page(call.config.pager.value.as_deref());
        print(&call.out, &shown);
    } else {
        call.out.document(&shown);
    }
    Ok(Ended::Done)
}

fn print(out: &Out, Shown { directory, snapshot: head, rules, unread, paths }: &Shown) {
    let row = |name: &str, value: &str| out.line(format_args!("{name:<10} {value}"));
    row("snapshot", &format!("{} of {directory}", head.n));
    row("taken", &figures::time(head.time, true));
    for (name, value) in [("message", &head.message), ("label", &head.label), ("key", &head.key)] {
        if let Some(value) = value {
            row(name, &shown(value));
        }
    }
    head.meta.iter().for_each(|(key, value)| row("meta", &shown(&format!("{key}={value}"))));
    let Counts { entries, files, bytes, stored, added, modified, deleted, excluded, .. } = head.counts;
    let (count, directories) = (figures::count(files, "file"), figures::count(entries - files, "directory"));
    row("holds", &format!("{count} and {directories}, {}", figures::bytes(bytes)));
    row("stored", &format!("{} for this one", figures::bytes(stored)));
    let [added, modified, deleted] = [added, modified, deleted].map(figures::grouped);
    row("changed", &format!("+{added} ~{modified} -{deleted} since the one before"));
    print_rules(row, rules, excluded);
    unread.iter().for_each(|LeftPath { path, why }| row("not in it", &format!("{path}: {why}")));
    paths.iter().flatten().for_each(|path| out.line(path));
}

/// Prints the rules, which left out so many paths.
fn print_rules(row: impl Fn(&str, &str), rules: &Rules, excluded: u64) {
    if excluded > 0 || !rules.is_empty {
        row("left out", &format!("{} by rules", figures::count(excluded, "path")));
        rules.presets.iter().for_each(|preset| row("  preset", preset));
        rules.exclude.iter().for_each(|glob| row("  exclude", &shown(glob)));
        rules.files.iter().for_each(|file| row("  file", &file.to_string()));
    }
    match rules.vcs {
        Vcs::Left => rules.repositories.iter().for_each(|path| row("without", &path.to_string())),
        Vcs::Kept => row("with", ".git, .hg, .svn and .jj, where there are any"),
    }
}
