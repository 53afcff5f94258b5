//! Finishes what an undo has to leave because somebody has changed it, as a smaller operation (I8): a journal of it alone replaces the
//! whole one, what was there before goes to its home, and a generation is sealed in which only this is done.
//!
//! The operation holds all that it needs: the new directories above a path, which hold something and so stay anyway; all below a
//! directory that went, which undo leaves with it; and all names of a file that somebody has written to, as it is one file.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::find_objects::{AtPath, OffPath, StepObjects, is_one_file};
use crate::checkpoint::{Kept, NEW, Original, Writing, name_written};
use crate::engine::item::{Item, Turn};
use crate::engine::job::Verb;
use crate::engine::journal::{Head, Journal};
use crate::engine::plan::build::{kept_bytes, sizes_after, unfit};
use crate::engine::plan::rights::with_rights;
use crate::engine::reach::Reach;
use crate::engine::report::{LeftPath, without_repeats};
use crate::engine::step::{Act, DirectoryTime, Places, Spot, Step};
use crate::engine::work::copy::Firsts;
use crate::engine::work::displaced::{displaced_below, make_directory};
use crate::engine::work::perform::{perform, put_away};
use crate::engine::work::reserve;
use crate::engine::work::seal::{make_seal_last, rename_header, write_facts};
use crate::engine::work::settle::{When, settle, stat_of};
use crate::error::{At, Error, Kind, command, shell_word};
use crate::fs::{AbsPath, Fs};
use crate::remedy::Remedy;
use crate::session::{Header, Session, Side, Store, header};

/// The remedy for a path that was left, for messages. `is_in` tells which side its change is on.
pub fn how_to_go_on(is_in: bool, id: &str, path: &AbsPath) -> Remedy {
    let (verb, what) =
        if is_in { ("rollback", "puts back what was there before") } else { ("redo", "puts the change there again") };
    // Force does not move somebody's directory out of the way everywhere, nor what was put into one.
    let is_dir = path.as_path().symlink_metadata().is_ok_and(|found| found.is_dir());
    let first = if is_dir { "after you move away what is there, " } else { "" };
    let forced = command(format_args!("{verb} {id} {} --force", shell_word(path.as_bytes())));
    first + forced + " " + what + ", and keeps a copy of what it overwrites"
}

/// The rest of `stays` if no object has to stay: modes of directories that were opened for the work, and of new ones that are gone again.
/// None of it is the session's, so no verb goes on with it.
pub fn modes(journal: &Journal, stays: &[(Turn, LeftPath)]) -> Vec<LeftPath> {
    let is_mode = |turn: &Turn| match *turn {
        Turn::Open(_) | Turn::Close(_) => true,
        Turn::Finish(i) => journal.items[i as usize].act != Act::SetMeta,
        Turn::Take(_) | Turn::Move(_) => false,
    };
    without_repeats(stays.iter().filter(|(turn, _)| is_mode(turn)).map(|(_, left)| left.clone()))
}

/// Makes the journal of what stays of an undone operation; `None` if nothing does. `seals`: a generation is to be sealed all the same.
pub fn journal_of_rest(
    fs: &Fs,
    session: &Session,
    reach: &mut Reach,
    journal: &Journal,
    left: &[(Turn, LeftPath)],
    seals: bool,
) -> Result<Option<Journal>, Error> {
    let mut told: BTreeMap<usize, String> = BTreeMap::new();
    for (turn, left) in left {
        let stays = match *turn {
            Turn::Take(i) | Turn::Move(i) => Some(i as usize),
            Turn::Finish(i) => Some(i as usize).filter(|i| journal.items[*i].act == Act::SetMeta),
            Turn::Open(_) | Turn::Close(_) => None,
        };
        stays.map(|i| told.entry(i).or_insert_with(|| left.why.clone()));
    }
    let mut lost = BTreeMap::new();
    add_names(reach, journal, &mut told, &mut lost)?;
    if told.is_empty() && lost.is_empty() && !seals {
        return Ok(None);
    }
    let mut items: Vec<Item> = told.keys().map(|i| journal.items[*i].clone()).collect();
    if journal.head.verb == Verb::Commit {
        keep_beside(fs, session, reach, journal, &mut items)?;
    }
    for item in &mut items {
        if !has_original(reach, journal, item)? {
            lose_original(item, journal.head.verb);
        }
    }
    let mut sides = session.sides_of_all()?;
    items.iter().for_each(|item| sides[item.index as usize] = item.side);
    lost.keys().for_each(|i| sides[journal.items[*i].index as usize] = Side::Lost);
    told.extend(lost);
    let named: Vec<LeftPath> = told.into_iter().map(|(i, why)| LeftPath { path: journal.items[i].path.clone(), why }).collect();
    let header = header_of(session, journal, &items, &sides, &named);
    let times = times(journal, &items);
    Ok(Some(Journal::new(Head { rest: Some(named), opened: Vec::new(), times, header, ..journal.head.clone() }, items)))
}

