//! `prune`: drops what the settings let go of sessions, checkpoints and snapshots, and shows it before.

use serde::Serialize;

use super::prune::{self, CHECKPOINTS, DISCARDED, Pruning, SESSIONS, Wanted};
use super::{snapshot, snapshot_prune};
use crate::error::{Error, Kind, command};
use crate::face::call::Call;
use crate::face::ended::Ended;
use crate::face::text::heads::heads;
use crate::face::{args, figures};
use crate::fs::interrupt::{self, Asked};
use crate::fs::path::AbsPath;
use crate::session::header::Header;
use crate::session::id::Id;
use crate::session::prune::Which as Limits;
use crate::session::store::Store;
use crate::snapshot::prune::{self as snapshots, Conditions, Maker, Which};
use crate::snapshot::series::Series;

#[derive(Serialize)]
struct Whole<'a> {
    dry_run: bool,
    sessions: &'a Part,
    checkpoints: &'a Part,
    snapshots: &'a [OfDir],
    skipped: &'a [Skipped],
    bytes: u64,
}

/// Sessions, or checkpoints of sessions.
#[derive(Default, Serialize)]
struct Part {
    pruned: Vec<Id>,
    bytes: u64,
}

#[derive(Serialize)]
struct OfDir {
    directory: AbsPath,
    pruned: Vec<u64>,
    bytes: u64,
    #[serde(skip)]
    series: Series,
}

/// Something that was to go, but stays.
#[derive(Serialize)]
struct Skipped {
    what: String,
    why: String,
}

/// All that goes by the settings, and the bytes that it takes on disk.
struct Plan {
    sessions: Vec<Header>,
    session_bytes: u64,
    checkpoints: Vec<Header>,
    checkpoint_bytes: u64,
    snapshots: Vec<OfDir>,
    skipped: Vec<Skipped>,
}

/// Prunes what the call says, or the settings.
///
/// # Errors
/// Those of each kind.
pub fn prune(call: &Call, args: &args::Prune) -> Result<Ended, Error> {
    let which = Limits { older_than: args.older_than, keep: args.keep, max_size: args.max_size };
    let ids = || args.of.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let of_sessions = || -> Result<Wanted, Error> {
        let asked = Wanted { ids: ids(), which, committed: args.committed, dry_run: args.dry_run };
        if !asked.ids.is_empty() && (!which.is_unbounded() || args.committed) {
            return Err(Error::usage("either sessions are named, or conditions choose them"));
        }
        Ok(asked)
    };
    match args {
        args::Prune { sessions: true, .. } => prune::prune(call, &of_sessions()?, &SESSIONS),
        args::Prune { checkpoints: true, .. } => prune::prune(call, &of_sessions()?, &CHECKPOINTS),
        args::Prune { discarded: true, .. } => prune::prune(call, &of_sessions()?, &DISCARDED),
        args::Prune { snapshots: true, .. } => snapshot_prune::prune(call, args),
        _ => by_settings(call, args.dry_run),
    }
}

/// Prunes by the settings: retention.keep and retention.older_than, snapshot.keep and snapshot.max_size.
fn by_settings(call: &Call, dry_run: bool) -> Result<Ended, Error> {
    let Some(store) = call.store()? else { return nothing(call, dry_run) };
    if !dry_run {
        call.prepare_to_change(store)?;
    }
    let (older_than, keep) = (call.config.older_than.value, call.config.keep.value);
    let by_settings = Wanted { which: Limits { older_than, keep, max_size: None }, ..Wanted::default() };
    let plan = Plan::of(call, store, &by_settings)?;
    if by_settings.which.is_unbounded() && call.out.is_text() {
        let other = command("prune --sessions --older-than 30d");
        call.out.note(format_args!("no session goes: neither retention.keep nor retention.older_than is set; {other}"));
    }
    if plan.is_empty() {
        plan.skipped.iter().for_each(|skipped| skipped.say(call));
        return nothing(call, dry_run).map(|ended| if plan.skipped.is_empty() { ended } else { Ended::With(Kind::LeftOut) });
    }
    if call.out.is_text() {
        plan.show(call, dry_run);
    }
    if dry_run {
        return Ok(plan.say_planned(call));
    }
    ask(call, &plan)?;
    plan.carry_out(call, store, &by_settings)
}

fn nothing(call: &Call, dry_run: bool) -> Result<Ended, Error> {
    if call.out.is_text() {
        call.out.note("nothing to prune");
    } else {
        let none = Part::default();
        let whole = Whole { dry_run, sessions: &none, checkpoints: &none, snapshots: &[], skipped: &[], bytes: 0 };
        call.out.document(&whole);
    }
    Ok(Ended::Done)
}

/// Asks. Without a terminal `-y` is needed: who did not look has not agreed by having settings.
fn ask(call: &Call, plan: &Plan) -> Result<(), Error> {
    let what = format!("{}, {}", plan.counts(), figures::bytes(plan.bytes()));
    call.need_asking(&format!("prune drops {what}"), command("prune --dry-run -v"))?;
    call.confirm(&format!("Prune {what}?"))
}

