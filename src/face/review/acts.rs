//! The acts of the screen: verbs, with what was picked in place of paths. Each knows what undoes it.

use super::compare::Compare;
use super::error_lines::lines_of;
use super::snapshot;
use crate::agent::Reach;
use crate::compare::{Pick, Picked, Sources, Taken, mark_of};
use crate::error::{Against, Error, Kind, Reason, command};
use crate::face::call::Call;
use crate::face::figures;
use crate::face::screen::world::{Act, Ended};
use crate::face::text::agent::undo::say as say_turns;
use crate::face::text::diff::tool;
use crate::face::text::snapshot::restore;
use crate::face::text::{acts, discard, rewind};
use crate::fs::AbsPath;
use crate::session::{Id, Origin, Status};
use crate::verb::act::merge;
use crate::verb::agent::undo::undo as undo_turns;
use crate::verb::error::refused;
use crate::verb::parts::picks;
use crate::verb::resolve::guard::limited;
use crate::verb::resolve::target::What;
use crate::verb::snapshot::restore as restores;
use crate::verb::{
    Commit, Discard, Discarded, End, HeldEdited, Named, Restore, Rollback, TakeBack, Target, TypedPath, Want, commit,
    discard as discards, gate, redo, rewind as rewinds, rollback,
};

/// A deed of this screen that can be undone: what it was, and how, the first one first.
struct Done {
    what: String,
    back: Vec<Undo>,
}

#[derive(Clone)]
enum Undo {
    /// Rolls a session back: these paths of it, and no other; all if there are none.
    RollBack(Id, Vec<AbsPath>),
    /// Commits these paths of a session again.
    Redo(Id, Vec<AbsPath>),
    /// Makes a session stand at a step, if it stands where the deed left it.
    Rewind { id: Id, to: u32, from: u32 },
}

impl Undo {
    /// The call as a person types it, its paths counted.
    fn typed(&self) -> String {
        let (line, paths) = match self {
            Undo::RollBack(id, paths) => (format!("rollback {}", id.tail()), &paths[..]),
            Undo::Redo(id, paths) => (format!("redo {}", id.tail()), &paths[..]),
            Undo::Rewind { id, to, .. } => (format!("rewind {} {to}", id.tail()), &[][..]),
        };
        match paths {
            [] => command(line),
            [one] => command(format_args!("{line} {one}")),
            many => command(format_args!("{line} and {} paths", many.len())),
        }
        .into()
    }
}

/// The acts, and what was done with them.
pub struct Acts<'c> {
    call: &'c Call,
    done: Vec<Done>,
    said: Vec<String>,
}

pub struct Stand {
    status: Status,
    head: u32,
    has_steps: bool,
}

impl<'c> Acts<'c> {
    pub fn new(call: &'c Call) -> Self {
        Self { call, done: Vec::new(), said: Vec::new() }
    }

    /// A line for each deed, for the terminal once the screen has gone.
    pub fn said(&self) -> &[String] {
        &self.said
    }

    /// The calls that undo the last deed.
    pub fn last(&self) -> Option<String> {
        let done = self.done.last()?;
        let calls: Vec<String> = done.back.iter().map(Undo::typed).collect();
        Some(format!("{}: {}", done.what, calls.join("; ")))
    }

    pub fn undo(&mut self) -> Ended {
        let Some(done) = self.done.pop() else { return Ended::Refused(vec!["nothing was done that can be undone".into()]) };
        if let Some(why) = done.back.iter().find_map(|back| self.gone_on(back)) {
            self.done.push(done);
            return Ended::Refused(why);
        }
        let mut lines = vec![format!("undone: {}", done.what)];
        for (n, back) in done.back.iter().enumerate() {
            match self.take_back(back) {
                Ok(said) => lines.extend(said),
                // A step that cannot be gone back to stands in the way of nothing else.
                Err(problem) if matches!(back, Undo::Rewind { .. }) => {
                    lines.push(format!("the session stays at its step: {}", problem.message()));
                }
                Err(problem) => {
                    let back = done.back[n..].to_vec();
                    self.done.push(Done { what: done.what, back });
                    return Ended::Refused(lines_of(&problem).iter().map(|line| self.call.out.sentence(line)).collect());
                }
            }
        }
        self.said.push(lines[0].clone());
        Ended::Done(lines)
    }

    /// The words for a session that has gone on since the deed: a rewind would leave behind what somebody did.
    fn gone_on(&self, back: &Undo) -> Option<Vec<String>> {
        let Undo::Rewind { id, to, from } = back else { return None };
        let now = self.stand(id).ok()?.head;
        let tail = id.tail();
        (now != *from).then(|| {
            vec![
                format!("session {tail} has gone on since: it is at step {now}, and was at step {from}"),
                "nothing was changed".into(),
                format!("s lists its steps; {} goes back over them", crate::error::command(format_args!("rewind {tail} {to}"))),
            ]
        })
    }

