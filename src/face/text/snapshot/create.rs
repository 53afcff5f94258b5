//! `snapshot create`, in words.

use super::fact;
use crate::engine::LeftPath;
use crate::error::{Error, Kind, command};
use crate::face::args::SnapshotCreate;
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::figures;
use crate::face::text::list::shown;
use crate::fs::AbsPath;
use crate::snapshot::{Counts, How, Rules, SnapshotRequest, Source, Vcs};
use crate::verb::Created;
use crate::verb::snapshot::{create as verb, directory};

pub fn create(call: &Call, args: &SnapshotCreate) -> Result<Ended, Error> {
    let rules = Rules {
        exclude: args.exclude.clone(),
        presets: args.preset.clone(),
        gitignore: args.gitignore,
        vcs: if args.with_vcs { Vcs::Kept } else { Vcs::Left },
        ..Rules::default()
    };
    let asked = SnapshotRequest {
        message: args.message.clone(),
        label: args.label.clone(),
        meta: args.meta.clone(),
        once: args.once.clone(),
        if_changed: args.if_changed,
        rules: Source::Found(rules),
        limit: (!args.all).then_some(call.config.snapshot_max_files.value),
        ..SnapshotRequest::default()
    };
    let created = verb::create(call, args.of.named(), asked, args.keep)?;
    say_former(call, args, &created);
    call.out.warn_each(created.unread.iter().map(|LeftPath { path, why }| format!("{path}: not in the snapshot: {why}")));
    for LeftPath { path, why } in &created.left {
        call.out.note(format_args!("{path}: not in the snapshot: {why}"));
    }
    fact::earlier(&call.out, created.n, &created.damaged, created.unindexed.as_deref());
    for glob in &created.unfitted {
        let directory = &created.directory;
        call.out.note(format_args!("--exclude {}: matches nothing in {directory}", shown(glob)));
    }
    if call.out.is_text() {
        say(call, args, &created);
    } else {
        call.out.document(&created);
    }
    Ok(if created.unread.is_empty() { Ended::Done } else { Ended::With(Kind::LeftOut) })
}

/// Says that a label which an older snapshot has, too, now means the newest.
fn say_former(call: &Call, args: &SnapshotCreate, Created { directory, n, former, .. }: &Created) {
    let Some(label) = &args.label else { return };
    match former {
        Ok(None) => {}
        Ok(Some(former)) => {
            call.out.note(format_args!("{label} now means snapshot {n}, and no longer snapshot {former}"));
        }
        Err(error) => {
            let unknown = format!("cannot check whether an older snapshot has the label {label}: {error}");
            call.out.warn(format_args!("{directory}: {unknown}"));
        }
    }
}

fn say(call: &Call, args: &SnapshotCreate, created: &Created) {
    let Created { directory, n, how, counts, pruned, .. } = created;
    let out = &call.out;
    out.line(n);
    match how {
        How::New => {
            let Counts { files, added, modified, deleted, stored, .. } = *counts;
            let (files, stored) = (figures::count(files, "file"), figures::bytes(stored));
            let [added, modified, deleted] = [added, modified, deleted].map(figures::grouped);
            let without = without(directory, &created.repositories);
            out.note(format_args!("{directory}: {files}, +{added} ~{modified} -{deleted}; {stored} stored{without}"));
        }
        How::Unchanged => out.note(format_args!("{directory}: nothing has changed since snapshot {n}{}", unkept(args, *how))),
        How::Once => out.note(format_args!("{directory}: snapshot {n} has that key{}", unkept(args, *how))),
    }
    if counts.excluded > 0 && *how == How::New {
        let (paths, dir) = (figures::count(counts.excluded, "path"), directory::dir(directory));
        out.note(format_args!("{paths} left out by rules: {} lists them", command(format_args!("snapshot show {n}{dir}"))));
    }
    if !pruned.is_empty() {
        out.note(format_args!("{} pruned", figures::count(pruned.len() as u64, "old snapshot")));
    }
}

/// Names the given options that are lost because no snapshot was made.
fn unkept(args: &SnapshotCreate, how: How) -> String {
    let given = [
        ("label", args.label.is_some() && how == How::Once),
        ("message", args.message.is_some()),
        ("meta", !args.meta.is_empty()),
    ];
    let given: Vec<&str> = given.into_iter().filter(|(_, is_given)| *is_given).map(|(what, _)| what).collect();
    match given[..] {
        [] => String::new(),
        [one] => format!("; the {one} is not kept"),
        _ => format!("; the {} are not kept", figures::list(&given)),
    }
}

/// Names the repositories that were left out, for the end of a sentence.
fn without(directory: &AbsPath, repositories: &[AbsPath]) -> String {
    let Some(first) = repositories.first() else { return String::new() };
    let first = first.as_path().strip_prefix(directory.as_path()).unwrap_or(first.as_path());
    let more = match repositories.len() as u64 - 1 {
        0 => String::new(),
        more => format!(" and {} more", figures::grouped(more)),
    };
    format!("; without {}{more}", shown(&first.to_string_lossy()))
}