/// The limits of snapshots. One over either limit goes, as when the next one is taken.
fn limits(call: &Call) -> Which {
    let (keep, max_size) = (call.config.snapshot_keep.value, call.config.snapshot_max_size.value);
    Which::Settings(Conditions { keep: Some(keep), before: None, max_size: Some(max_size) }, Maker::Person)
}

impl Plan {
    fn of(call: &Call, store: &Store, by_settings: &Wanted) -> Result<Self, Error> {
        let sessions = Pruning::new(call, store, by_settings, &SESSIONS).chosen_by_settings()?;
        let mut checkpoints = Pruning::new(call, store, by_settings, &CHECKPOINTS).chosen_by_settings()?;
        // A session's checkpoint goes with it.
        checkpoints.retain(|header| !sessions.iter().any(|session| session.id == header.id));
        let (session_bytes, checkpoint_bytes) = (SESSIONS.sizes(store, &sessions)?, CHECKPOINTS.sizes(store, &checkpoints)?);
        let (snapshots, skipped) = (Vec::new(), Vec::new());
        let mut plan = Self { sessions, session_bytes, checkpoints, checkpoint_bytes, snapshots, skipped };
        let (all, broken) = Series::all(store)?;
        for series in all {
            let would = || -> Result<_, Error> {
                let gone = snapshot::chosen(call, &series, &limits(call))?;
                Ok(if gone.is_empty() { None } else { Some(snapshots::would(&series, &gone)?) })
            };
            match would() {
                Ok(None) => {}
                Ok(Some(would)) => plan.snapshots.push(OfDir {
                    directory: series.directory.clone(),
                    pruned: would.gone,
                    bytes: would.freed,
                    series,
                }),
                Err(problem) => {
                    plan.skipped.push(Skipped { what: series.directory.to_string(), why: problem.message().to_owned() })
                }
            }
        }
        let unknown = "the directory of these snapshots is unknown";
        plan.skipped.extend(broken.into_iter().map(|name| Skipped { what: format!("snapshots/{name}"), why: unknown.into() }));
        Ok(plan)
    }

    fn is_empty(&self) -> bool {
        self.sessions.is_empty() && self.checkpoints.is_empty() && self.snapshots.is_empty()
    }

    fn numbers(&self) -> u64 {
        self.snapshots.iter().map(|of| of.pruned.len() as u64).sum()
    }

    fn bytes(&self) -> u64 {
        self.session_bytes + self.checkpoint_bytes + self.snapshots.iter().map(|of| of.bytes).sum::<u64>()
    }

    fn counts(&self) -> String {
        counted([
            (self.sessions.len() as u64, "session"),
            (self.checkpoints.len() as u64, "checkpoint"),
            (self.numbers(), "snapshot"),
        ])
    }

    /// Shows the first of each kind that goes, before the question. In a dry run this is the result.
    fn show(&self, call: &Call, dry_run: bool) {
        /// Lines for each of three kinds; more would not be read.
        const EACH: usize = 6;
        let line = |text: String| if dry_run { call.out.line(text) } else { call.out.say(text) };
        let whole = command("prune --dry-run -v");
        let limit = call.out.limit();
        let most = if limit == usize::MAX { limit } else { EACH };
        for (headers, what, also) in [
            (&self.sessions, "session", "finished; this also gives up redo"),
            (&self.checkpoints, "checkpoint", "no rollback needs them"),
        ] {
            if !headers.is_empty() {
                line(format!("{}: {also}", figures::count(headers.len() as u64, what)));
                heads(&call.out, &headers.iter().collect::<Vec<_>>(), most, &whole)
                    .into_iter()
                    .for_each(|head| line(format!("  {head}")));
            }
        }
        if !self.snapshots.is_empty() {
            line(format!("{}: over snapshot.keep or snapshot.max_size", figures::count(self.numbers(), "snapshot")));
            for of in self.snapshots.iter().take(most) {
                let count = figures::count(of.pruned.len() as u64, "snapshot");
                line(format!("  {}: {count}, {}", call.out.place(&of.directory), figures::bytes(of.bytes)));
            }
            if self.snapshots.len() > most {
                line(format!("  {}", figures::more(self.snapshots.len() - most, &whole)));
            }
        }
    }

    fn say_planned(self, call: &Call) -> Ended {
        self.skipped.iter().for_each(|skipped| skipped.say(call));
        let (counts, bytes) = (self.counts(), self.bytes());
        let ended = if self.skipped.is_empty() { Ended::Done } else { Ended::With(Kind::LeftOut) };
        if call.out.is_text() {
            call.out.note(format_args!("{counts} would go, {}", figures::bytes(bytes)));
            return ended;
        }
        let part =
            |headers: Vec<Header>, bytes: u64| Part { bytes, pruned: headers.into_iter().map(|header| header.id).collect() };
        let (sessions, checkpoints) = (part(self.sessions, self.session_bytes), part(self.checkpoints, self.checkpoint_bytes));
        let (snapshots, skipped) = (&self.snapshots[..], &self.skipped[..]);
        call.out.document(&Whole { dry_run: true, sessions: &sessions, checkpoints: &checkpoints, snapshots, skipped, bytes });
        ended
    }