    fn take_back(&self, back: &Undo) -> Result<Vec<String>, Error> {
        let done = match back {
            Undo::RollBack(id, paths) => self.rolled_back(id, self.target(id, paths)?),
            Undo::Redo(id, paths) => self.redone(id, self.target(id, paths)?),
            Undo::Rewind { id, to, .. } => self.rewound(id, *to),
        };
        done.map(|deed| deed.lines)
    }

    /// These changes of a session, whole; all if there are none.
    fn target(&self, id: &Id, paths: &[AbsPath]) -> Result<Target, Error> {
        let what = if paths.is_empty() { What::All } else { What::Picked(self.picked(id, paths)?) };
        Ok(Target { what, ..Target::all(id.as_str()) })
    }

    /// Whole changes of a session, as they stand now.
    fn picked(&self, id: &Id, paths: &[AbsPath]) -> Result<Picked, Error> {
        let session = self.call.store_with(id.as_str())?.session(id)?;
        let changes = session.changes()?;
        let sides = session.sides(changes.list.len())?;
        let mut sources = Sources::of(&session)?;
        let pick = |path: &AbsPath| {
            let i = changes.list.binary_search_by(|change| change.path.cmp(path)).ok()?;
            Some(Pick { path: path.clone(), taken: Taken::Whole, seen: mark_of(&changes.list[i], sides[i], &mut sources) })
        };
        Ok(Picked(paths.iter().filter_map(pick).collect()))
    }

    /// Undoes a turn of an agent and the later ones.
    pub fn undo_turn(&mut self, n: u64) -> Ended {
        let asked = TakeBack { n: Some(n), reach: Reach::Later, force: false, dry_run: false };
        let done = match limited(self.call) {
            Some(variable) => Err(refused(variable, command(format_args!("agent undo {n}")))),
            None => self.verb(None, |call| {
                let taken = undo_turns(call, &asked, |_| Ok(Vec::new()))?;
                say_turns(&call.out, &taken);
                Ok(Some((Vec::new(), taken.session)))
            }),
        };
        self.ended(done, format!("undo of turn {n}"), |_, made| rolls_back(made))
    }

    /// Makes a session stand at a step.
    pub fn rewind(&mut self, id: &Id, n: u32) -> Ended {
        let before = match self.stand(id) {
            Ok(stand) => stand,
            Err(problem) => return Ended::Refused(lines_of(&problem)),
        };
        let done = self.rewound(id, n);
        self.ended(done, format!("rewind to step {n}"), |acts, _| acts.back_to(id, &before))
    }

    /// Restores what is picked from a snapshot.
    pub fn restore(&mut self, store: &AbsPath, directory: &AbsPath, n: u64, picked: &Picked) -> Ended {
        match snapshot::changed(store, directory, n, picked) {
            Ok(changed) if changed.is_empty() => {}
            Ok(changed) => return Ended::Changed(changed),
            Err(problem) => return Ended::Refused(lines_of(&problem)),
        }
        let paths: Vec<TypedPath> = paths(picked).iter().map(|path| TypedPath::below(path.as_path(), path.as_path())).collect();
        let of = Named { dir: Some(directory.as_path()), key: &n.to_string(), paths: &paths };
        let done = self.verb(None, |call| {
            if let Some(variable) = limited(call) {
                return Err(refused(variable, command(format_args!("review --snapshot {n} --dir {directory}"))));
            }
            let restored = restores::restore(call, &Restore::of(of))?;
            restore::say(&call.out, &restored);
            Ok(Some((Vec::new(), restored.session)))
        });
        self.ended(done, format!("restore from snapshot {n}"), |_, made| rolls_back(made))
    }

    /// Acts on what is picked of a session, for a reason.
    pub fn on_session(&mut self, id: &Id, act: Act, (picked, reason): (Picked, Option<String>)) -> Ended {
        let before = match self.stand(id) {
            Ok(stand) => stand,
            Err(problem) => return Ended::Refused(lines_of(&problem)),
        };
        match act {
            Act::Commit if before.status == Status::RolledBack => self.redo(id, picked, reason),
            Act::Commit => self.commit(id, picked, reason),
            Act::RollBack => self.roll_back(id, picked, reason),
            Act::Discard => self.discard(id, &before, (picked, reason)),
            Act::Merge => self.merge(id, &before, &picked),
            Act::Restore => Ended::Refused(vec!["a session has nothing to restore".into()]),
        }
    }