/// Keeps beside what force has found and what cannot be the `before` without the items that were undone.
fn keep_beside(fs: &Fs, session: &Session, reach: &mut Reach, journal: &Journal, items: &mut [Item]) -> Result<(), Error> {
    let whole = items.to_vec();
    unfit(session, items, journal.head.generation + 1)?;
    for (was, item) in whole.iter().zip(items).filter(|(was, item)| was.teaches() && !item.teaches()) {
        make_directory(fs, reach, journal)?;
        if let Some(home) = journal.frame().places(item).home {
            keep_copy(fs, reach, journal, was, &home)?;
        }
    }
    Ok(())
}

/// Adds the other names of a file that somebody has written to. A name that is not put yet is put, with the directories above it that
/// were undone. If something else has taken its place, what it held is lost.
fn add_names(
    reach: &mut Reach,
    journal: &Journal,
    told: &mut BTreeMap<usize, String>,
    lost: &mut BTreeMap<usize, String>,
) -> Result<(), Error> {
    let mut files = HashSet::new();
    for item in told.keys().map(|i| &journal.items[*i]).filter(|item| item.moves() && !item.becomes_directory()) {
        let Some(to) = &item.to else { continue };
        if StepObjects::find(reach, &item.path, (None, Some(to)), &Places::default())?.is_put() {
            files.insert(to.print.identity);
        }
    }
    for (i, item) in journal.items.iter().enumerate() {
        let is_one = item.moves() && item.to.as_ref().is_some_and(|to| files.contains(&to.print.identity));
        if !is_one || told.contains_key(&i) {
            continue;
        }
        let above = |other: &Item| other.moves() && other.becomes_directory() && item.path.is_under(&other.path);
        let directories: Vec<usize> = (0..i).filter(|k| !told.contains_key(k) && above(&journal.items[*k])).collect();
        let mut free = true;
        for k in directories.iter().chain([&i]) {
            free &= is_as_before(reach, &journal.items[*k], !directories.is_empty())?;
        }
        if free {
            let why = "it is a hard link to a file that was changed since, and goes with it";
            told.extend(directories.into_iter().chain([i]).map(|k| (k, why.to_owned())));
        } else {
            let why = "it is a hard link to a file that was changed since; its content is only there";
            lost.insert(i, why.to_owned());
        }
    }
    Ok(())
}

/// True if the path holds what it held before the operation. `comes`: its directory may be yet to come.
fn is_as_before(reach: &mut Reach, item: &Item, comes: bool) -> Result<bool, Error> {
    let nowhere = Places::default();
    let found = StepObjects::find(reach, &item.path, (item.from.as_ref(), None), &nowhere)?;
    Ok(match found.there {
        AtPath::NoDirectory => comes && item.from.is_none(),
        AtPath::Nothing => item.from.is_none(),
        AtPath::From => true,
        AtPath::To | AtPath::Changed(_) | AtPath::Other => false,
    })
}

/// True if what was there before can be restored: it lies where it came out, or at home, or is still at its path.
fn has_original(reach: &mut Reach, journal: &Journal, item: &Item) -> Result<bool, Error> {
    let places = journal.frame().places(item);
    if !item.moves() || places.home.is_none() {
        return Ok(true);
    }
    let found = look_for(reach, item, &places)?;
    let is_home = found.home.as_ref().is_some_and(|home| home.what != OffPath::Nothing);
    Ok(is_home || !places.copied && found.is_out() || found.there == AtPath::From)
}

fn look_for<'s>(reach: &mut Reach, item: &'s Item, places: &'s Places) -> Result<StepObjects<'s>, Error> {
    Ok(StepObjects::find(reach, &item.path, (item.from.as_ref(), item.to.as_ref()), places)?)
}

fn lose_original(item: &mut Item, verb: Verb) {
    if verb.inward() {
        item.kept = Kept::Uncovered { why: "another process removed it before an interrupted operation was undone".into() };
    } else {
        item.side = Side::Lost;
    }
}

fn header_of(session: &Session, journal: &Journal, items: &[Item], sides: &[Side], named: &[LeftPath]) -> Header {
    let verb = journal.head.verb;
    let mut header = session.header.sealing(sides);
    header.mounts.clone_from(&journal.head.header.mounts);
    header.acted.clone_from(&journal.head.header.acted);
    header.sizes = sizes_after(header.sizes, verb, items, kept_bytes(items, verb), 0);
    header.left.retain(|left| journal.items.binary_search_by(|item| item.path.cmp(&left.path)).is_err());
    header.left.extend(named.iter().map(|left| header::NotUndone { path: left.path.clone(), is_in: verb.inward() }));
    header.left.sort_by(|one, other| one.path.cmp(&other.path));
    header
}

