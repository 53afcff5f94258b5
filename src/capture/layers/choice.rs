//! A person's choice in a session: what it holds at some paths from now on. In a session of steps it is a step like that of a command, but
//! nothing is run: its uppers are made directly (`choice_upper`), then collected as a command's are. So later commands see the choice, and
//! what shows, forks or rewinds steps needs not know of it. In a session staged by hand it is staged.
//!
//! The net change of a path is the one that was chosen, whatever is on the tree: its `before` may be another one than that of a command.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Read;
use std::path::Path;

use super::choice_terms::Choice;
use super::choice_upper::Uppers;
use super::merge_many::leave_out;
use super::sealed_uppers::Sealed;
use crate::capture::collect::facts::Facts;
use crate::capture::collect::net_with_step::Composed;
use crate::capture::collect::{clear, collect, open_up};
use crate::capture::place::layout::Route;
use crate::capture::run::ids::Ids;
use crate::capture::run::keep_changes::{StepsBelow, facts, header_facts, remove_uppers, size_of};
use crate::error::{Error, Kind, command};
use crate::fs::{AbsPath, Fs, Inode, Time, resolve};
use crate::session::{
    Added, Arg, Changes, CommandRecord, Line, Locked, Net, Origin, Place, Run, Session, Side, Staging, Status, Step, Store,
    lines_without, not_now, part,
};

#[derive(Debug)]
pub struct ChoiceMade {
    /// The step that it became; `None` in a session staged by hand, and where it made no difference.
    pub step: Option<u32>,
    /// The number of net changes in the session.
    pub changes: u64,
}

/// Makes choices, all or none, durably: from now on the session holds these files, and no change of the paths that leave it. `words` is what
/// `steps` shows as the step's command. The caller has noted signals.
///
/// # Errors
/// The session is as it was before: it was committed, imported, or lay in memory; a choice contradicts another change; an object cannot be made
/// there, each path with the reason; a system call failed.
pub fn choose(
    fs: &Fs,
    store: &Store,
    session: &mut Locked,
    words: Vec<Arg>,
    (choices, left): (Vec<Choice>, Vec<AbsPath>),
) -> Result<ChoiceMade, Error> {
    may_choose(session)?;
    if session.header.origin == Origin::Staged {
        return stage(fs, store, session, (choices, left));
    }
    let Some(run) = session.run()? else { return Err(not_now(session.id(), "the record of its run is missing")) };
    choose_over(fs, store, session, (run, words), (choices, left))
}

/// Checks that choices can be made in a session: nothing of it was ever on the tree, and what it held lies where later commands see it.
///
/// # Errors
/// It is not so, with the remedy.
pub fn may_choose(session: &Session) -> Result<(), Error> {
    let (header, tail) = (&session.header, session.id().tail());
    let paths = || command(format_args!("commit {tail} PATH")) + " commits the paths that you name alone";
    let (why, remedy) = match header.status() {
        Status::Discarded => header.why_discarded(),
        Status::Running => ("a command is running in it", Some("let that end first".into())),
        Status::Committed => ("it is committed", Some(command(format_args!("rollback {tail} PATH")) + " takes a path back")),
        Status::RolledBack => {
            ("it was committed, and is rolled back", Some(command(format_args!("discard {tail}")) + " drops all of it"))
        }
        Status::Pending if header.imported.is_some() => ("it was imported: it is committed as it came", Some(paths())),
        Status::Pending if session.run()?.is_some_and(|run| run.in_memory) => {
            ("its run was in memory, as the store's file system cannot hold one", Some(paths()))
        }
        Status::Pending => return Ok(()),
    };
    Err(not_now(session.id(), format_args!("no part of it can be changed: {why}")).with_remedy_if(remedy))
}

/// Makes the choices in a session staged by hand.
fn stage(
    fs: &Fs,
    store: &Store,
    session: &mut Locked,
    (choices, left): (Vec<Choice>, Vec<AbsPath>),
) -> Result<ChoiceMade, Error> {
    let changes = session.changes()?;
    let left = left.iter().filter_map(|path| changes.at(path));
    let mut desk = Staging::open(fs, store, session, false)?;
    let mut staged = left.map(|change| desk.choose(&change.path, (change.before.clone(), change.before.object.clone()), None));
    let staged = staged.try_for_each(|one| one).and_then(|()| choices.into_iter().try_for_each(|choice| put(&mut desk, choice)));
    if let Err(error) = staged {
        desk.give_up();
        return Err(error);
    }
    desk.finish()?;
    Ok(ChoiceMade { step: None, changes: session.header.counts.changes })
}

fn put(desk: &mut Staging<'_>, choice: Choice) -> Result<(), Error> {
    let is_none = choice.is_none();
    let mut content = &*choice.content;
    let content: Option<&mut dyn Read> = if is_none { None } else { Some(&mut content) };
    desk.choose(&choice.path, (choice.before, Some(choice.after)), content)
}