    fn commit(&mut self, id: &Id, picked: Picked, reason: Option<String>) -> Ended {
        let (paths, what) = (paths(&picked), deed("commit", &picked));
        let done = self.verb(Some(("commit", id)), |call| {
            let acted = commit::commit(call, &Commit::of(of_picks(id, picked, reason)))?;
            acts::end(call, acted.as_ref())?;
            Ok(acted.map(|acted| (acts::headlines(&acted), Some(acted.session))))
        });
        self.ended(done, what, |_, made| match made {
            Some(made) if made == *id => vec![Undo::RollBack(made, paths)],
            // A part: the session that it left holds it again then.
            made => rolls_back(made),
        })
    }

    fn redo(&mut self, id: &Id, picked: Picked, reason: Option<String>) -> Ended {
        if picked.0.iter().any(|pick| pick.taken != Taken::Whole) {
            return Ended::Refused(vec!["what was rolled back can only be committed again as whole files: a chooses one".into()]);
        }
        let (paths, what) = (paths(&picked), deed("redo", &picked));
        let done = self.redone(id, of_picks(id, picked, reason));
        self.ended(done, what, |_, made| made.map(|made| Undo::RollBack(made, paths)).into_iter().collect())
    }

    fn redone(&self, id: &Id, of: Target) -> Result<Made, Error> {
        self.verb(Some(("redo", id)), |call| {
            let acted = redo::redo(call, &of, false)?;
            acts::end(call, Some(&acted))?;
            Ok(Some((acts::headlines(&acted), Some(acted.session))))
        })
    }

    fn roll_back(&mut self, id: &Id, picked: Picked, reason: Option<String>) -> Ended {
        let (paths, what) = (paths(&picked), deed("rollback", &picked));
        let done = self.rolled_back(id, of_picks(id, picked, reason));
        self.ended(done, what, |_, made| match made {
            Some(made) if made == *id => vec![Undo::Redo(made, paths)],
            made => rolls_back(made),
        })
    }

    fn rolled_back(&self, id: &Id, of: Target) -> Result<Made, Error> {
        self.verb(Some(("rollback", id)), |call| {
            let acted = rollback::rollback(call, &Rollback::of(of))?;
            acts::end(call, acted.as_ref())?;
            Ok(acted.map(|acted| (acts::headlines(&acted), Some(acted.session))))
        })
    }

    fn rewound(&self, id: &Id, step: u32) -> Result<Made, Error> {
        self.verb(None, |call| {
            let headline = rewind::headline(&rewinds::rewind(call, id.as_str(), step, (None, false))?);
            call.out.note(&headline);
            Ok(Some((vec![headline], None)))
        })
    }

    fn discard(&mut self, id: &Id, before: &Stand, (picked, reason): (Picked, Option<String>)) -> Ended {
        let what = deed("discard", &picked);
        let done = self.verb(None, |call| {
            match discards::discard(call, &Discard { of: of_picks(id, picked, reason), end: End::Aside })? {
                Discarded::Part(Some(part)) => {
                    discard::say_part(&call.out, &part);
                    Ok(Some((vec![discard::part_headline(&part)], None)))
                }
                Discarded::Part(None) | Discarded::Sessions(_) => Ok(None),
            }
        });
        self.ended(done, what, |acts, _| acts.back_to(id, before))
    }

    /// Puts held changes onto what is on the tree by now; they stay held.
    fn merge(&mut self, id: &Id, before: &Stand, picked: &Picked) -> Ended {
        let done = self.verb(None, |call| {
            let (store, mut session) = call.locked(id.as_str(), Want::Commit)?;
            picks::refuse_changed(picked, &session)?;
            merge::merge(call, store, &mut session, false, &mut paths(picked)).map(|_goes_on| None)
        });
        let done = done.map(|done| match done.lines.is_empty() {
            true => Made::of(vec!["there was nothing to merge: the tree has not changed there".into()]),
            false => done,
        });
        self.ended(done, deed("merge", picked), |acts, _| acts.back_to(id, before))
    }

    /// Notes that a program of the person's changed what is held; `None` if it changed nothing.
    pub fn edited(&mut self, id: &Id, before: &Stand, done: Result<Option<HeldEdited>, Error>) -> Ended {
        let done = match done {
            Ok(None) => return Ended::Done(vec!["nothing was edited".into()]),
            Ok(Some(edited)) => Ok(Made::of(vec![tool::edited(&self.call.out, &edited)])),
            Err(problem) => Err(problem),
        };
        self.ended(done, "edit".into(), |acts, _| acts.back_to(id, before))
    }