    /// Prunes what was shown, and nothing that came later. Reports what went, also if an error stopped it.
    fn carry_out(mut self, call: &Call, store: &Store, by_settings: &Wanted) -> Result<Ended, Error> {
        let mut gone = Gone { skipped: std::mem::take(&mut self.skipped), ..Gone::default() };
        let ended = gone.take(call, store, by_settings, self);
        gone.say(call, ended.is_ok());
        call.out.flush();
        call.clear_away(store);
        ended.map_err(
            |problem| if gone.is_empty() { problem } else { problem.after(&format!("{} pruned before it", gone.counts())) },
        )?;
        Ok(if gone.skipped.is_empty() { Ended::Done } else { Ended::With(Kind::LeftOut) })
    }
}

/// The result: what went, and what did not.
#[derive(Default)]
struct Gone {
    sessions: Part,
    checkpoints: Part,
    snapshots: Vec<OfDir>,
    skipped: Vec<Skipped>,
}

impl Gone {
    /// Drops what is planned, and records each drop. A signal stops it between two of them.
    fn take(&mut self, call: &Call, store: &Store, by_settings: &Wanted, plan: Plan) -> Result<(), Error> {
        for (part, target, headers) in
            [(&mut self.sessions, &SESSIONS, &plan.sessions), (&mut self.checkpoints, &CHECKPOINTS, &plan.checkpoints)]
        {
            if headers.is_empty() {
                continue;
            }
            let only = headers.iter().map(|header| header.id.clone()).collect();
            let (done, ended) = Pruning::new(call, store, by_settings, target).only(only).done();
            self.skipped.extend(done.skipped().map(|(id, why)| Skipped { what: format!("session {id}"), why: why.into() }));
            (part.pruned, part.bytes) = done.pruned();
            ended?;
        }
        let _noting = interrupt::note(Asked::Stops);
        for of in plan.snapshots {
            interrupt::check().map_err(|asked| Error::refused(asked.to_string()))?;
            match of.carry_out(call) {
                Ok((of, kept)) => {
                    let unswept = |why: String| Skipped { what: of.directory.to_string(), why: snapshot::unswept(&why) };
                    self.skipped.extend(kept.map(unswept));
                    self.snapshots.push(of);
                }
                Err(skipped) => self.skipped.push(skipped),
            }
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.numbers().iter().all(|(n, _)| *n == 0)
    }

    fn numbers(&self) -> [(u64, &'static str); 3] {
        let snapshots = self.snapshots.iter().map(|of| of.pruned.len() as u64).sum();
        [
            (self.sessions.pruned.len() as u64, "session"),
            (self.checkpoints.pruned.len() as u64, "checkpoint"),
            (snapshots, "snapshot"),
        ]
    }

    fn counts(&self) -> String {
        if self.is_empty() { "nothing".into() } else { counted(self.numbers()) }
    }

    fn say(&self, call: &Call, is_whole: bool) {
        self.skipped.iter().for_each(|skipped| skipped.say(call));
        if !is_whole && self.is_empty() {
            return;
        }
        let Self { sessions, checkpoints, snapshots, skipped } = self;
        let bytes = sessions.bytes + checkpoints.bytes + snapshots.iter().map(|of| of.bytes).sum::<u64>();
        if call.out.is_text() {
            call.out.note(format_args!("{} pruned, {}", self.counts(), figures::bytes(bytes)));
        } else {
            call.out.document(&Whole { dry_run: false, sessions, checkpoints, snapshots, skipped, bytes });
        }
    }
}

/// `3 sessions, 2 checkpoints, 5 snapshots`.
fn counted(numbers: [(u64, &str); 3]) -> String {
    let counts = numbers.iter().filter(|(n, _)| *n > 0).map(|(n, word)| figures::count(*n, word));
    counts.collect::<Vec<_>>().join(", ")
}

impl OfDir {
    /// Prunes what was shown and still may go. Returns the reason why content stays, if it does.
    fn carry_out(self, call: &Call) -> Result<(Self, Option<String>), Skipped> {
        let skipped = |error: crate::error::Error| Skipped { what: self.directory.to_string(), why: error.to_string() };
        let lock = self.series.lock(&call.fs).map_err(skipped)?;
        let not_told = |problem: Error| Skipped { what: self.directory.to_string(), why: problem.message().to_owned() };
        let mut gone = snapshot::chosen(call, &self.series, &limits(call)).map_err(not_told)?;
        gone.retain(|n| self.pruned.contains(n));
        let pruned = snapshots::prune(&call.fs, &self.series, &lock, &gone).map_err(skipped)?;
        drop(lock);
        Ok((Self { pruned: pruned.gone, bytes: pruned.freed, ..self }, pruned.kept))
    }
}

impl Skipped {
    fn say(&self, call: &Call) {
        call.out.warn(format_args!("{} stays: {}", self.what, self.why));
    }
}