/// Makes the choices as a step over the others.
fn choose_over(
    fs: &Fs,
    store: &Store,
    session: &mut Locked,
    (earlier, words): (Run, Vec<Arg>),
    (mut choices, mut left): (Vec<Choice>, Vec<AbsPath>),
) -> Result<ChoiceMade, Error> {
    choices.sort_by(|a, b| a.path.cmp(&b.path));
    left.sort();
    let held = part(&session.dir, b"held")?;
    let step = session.header.next_step();
    let now = session.changes()?;
    let then = SessionAfter::of(&now, &choices, &left);
    then.check()?;
    refuse_unfit(session, &earlier, &now, &choices)?;
    let mut record = Run {
        command: CommandRecord::at_once(words, resolve::absolute(Path::new("."))?, store.by.clone()),
        first: Some(earlier.first()),
        beside: Vec::new(),
        scratch: Vec::new(),
        ..earlier.clone()
    };
    let mut sealed = Sealed::of(&held, session, session.header.chain())?;
    leave_out(fs, &held, (Route::of(earlier.uid), &earlier.places), &mut sealed, session)?;
    let net = Net::open(session)?;
    let over = StepsBelow { net: &net, sealed: &sealed, step };
    // Left by a choice that was cut off.
    remove_uppers(fs, &held, &record.places, step)?;
    open_up::forget(fs, &held, &record.places.iter().map(|place| place.upper_name(step)).collect::<Vec<_>>())?;
    let mut made = || {
        let times = make_uppers(fs, &facts(&held, &record, store, session, over)?, &choices, &then.times)?;
        for place in &mut record.places {
            place.mtime = times.get(&place.k).copied().or(place.mtime);
        }
        let facts = facts(&held, &record, store, session, over)?;
        let collected = collect(&facts, fs)?;
        clear(fs, &facts, &collected)?;
        let added = with_choices(collected.composed, &now, &choices, (step, facts.numbers.from), &then.times);
        Ok::<_, Error>(without(added, &now, &left))
    };
    match made() {
        Ok(added) => keep(fs, session, &net, (earlier, &record, step, added), &now),
        Err(error) => {
            // The first error is the one that counts. What cannot be removed now is before the next step.
            drop(remove_uppers(fs, &held, &record.places, step));
            Err(error)
        }
    }
}

/// The session once the choices are made.
struct SessionAfter {
    changes: Changes,
    /// The directories in which nothing is different any more, with the times that they had before.
    times: HashMap<AbsPath, Time>,
}

impl SessionAfter {
    fn of(now: &Changes, choices: &[Choice], left: &[AbsPath]) -> Self {
        let lines = choices.iter().map(|choice| match choice.is_none() {
            true => Line::None { n: 0, path: choice.path.clone() },
            false => Line::Change(Box::new(choice.change(now.at(&choice.path)))),
        });
        let changes = now.clone().with(lines.chain(lines_without(now, left)).collect());
        let chosen_in: HashSet<AbsPath> = choices.iter().filter_map(|choice| choice.path.parent()).collect();
        let left_in: HashSet<AbsPath> = changes.list.iter().filter_map(|change| change.path.parent()).collect();
        let ended = now.directory_times.iter().filter(|time| chosen_in.contains(&time.path) && !left_in.contains(&time.path));
        let times = ended.map(|time| (time.path.clone(), time.before)).collect();
        Self { changes, times }
    }

    fn check(&self) -> Result<(), Error> {
        match self.changes.contradiction() {
            None => Ok(()),
            Some((path, _)) => Err(Error::at(Kind::Refused, path, "what the session holds there does not fit the choice")),
        }
    }
}

/// Refuses what no upper of this session can have, each path with the reason.
fn refuse_unfit(session: &Session, run: &Run, now: &Changes, choices: &[Choice]) -> Result<(), Error> {
    let route = Route::of(run.uid);
    let ids = Ids::own(route);
    let parted = parted_names(session, run, now, choices)?;
    for choice in choices {
        let path = &choice.path;
        let refuse = |why: String, remedy: &str| Err(Error::at(Kind::Refused, path, why).with_remedy(remedy));
        match Place::innermost(&run.places, path) {
            None => return refuse("it lies in no place that the session captures".into(), "choose other paths"),
            Some(place) if place.file.is_some() => {
                return refuse("it is a mounted file, which is held as a whole".into(), "commit or discard the session whole");
            }
            Some(_) => {}
        }
        if let Some(other) = parted.get(path) {
            return refuse(format!("it has another name in the session, {other}, which was not chosen"), "choose both");
        }
        let (uid, gid) = (choice.after.meta.uid, choice.after.meta.gid);
        if route == Route::User && !ids.has(uid, gid) {
            let owner = format!("it belongs to user {uid}, group {gid}, which user {} cannot give to a file", ids.uid);
            return refuse(owner, "a step before the change has it as it was: rewind");
        }
    }
    Ok(())
}