    /// The call that the screen was opened by.
    pub fn call(&self) -> &'c Call {
        self.call
    }

    /// Opens a path in the tool for differences, on the terminal.
    pub fn tool(&mut self, of: Compare<'_>, path: &AbsPath) -> Ended {
        let call = self.call.again();
        let before = match &of {
            Compare::Session(id) => self.stand(id).ok().map(|before| (Id::clone(id), before)),
            Compare::Pair(..) | Compare::Snapshot(..) => None,
        };
        match (of.in_tool(&call, path).and_then(|edited| call.out.finish().map(|()| edited)), before) {
            (Ok(None), _) => Ended::Done(Vec::new()),
            (edited, Some((id, before))) => self.edited(&id, &before, edited),
            (Ok(Some(edited)), None) => Ended::Done(vec![tool::edited(&self.call.out, &edited)]),
            (Err(problem), None) => Ended::Refused(lines_of(&problem)),
        }
    }

    /// The way back to where a session stood; none for one without steps, or that stands there.
    fn back_to(&self, id: &Id, before: &Stand) -> Vec<Undo> {
        match self.stand(id) {
            Ok(now) if before.has_steps && now.head != before.head => {
                vec![Undo::Rewind { id: id.clone(), to: before.head, from: now.head }]
            }
            _ => Vec::new(),
        }
    }

    /// How a session stands.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn stand(&self, id: &Id) -> Result<Stand, Error> {
        let session = self.call.store_with(id.as_str())?.session(id)?;
        let header = &session.header;
        Ok(Stand { status: header.status(), head: header.head(), has_steps: header.origin == Origin::Captured })
    }

    /// Carries out a verb with all that is said kept. `decided`: its word, and its session, if a person decides about it. `act` returns the
    /// lines for the terminal, and the session that it made or changed.
    fn verb(
        &self,
        decided: Option<(&str, &Id)>,
        act: impl FnOnce(&Call) -> Result<Option<(Vec<String>, Option<Id>)>, Error>,
    ) -> Result<Made, Error> {
        if let (Some((verb, id)), Some(variable)) = (decided, limited(self.call)) {
            return Err(refused(variable, command(format_args!("{verb} {}", id.tail()))));
        }
        let call = self.call.for_screen();
        if let Some((verb, id)) = decided {
            gate::refuse_outside(&call, id.as_str(), verb == "commit")?;
        }
        gate::before_changes(&call)?;
        let (headlines, id) = act(&call)?.unwrap_or_default();
        Ok(Made { lines: call.out.kept(), headlines, id })
    }

    /// The end of a deed. `back`: how it is undone, by the session that it made or changed, if there is one.
    fn ended(&mut self, done: Result<Made, Error>, what: String, back: impl FnOnce(&Self, Option<Id>) -> Vec<Undo>) -> Ended {
        match done {
            Ok(Made { lines, headlines, id }) => {
                self.said.extend(headlines);
                let back = back(self, id);
                if !back.is_empty() {
                    self.done.push(Done { what, back });
                }
                Ended::Done(lines)
            }
            Err(problem) if problem.reason() == Some(&Reason::Stale) => {
                let line = |against: &Against| self.call.out.sentence(&against.to_string());
                Ended::Changed(problem.rows().iter().map(line).collect())
            }
            Err(problem) => {
                let lines = lines_of(&problem).iter().map(|line| self.call.out.sentence(line)).collect();
                if problem.kind() == Kind::Conflict { Ended::Conflict(lines) } else { Ended::Refused(lines) }
            }
        }
    }
}

/// A deed that was done.
struct Made {
    /// The lines for the screen.
    lines: Vec<String>,
    /// The lines for the terminal, once the screen has gone.
    headlines: Vec<String>,
    /// The session that it made or changed.
    id: Option<Id>,
}

impl Made {
    fn of(lines: Vec<String>) -> Self {
        Self { lines, headlines: Vec::new(), id: None }
    }
}

fn rolls_back(made: Option<Id>) -> Vec<Undo> {
    made.map(|id| Undo::RollBack(id, Vec::new())).into_iter().collect()
}

fn of_picks(id: &Id, picked: Picked, reason: Option<String>) -> Target {
    Target { what: What::Picked(picked), reason, ..Target::all(id.as_str()) }
}

fn deed(verb: &str, picked: &Picked) -> String {
    format!("{verb} of {}", figures::count(picked.0.len() as u64, "change"))
}

fn paths(picked: &Picked) -> Vec<AbsPath> {
    picked.0.iter().map(|pick| pick.path.clone()).collect()
}