/// The times to give to directories in which something stays: those from before.
fn times(journal: &Journal, items: &[Item]) -> Vec<DirectoryTime> {
    let directories: BTreeSet<AbsPath> = items.iter().filter_map(|item| item.path.parent()).collect();
    let its = journal.head.times.iter().filter(|time| directories.contains(&time.path));
    its.map(|time| DirectoryTime { new: time.new.map(|_| time.old), ..time.clone() }).collect()
}

/// Finishes what stays, from wherever that was cut off, and seals it. Returns notes.
pub fn finish(fs: &Fs, store: &Store, session: &Session, reach: &mut Reach, journal: &Journal) -> Result<Vec<String>, Error> {
    let mut notes = put_what_is_not_put(fs, reach, journal)?;
    for item in &journal.items {
        bring_home(fs, reach, journal, item)?;
    }
    write_facts(fs, session, reach, journal, None)?;
    rename_header(fs, session)?; // I5
    notes.extend(make_seal_last(fs, store, session, journal)?);
    let dir = session.dir.open_below(b"")?;
    let sealed = Session::new(dir, journal.head.header.clone());
    notes.extend(settle(fs, store, &sealed, reach, journal, When::Recovering)?);
    if let Err(error) = reserve::keep_again(fs, &sealed) {
        notes.push(format!("could not reserve room for the rollback of what is still on the tree: {error}"));
    }
    Ok(notes)
}

/// Puts names that go with another one, and metadata of new directories, that undo has taken back. If somebody has taken the place,
/// theirs stays. Returns notes: times that did not take.
fn put_what_is_not_put(fs: &Fs, reach: &mut Reach, journal: &Journal) -> Result<Vec<String>, Error> {
    let (mut untimed, mut firsts) = (Vec::new(), Firsts::default());
    for turn in &journal.turns {
        let step = journal.step(*turn);
        let is_due = match *turn {
            Turn::Take(i) | Turn::Move(i) => is_due(reach, &step, &journal.frame().places(&journal.items[i as usize]))?,
            Turn::Finish(i) => journal.items[i as usize].moves(),
            Turn::Open(_) | Turn::Close(_) => false,
        };
        if is_due {
            match perform(fs, reach, (&step, false), &mut firsts, &mut untimed) {
                Err(error) if error.kind() != Kind::Conflict => return Err(error),
                _ => {}
            }
        }
    }
    Ok(untimed.into_iter().map(|(path, why)| format!("{path}: {why}")).collect())
}

/// True if what is to be put lies ready, and the path is as it was before the step.
fn is_due(reach: &mut Reach, step: &Step<'_>, places: &Places) -> Result<bool, Error> {
    let found = StepObjects::find(reach, step.path, (step.from.as_deref(), step.to.as_deref()), places)?;
    let is_ready = step.in_place || found.ready.is_some_and(|ready| ready.what == OffPath::Ours);
    let before = if step.from.is_some() { AtPath::From } else { AtPath::Nothing };
    Ok(step.to.is_some() && is_ready && found.there == before)
}

/// Moves what was there before to its home, if it is not there.
fn bring_home(fs: &Fs, reach: &mut Reach, journal: &Journal, item: &Item) -> Result<(), Error> {
    let places = journal.frame().places(item);
    if !item.moves() || places.put_away().is_none() {
        return Ok(());
    }
    let found = look_for(reach, item, &places)?;
    let (true, Some(out), Some(home)) = (found.is_out(), &found.out, &found.home) else { return Ok(()) };
    let Some(out_at) = &out.named else { return Ok(()) };
    let nowhere = || std::io::Error::from(std::io::ErrorKind::NotFound);
    let home_at = home.named.as_ref().ok_or_else(nowhere).at("open the directory of", home.spot)?;
    if is_one_file(out_at, home_at)? {
        // F13: after a power cut a file system may show it under both names.
        return Ok(with_rights(fs, [out_at, out_at], || fs.unlink(out_at.at()))?);
    }
    if home.what == OffPath::Ours { Ok(()) } else { put_away(fs, out_at, home.spot, home_at) }
}