/// The chosen paths that get new content while another name of the same file in the session is not chosen, with that name.
fn parted_names(session: &Session, run: &Run, now: &Changes, choices: &[Choice]) -> Result<HashMap<AbsPath, AbsPath>, Error> {
    let chosen: HashSet<&AbsPath> = choices.iter().map(|choice| &choice.path).collect();
    if !now.list.iter().any(|change| change.marks.linked && chosen.contains(&change.path)) {
        return Ok(HashMap::new());
    }
    let mut parted = HashMap::new();
    for names in linked_names(session, now, run)?.into_values() {
        let names: Vec<&AbsPath> = names.into_iter().map(|i| &now.list[i].path).collect();
        if let Some(other) = names.iter().find(|name| !chosen.contains(**name)) {
            let chosen = names.iter().filter(|name| chosen.contains(**name));
            parted.extend(chosen.map(|name| ((*name).clone(), (*other).clone())));
        }
    }
    Ok(parted)
}

/// The files of several names that the session holds, each with the indexes of these changes.
fn linked_names(session: &Session, now: &Changes, run: &Run) -> Result<HashMap<Inode, Vec<usize>>, Error> {
    let mut names: HashMap<Inode, Vec<usize>> = HashMap::new();
    for (i, change) in now.list.iter().enumerate().filter(|(_, change)| change.marks.linked) {
        let Some(at) = Session::held_at(change, Side::Never, Some(run)) else { continue };
        let (dir, name) = session.split(&at)?;
        if let Some(stat) = dir.at(name).stat()? {
            names.entry(stat.inode()).or_default().push(i);
        }
    }
    Ok(names)
}

/// Makes the uppers of the places with choices that are to be seen. Returns the time that each was given, by the number of its place.
fn make_uppers(
    fs: &Fs,
    facts: &Facts<'_>,
    choices: &[Choice],
    times: &HashMap<AbsPath, Time>,
) -> Result<BTreeMap<u32, Time>, Error> {
    let mut by_place: BTreeMap<u32, Vec<&Choice>> = BTreeMap::new();
    for choice in choices {
        let Some(place) = Place::innermost(facts.places, &choice.path) else { continue };
        by_place.entry(place.k).or_default().push(choice);
    }
    let ids = Ids::own(facts.route);
    let uppers = Uppers::new(fs, facts, &ids, times);
    let mut given = BTreeMap::new();
    for place in facts.places {
        if let Some(choices) = by_place.remove(&place.k) {
            given.insert(place.k, uppers.make(place, choices)?);
        }
    }
    Ok(given)
}

/// The lines that the step adds: its own changes as they were collected, and of each chosen path the net change that was chosen.
fn with_choices(
    composed: Composed,
    now: &Changes,
    choices: &[Choice],
    (step, from): (u32, u32),
    times: &HashMap<AbsPath, Time>,
) -> Added {
    let Added { own, mut net, .. } = composed.added;
    let chosen: HashSet<&AbsPath> = choices.iter().map(|choice| &choice.path).collect();
    net.retain(|line| line.path().is_none_or(|path| !chosen.contains(path) && !times.contains_key(path)));
    let free = (from..).skip(own.list.len());
    for (choice, free) in choices.iter().zip(free) {
        let (own, known) = (own.at(&choice.path), now.at(&choice.path));
        let mut change = choice.change(known);
        if let Some(own) = own {
            (change.n, change.step) = (own.n, own.step);
        } else if known.is_none() {
            change.n = free;
        }
        let none = Line::None { n: change.n, path: change.path.clone() };
        // One that neither was nor is a change needs no line, unless the step made it one.
        match choice.is_none() {
            true if known.is_some() || own.is_some() => net.push(none),
            true => {}
            false => net.push(Line::Change(Box::new(change))),
        }
    }
    net.extend(times.keys().map(|path| Line::None { n: step, path: path.clone() }));
    Added { own, net, left: Vec::new() }
}

/// Has paths leave at the step.
fn without(added: Added, now: &Changes, left: &[AbsPath]) -> Added {
    let told: HashSet<AbsPath> = added.net.iter().filter_map(Line::path).cloned().collect();
    let lines = lines_without(now, left).into_iter().filter(|line| line.path().is_none_or(|path| !told.contains(path)));
    Added { net: added.net.iter().cloned().chain(lines).collect(), left: left.to_vec(), ..added }
}

/// Adds the step. A choice that made no difference leaves none. The record of the run stays that of the last command: what a commit may leave
/// out follows from where that ran.
fn keep(
    fs: &Fs,
    session: &mut Locked,
    net: &Net,
    (earlier, record, n, added): (Run, &Run, u32, Added),
    now: &Changes,
) -> Result<ChoiceMade, Error> {
    let then = now.clone().with(added.net_lines());
    let changes = then.list.len() as u64;
    if added.own.list.is_empty() && then == *now {
        remove_uppers(fs, &part(&session.dir, b"held")?, &record.places, n)?;
        return Ok(ChoiceMade { step: None, changes });
    }
    let uid = rustix::process::geteuid().as_raw();
    let step = Step { uid, chosen: true, ..Step::of(record, session.header.head(), &added.own, size_of(&added.own)) };
    let facts = header_facts(session, &added.own, changes)?;
    let run = Run { places: record.places.clone(), ..earlier };
    session.add_step(fs, net, (step, &added), &run, facts)?;
    Ok(ChoiceMade { step: Some(n), changes })
}
