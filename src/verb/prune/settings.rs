//! `prune`: what the settings let go of sessions, checkpoints and snapshots.

use super::kind::Kind;
use super::question::Prune;
use super::report::{All, OfDirectory, Part, Sessions, Skipped, Staying};
use super::sessions::{self, Consent, Pruning, Wanted, refuse_signal};
use super::snapshots::drop_shown;
use crate::error::Error;
use crate::fs::{OnSignal, interrupt};
use crate::session::{Header, Store, Which};
use crate::snapshot::{Pruned, Series, prune_snapshots as snapshots};
use crate::verb::desk::Desk;
use crate::verb::error::{self, UNKNOWN_DIRECTORY};
use crate::verb::fact::Fact;
use crate::verb::prunable::Committed;
use crate::verb::question::Question;
use crate::verb::snapshot::prunable::{by_settings, chosen};

/// Prunes by the settings: retention.keep and retention.older_than, snapshot.keep and snapshot.max_size. Shows it before. An error that stops
/// it is in the value, if something went before.
///
/// # Errors
/// The answer is no, or nobody can be asked; the store cannot be read.
pub fn prune(desk: &Desk, dry_run: bool) -> Result<All, Error> {
    let Some(store) = desk.store()? else { return Ok(All { dry_run, ..All::default() }) };
    if !dry_run {
        desk.prepare_to_change(store)?;
    }
    let plan = planned(desk, store, dry_run)?;
    if dry_run || plan.is_empty() {
        return Ok(plan);
    }
    desk.caller.tell(Fact::Prunes(&plan));
    if !desk.yes && !desk.can_ask {
        return Err(error::prunes_all_unasked(plan.counts(), plan.bytes));
    }
    desk.confirm(Question::Prune(Prune::All(&plan)))?;
    let mut done = All { keeps_sessions: plan.keeps_sessions, ..All::default() };
    let stopped = carry_out(desk, store, plan, &mut done).err();
    done.add_up();
    desk.clear_away(store);
    match stopped {
        Some(error) if done.is_empty() => Err(error),
        stopped => Ok(All { stopped, ..done }),
    }
}

fn wanted() -> Wanted {
    Wanted { ids: Vec::new(), which: Which::default(), committed: Committed::Stays, dry_run: false }
}

fn planned(desk: &Desk, store: &Store, dry_run: bool) -> Result<All, Error> {
    let wanted = &wanted();
    let mut plan = All { dry_run, keeps_sessions: sessions::by_settings(desk).is_unbounded(), ..All::default() };
    if !plan.keeps_sessions {
        let fit = |kind| Pruning { desk, store, kind, wanted }.by_conditions(Committed::Stays);
        let sessions = fit(Kind::Sessions)?;
        let mut checkpoints = fit(Kind::Checkpoints)?;
        // A session's checkpoint goes with it.
        checkpoints.retain(|header| !sessions.iter().any(|session| session.id == header.id));
        let part = |kind: Kind, headers: Vec<Header>| Ok::<_, Error>(Part { bytes: kind.sizes(store, &headers)?, headers });
        plan.sessions = part(Kind::Sessions, sessions)?;
        plan.checkpoints = part(Kind::Checkpoints, checkpoints)?;
    }
    let (all, broken) = Series::all(store)?;
    for series in all {
        match would(desk, &series) {
            Ok(None) => {}
            Ok(Some(Pruned { gone, freed, .. })) => {
                let directory = series.directory.clone();
                plan.snapshots.push(OfDirectory { directory, pruned: gone, bytes: freed, series });
            }
            Err(why) => plan.skipped.push(Staying::of(&series, &why)),
        }
    }
    let unknown = |name| Staying { what: format!("snapshots/{name}"), why: UNKNOWN_DIRECTORY.into() };
    plan.skipped.extend(broken.into_iter().map(unknown));
    plan.add_up();
    Ok(plan)
}

/// The snapshots of a series that go, if there are some.
fn would(desk: &Desk, series: &Series) -> Result<Option<Pruned>, Error> {
    let gone = chosen(desk, series, &by_settings(desk))?;
    if gone.is_empty() { Ok(None) } else { snapshots::preview(series, &gone).map(Some) }
}

/// Prunes what was shown, and nothing that came later, and records each. A signal stops it between two of them.
fn carry_out(desk: &Desk, store: &Store, plan: All, done: &mut All) -> Result<(), Error> {
    done.skipped = plan.skipped;
    for (kind, part, planned) in
        [(Kind::Sessions, &mut done.sessions, plan.sessions), (Kind::Checkpoints, &mut done.checkpoints, plan.checkpoints)]
    {
        if planned.headers.is_empty() {
            continue;
        }
        let consent = Consent::These(planned.headers.iter().map(|header| header.id.clone()).collect());
        let mut dropped = Sessions::default();
        let pruning = Pruning { desk, store, kind, wanted: &wanted() };
        let ended = pruning.carry_out(&consent, &mut dropped);
        let staying = |Skipped { id, why }: Skipped| Staying { what: format!("session {id}"), why: why.into() };
        done.skipped.extend(dropped.skipped.into_iter().map(staying));
        part.headers = planned.headers.into_iter().filter(|header| dropped.pruned.contains(&header.id)).collect();
        part.bytes = dropped.bytes;
        ended?;
    }
    let _noting = interrupt::note(OnSignal::Stops);
    for of in plan.snapshots {
        refuse_signal()?;
        match drop_shown(desk, &of.series, &by_settings(desk), &of.pruned) {
            Ok(Pruned { gone, freed, kept }) => {
                let what = of.directory.to_string();
                done.skipped.extend(kept.map(|why| Staying { what, why: error::content_stays(&why) }));
                done.snapshots.push(OfDirectory { pruned: gone, bytes: freed, ..of });
            }
            Err(why) => done.skipped.push(Staying::of(&of.series, &why)),
        }
    }
    Ok(())
}
