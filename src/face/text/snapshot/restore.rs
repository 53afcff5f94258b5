//! `snapshot restore`, in words.

use crate::error::{Error, Kind, command};
use crate::face::args::SnapshotRestore;
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::figures;
use crate::face::find_store::all_whole;
use crate::face::out::Out;
use crate::face::text::acts;
use crate::verb::snapshot::restore as verb;
use crate::verb::{Named, Restore, Restored};

pub fn restore(call: &Call, args: &SnapshotRestore) -> Result<Ended, Error> {
    let &SnapshotRestore { force, dry_run, keep_new, safe, with_vcs, .. } = args;
    let paths = all_whole(&args.paths)?;
    let of = Named { dir: args.dir.as_deref(), key: &args.key, paths: &paths };
    let restored = verb::restore(call, &Restore { of, force, dry_run, keep_new, safe, with_vcs })?;
    say(&call.out, &restored);
    Ok(if restored.skipped.is_empty() { Ended::Done } else { Ended::With(Kind::LeftOut) })
}

/// Reports a restore.
pub fn say(out: &Out, restored: &Restored) {
    if !out.is_text() {
        return out.document(restored);
    }
    let Restored { directory, n, dry_run, session, paths, skipped, .. } = restored;
    let whole = match session {
        Some(id) => command(format_args!("show {} -v", id.tail())),
        None => command(format_args!("snapshot restore {n} --dir {directory} --dry-run -v")),
    };
    out.listing(paths.iter().map(|row| format!("{:<9} {}", row.done.word(), out.shown(&row.path))), &whole);
    acts::say_skipped(out, skipped, &whole);
    let (count, directory) = (figures::count(paths.len() as u64, "path"), out.place(directory));
    let left = match skipped.len() as u64 {
        0 => String::new(),
        left => format!(", {} skipped", figures::grouped(left)),
    };
    if paths.is_empty() {
        return out.note(format_args!("{directory} is already as in snapshot {n}{left}"));
    }
    let would = if *dry_run { "would be " } else { "" };
    out.note(format_args!("{directory}: {count} {would}restored to snapshot {n}{left}"));
    if let Some(id) = session {
        out.note(format_args!("to take it back: {}", command(format_args!("rollback {}", id.tail()))));
    }
}