/// Takes out of `stays` what is nowhere any more, with the reasons; it counts as undone. It was on a file system that was given up; went
/// with the directory beside its target; was undone by an undo cut off after that, and changed since; or was away, before it was put,
/// where something else has come.
pub fn vanished_items(
    reach: &mut Reach,
    journal: &Journal,
    stays: &mut Vec<(Turn, LeftPath)>,
) -> Result<BTreeMap<usize, String>, Error> {
    let lost = |(_, item): &(usize, &Item)| reach.roots.is_lost(&item.path);
    let lost = journal.items.iter().enumerate().filter(lost).map(|(i, _)| i);
    let mut gone: BTreeMap<usize, String> = lost.map(|i| (i, "it was given up with its file system".to_owned())).collect();
    let mut stay = Vec::new();
    for (turn, left) in std::mem::take(stays) {
        match turn {
            Turn::Take(i) | Turn::Move(i) if is_gone(reach, journal, &journal.items[i as usize])? => {
                gone.insert(i as usize, left.why);
            }
            _ => stay.push((turn, left)),
        }
    }
    *stays = stay;
    Ok(gone)
}

/// True if neither object is where the operation had put it, and the store has the only copy.
fn is_gone(reach: &mut Reach, journal: &Journal, item: &Item) -> Result<bool, Error> {
    let places = journal.frame().places(item);
    let found = look_for(reach, item, &places)?;
    // Not put yet, or back: the store has both.
    if places.copied && found.ready.as_ref().is_some_and(|ready| ready.what == OffPath::Ours) {
        return Ok(true);
    }
    if found.may_be_changed(item.to.as_ref()) {
        return Ok(false);
    }
    // What was removed in place is only at home, too.
    let is_moved_home = item.made_again() || places.put_away().is_some();
    let is_home = is_moved_home && found.home.as_ref().is_some_and(|home| home.what != OffPath::Nothing);
    Ok(!is_home && !found.is_put() && !found.is_out() && !found.has_both_names()? && is_held(reach, item, &places)?)
}

/// True if the store has what was to be put. What Prepare made is made again.
fn is_held(reach: &mut Reach, item: &Item, places: &Places) -> Result<bool, Error> {
    let Some(to) = places.spare.as_ref().or(places.to.as_ref()) else { return Ok(true) };
    Ok(item.fresh || stat_of(reach, to)?.is_some())
}

/// Keeps the session's copy of what is gone under `displaced/`, durably, as it is the only one. Lists those, and what lay on a file
/// system that was given up.
pub fn give_up(fs: &Fs, reach: &mut Reach, journal: &Journal, gone: &BTreeMap<usize, String>) -> Result<Vec<LeftPath>, Error> {
    let mut given_up = Vec::new();
    let mut kept = Vec::new();
    for (i, why) in gone {
        let item = &journal.items[*i];
        let kept_at = Spot::Session([&*displaced_below(journal), b"/", item.n.to_string().as_bytes()].concat());
        let mut why = why.clone();
        if keep_copy(fs, reach, journal, item, &kept_at)? {
            why.push_str(&format!("; a copy of what was there before: {kept_at}"));
            kept.push(item);
        } else if !reach.roots.is_lost(&item.path) {
            continue;
        }
        given_up.push(LeftPath { path: item.path.clone(), why });
    }
    if !kept.is_empty() {
        name_kept(fs, reach, journal, &kept)?;
    }
    Ok(given_up)
}

/// Moves the copy of what was there before to `kept_at`. True if it is there, also from an earlier try.
fn keep_copy(fs: &Fs, reach: &mut Reach, journal: &Journal, item: &Item, kept_at: &Spot) -> Result<bool, Error> {
    let places = journal.frame().places(item);
    if let Some(home) = places.home.as_ref().filter(|home| places.copied && *home != kept_at)
        && stat_of(reach, home)?.is_some()
    {
        make_directory(fs, reach, journal)?;
        let from = reach.spot(home)?;
        let to = reach.spot(kept_at)?;
        with_rights(fs, [&from, &to], || fs.place(from.at(), to.at()))?;
    }
    Ok(stat_of(reach, kept_at)?.is_some())
}

fn name_kept(fs: &Fs, reach: &mut Reach, journal: &Journal, kept: &[&Item]) -> Result<(), Error> {
    let below = displaced_below(journal);
    let directory = reach.held(&below)?;
    let mut rows = Writing::begin(fs, &directory)?;
    for item in kept {
        let state = item.from.as_ref().map(|from| from.state.clone());
        let kept = Kept::Displaced { generation: journal.head.generation + 1 };
        rows.original(&Original { n: item.n, path: item.path.clone(), state, kept, put: None })?;
    }
    let file = rows.end(std::iter::empty())?;
    fs.sync(&file, directory.at(NEW))?; // D1
    name_written(fs, &directory)?;
    // D2, D4: nothing else leads to what is kept.
    Ok(fs.sync_dir(&directory)?)
}
