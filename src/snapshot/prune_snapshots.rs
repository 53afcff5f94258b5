//! Prune: removes names first, durably; then the content that no manifest file names any more (N4).
//!
//! A pack that is needed in part stays, and the blocks of the rest are freed by punching holes. So offsets stay, no manifest is rewritten,
//! and a killed prune at worst leaves something to the next one. Content that shares a block with needed content is freed together with
//! that.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io;

use super::content::{BLOBS, HALF_MADE, pack_name};
use super::error::{damaged, refused};
use super::manifest;
use super::manifest::{At, Reading};
use super::series::{Locked, Series, Summary};
use crate::error::{At as _, Error, Kind, command};
use crate::fs::{Dir, Entry, Fs, Time, next_extent};
use crate::tree::Hash;

/// The snapshots to remove; the newest never is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// Those that meet each of the given conditions.
    All(Conditions),
    /// Those that one of the limits asks for.
    Any(Conditions),
    /// Those that one of the limits in the settings asks for: one with a label, or of an agent's turn, stays, and does not count. Agents'
    /// and persons' snapshots are counted apart, and an agent lets go agents' alone.
    Settings(Conditions, Maker),
    Named(Vec<u64>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maker {
    Person,
    Agent,
}

/// Conditions for a snapshot to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Conditions {
    /// All but so many of the newest.
    pub keep: Option<usize>,
    /// Those that were taken before this time.
    pub before: Option<Time>,
    /// The oldest, until the rest take no more bytes than this.
    pub max_size: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pruned {
    pub gone: Vec<u64>,
    /// The bytes on disk that became free, or would.
    pub freed: u64,
    /// The reason why content stays that may not be needed.
    pub kept: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Piece {
    Packed { pack: u64, offset: u64 },
    Blob(Hash),
}

/// The needed content: its bytes, and the newest snapshot that needs it.
type Needed = HashMap<Piece, (u64, u64)>;

pub fn choose(series: &Series, which: &Which) -> Result<Vec<u64>, Error> {
    let numbers = series.numbers()?;
    let Some((newest, old)) = numbers.split_last() else { return Ok(Vec::new()) };
    let (conditions, all) = match which {
        Which::All(conditions) => (conditions, true),
        Which::Any(conditions) => (conditions, false),
        Which::Settings(limits, of) => return Ok(beyond(series, &numbers, limits, *of)?.into_iter().collect()),
        Which::Named(named) => {
            if let Some(n) = named.iter().find(|n| !numbers.contains(n)) {
                series.find(&n.to_string())?;
            }
            if named.contains(newest) {
                return Err(refused(&series.directory, format!("snapshot {newest} is the newest, which stays"))
                    .with_remedy(command("snapshot create") + " takes another one; then it can go"));
            }
            return Ok(named.iter().copied().collect::<BTreeSet<_>>().into_iter().collect());
        }
    };
    let mut sets: Vec<BTreeSet<u64>> = Vec::new();
    if let Some(keep) = conditions.keep {
        sets.push(old.iter().copied().take(numbers.len().saturating_sub(keep.max(1))).collect());
    }
    if let Some(before) = conditions.before {
        let is_old = |n: &u64| series.summary(*n).is_ok_and(|summary| summary.head.time < before);
        sets.push(old.iter().copied().filter(is_old).collect());
    }
    if let Some(max_size) = conditions.max_size {
        sets.push(if bytes_used(&series.dir)? <= max_size { BTreeSet::new() } else { first_over_size(series, old, max_size)? });
    }
    let mut sets = sets.into_iter();
    let first = sets.next().unwrap_or_default();
    let gone = sets.fold(first, |a, b| if all { &a & &b } else { &a | &b });
    Ok(gone.into_iter().collect())
}

/// The part of `snapshot.keep` by which more may lie there: so that not every snapshot waits for the end of an older one.
const SPARE: usize = 10;

/// The snapshots that the settings let go. An agent's push out those of agents alone, and a person's count for themselves: the least of all
/// that somebody took is never worth less than what an agent did in a loop. One with a label, and one of an agent's turn, which have a limit
/// of their own, stay. An unreadable one is neither.
fn beyond(series: &Series, numbers: &[u64], limits: &Conditions, of: Maker) -> Result<BTreeSet<u64>, Error> {
    let is_over = |count: usize| limits.keep.is_some_and(|keep| count > keep.max(1) + keep / SPARE);
    let max_size = limits.max_size.filter(|max_size| bytes_used(&series.dir).is_ok_and(|used| used > *max_size));
    if max_size.is_none() && !is_over(numbers.len()) {
        return Ok(BTreeSet::new());
    }
    let (mut agents, mut persons) = (Vec::new(), Vec::new());
    for n in numbers {
        match series.summary(*n) {
            Ok(Summary { head, .. }) if head.label.is_some() || head.is_of_turn() => {}
            Ok(Summary { head, .. }) if head.is_of_agent() => agents.push(*n),
            _ => persons.push(*n),
        }
    }
    let makers = if of == Maker::Agent { vec![agents] } else { vec![agents, persons] };
    let newest = numbers.last().copied();
    let old = |made: &[u64]| made.iter().copied().filter(|n| Some(*n) != newest).collect::<Vec<u64>>();
    let mut gone = BTreeSet::new();
    if let Some(keep) = limits.keep {
        for made in makers.iter().filter(|made| is_over(made.len())) {
            gone.extend(old(&made[..made.len().saturating_sub(keep.max(1))]));
        }
    }
    if let Some(max_size) = max_size {
        gone.extend(first_over_size(series, &old(&makers.concat()), max_size)?);
    }
    Ok(gone)
}

/// The first of these snapshots, so many that the rest need no more than `max_size`; all, if that is not enough.
fn first_over_size(series: &Series, old: &[u64], max_size: u64) -> Result<BTreeSet<u64>, Error> {
    let first = |count: usize| old[..count].iter().copied().collect::<BTreeSet<u64>>();
    let bytes_without = |gone: &BTreeSet<u64>| {
        let mut bytes: u64 = needed(series, gone)?.values().map(|(bytes, _)| bytes).sum();
        for n in series.numbers()?.iter().filter(|n| !gone.contains(n)) {
            bytes += series.dir.at(&manifest::name(*n)).stat()?.map_or(0, |stat| stat.size);
        }
        Ok::<_, Error>(bytes)
    };
    let (mut enough, mut too_few) = (old.len(), 0);
    while too_few < enough {
        let middle = usize::midpoint(too_few, enough);
        match bytes_without(&first(middle)) {
            Ok(bytes) if bytes <= max_size => enough = middle,
            Ok(_) => too_few = middle + 1,
            // With one unreadable, no sum can be trusted.
            Err(_) => return Ok(BTreeSet::new()),
        }
    }
    Ok(first(enough))
}

/// The bytes on disk of a series, by its directory.
pub fn bytes_used(series: &Dir) -> Result<u64, Error> {
    let mut bytes = 0;
    for path in [&b""[..], BLOBS] {
        let dir = match series.open_below(path) {
            // The series was half made, or is damaged.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            dir => dir?,
        };
        for name in dir.names()? {
            bytes += dir.at(&name).stat()?.map_or(0, |stat| stat.blocks * 512);
        }
    }
    Ok(bytes)
}

/// Removes snapshots, and the content that only they needed.
pub fn prune(fs: &Fs, series: &Series, _lock: &Locked, gone: &[u64]) -> Result<Pruned, Error> {
    let plan = Plan::of(series, gone)?;
    plan.take_names(fs, series)?;
    let stayed = plan.sweep(fs, series)?;
    let pruned = plan.pruned(gone);
    Ok(Pruned { freed: pruned.freed.saturating_sub(stayed), ..pruned })
}

/// Removes content that no snapshot names, left by one that was not finished.
pub(super) fn sweep(fs: &Fs, series: &Series) -> Result<(), Error> {
    let plan = Plan::of(series, &[])?;
    plan.sweep(fs, series).map(drop)
}

/// The result that a prune would have; changes nothing.
pub fn preview(series: &Series, gone: &[u64]) -> Result<Pruned, Error> {
    Ok(Plan::of(series, gone)?.pruned(gone))
}

/// The acts of a prune, all looked up before the first: so a dry run says what the prune says.
struct Plan {
    names: Vec<Name>,
    dead: Vec<Dead>,
    kept: Option<String>,
}

/// The name of a manifest that is removed.
enum Name {
    Removed {
        name: Vec<u8>,
        bytes: u64,
    },
    /// Renamed to a base, since others are stored as differences from it.
    Based(u64),
}

/// Content that no manifest names any more.
enum Dead {
    Pack { name: Vec<u8>, bytes: u64 },
    Part { name: Vec<u8>, holes: Vec<Hole> },
    Blob { name: Vec<u8>, bytes: u64 },
}

/// A part of a pack, and the bytes of it that take room.
struct Hole {
    from: u64,
    length: u64,
    bytes: u64,
}

impl Plan {
    fn of(series: &Series, gone: &[u64]) -> Result<Self, Error> {
        let without: BTreeSet<u64> = gone.iter().copied().collect();
        let (staying, doubt) = staying(series, &without)?;
        let is_base = |n: &u64| doubt.is_some() || staying.iter().any(|summary| summary.head.base == Some(*n));
        let mut names = Vec::new();
        // The newest first: if a kill leaves one there, it still has its base.
        for n in without.iter().rev() {
            names.push(if is_base(n) { Name::Based(*n) } else { Name::removed(series, manifest::name(*n))? });
        }
        for n in series.bases()?.iter().filter(|n| !is_base(n)) {
            names.push(Name::removed(series, manifest::base_name(*n))?);
        }
        let (dead, kept) = match doubt {
            Some(why) => (Vec::new(), Some(why)),
            None => match needed(series, &without) {
                Ok(needed) => (dead(series, &needed)?, None),
                Err(error) if error.kind() == Kind::Damaged => (Vec::new(), Some(error.to_string())),
                Err(error) => return Err(error),
            },
        };
        Ok(Self { names, dead, kept })
    }

    fn pruned(&self, gone: &[u64]) -> Pruned {
        let names = self.names.iter().map(|name| match name {
            Name::Removed { bytes, .. } => *bytes,
            Name::Based(_) => 0,
        });
        let dead = self.dead.iter().map(|dead| match dead {
            Dead::Pack { bytes, .. } | Dead::Blob { bytes, .. } => *bytes,
            Dead::Part { holes, .. } => holes.iter().map(|hole| hole.bytes).sum(),
        });
        Pruned { gone: gone.to_vec(), freed: names.chain(dead).sum(), kept: self.kept.clone() }
    }

    /// Removes the names, durably (I12, N4, D2).
    fn take_names(&self, fs: &Fs, series: &Series) -> Result<(), Error> {
        let dir = &series.dir;
        for name in &self.names {
            match name {
                Name::Removed { name, .. } => fs.unlink_if_there(dir.at(name))?,
                Name::Based(n) => {
                    let (name, base) = (manifest::name(*n), manifest::base_name(*n));
                    fs.rename_over(dir.at(&name), dir.at(&base))?;
                }
            }
        }
        Ok(fs.sync_dir(dir)?)
    }

    /// Removes content. Returns the bytes that stayed: not every file system can free a part of a file.
    fn sweep(&self, fs: &Fs, series: &Series) -> Result<u64, Error> {
        let blobs = blobs(series)?;
        let mut stayed = 0;
        for dead in &self.dead {
            match dead {
                Dead::Pack { name, .. } => fs.unlink_if_there(series.dir.at(name))?,
                Dead::Blob { name, .. } => fs.unlink_if_there(blobs.at(name))?,
                Dead::Part { name, holes } => stayed += punch(fs, series, name, holes)?,
            }
        }
        Ok(stayed)
    }
}

impl Name {
    fn removed(series: &Series, name: Vec<u8>) -> Result<Self, Error> {
        let bytes = on_disk(series.dir.at(&name))?;
        Ok(Name::Removed { name, bytes })
    }
}

fn on_disk(at: Entry<'_>) -> Result<u64, Error> {
    Ok(at.stat()?.map_or(0, |stat| stat.blocks * 512))
}

fn blobs(series: &Series) -> Result<Dir, Error> {
    let at = series.dir.at(BLOBS);
    Ok(at.open_dir()?)
}

/// The summaries of those that stay, and the reason if one of them cannot be read.
fn staying(series: &Series, gone: &BTreeSet<u64>) -> Result<(Vec<Summary>, Option<String>), Error> {
    let (mut found, mut doubt) = (Vec::new(), None);
    for n in series.numbers()?.into_iter().filter(|n| !gone.contains(n)) {
        match series.summary(n) {
            Ok(summary) => found.push(summary),
            Err(error) if error.kind() == Kind::Damaged => doubt = Some(error.to_string()),
            Err(error) => return Err(error),
        }
    }
    Ok((found, doubt))
}

/// The content that the manifest files name, without those of `without`. More than the snapshots need, where a base has something that none
/// of them has any more.
fn needed(series: &Series, without: &BTreeSet<u64>) -> Result<Needed, Error> {
    let (staying, doubt) = staying(series, without)?;
    if let Some(why) = doubt {
        return Err(damaged(series.dir.path().display(), why));
    }
    let mut files: BTreeMap<u64, u64> = BTreeMap::new();
    for summary in &staying {
        for file in [Some(summary.head.n), summary.head.base].into_iter().flatten() {
            let newest = files.entry(file).or_default();
            *newest = (*newest).max(summary.head.n);
        }
    }
    let mut found = Needed::new();
    for (file, newest) in files {
        let name = manifest::name(file);
        let is_there = series.dir.at(&name).stat()?.is_some();
        let mut reading =
            if is_there { Reading::open(series.dir.at(&name), file)? } else { manifest::open_base(&series.dir, file)? };
        while let Some((_, entry)) = reading.next_line()? {
            let Some(entry) = entry else { continue };
            let piece = match (entry.at, entry.hash()) {
                (Some(At::Pack { pack, offset }), _) => Piece::Packed { pack, offset },
                (Some(At::Blob), Some(hash)) => Piece::Blob(hash),
                _ => continue,
            };
            let known = found.entry(piece).or_insert((entry.size(), newest));
            known.1 = known.1.max(newest);
        }
    }
    Ok(found)
}

/// The least size, in bytes, that makes a hole worth a call.
const BLOCK: u64 = 4096;

/// The content that is not needed, found from the files that exist.
fn dead(series: &Series, needed: &Needed) -> Result<Vec<Dead>, Error> {
    let dir = &series.dir;
    let mut packs: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
    for (piece, (bytes, _)) in needed {
        if let Piece::Packed { pack, offset } = piece {
            packs.entry(*pack).or_default().push((*offset, *bytes));
        }
    }
    let mut found = Vec::new();
    for n in series.with_ending(".pack")? {
        let name = pack_name(n);
        let Some(live) = packs.get_mut(&n) else {
            let bytes = on_disk(dir.at(&name))?;
            found.push(Dead::Pack { name, bytes });
            continue;
        };
        let holes = holes(series, &name, live)?;
        if !holes.is_empty() {
            found.push(Dead::Part { name, holes });
        }
    }
    let blobs = blobs(series)?;
    for name in blobs.names()? {
        let hash = std::str::from_utf8(&name).ok().and_then(Hash::parse);
        let is_ours = hash.is_some() || name == HALF_MADE;
        if is_ours && !hash.is_some_and(|hash| needed.contains_key(&Piece::Blob(hash))) {
            let bytes = on_disk(blobs.at(&name))?;
            found.push(Dead::Blob { name, bytes });
        }
    }
    Ok(found)
}

/// The blocks of a pack between needed parts, without those that are holes already.
fn holes(series: &Series, name: &[u8], live: &mut [(u64, u64)]) -> Result<Vec<Hole>, Error> {
    let at = series.dir.at(name);
    let Some(stat) = at.stat()? else { return Ok(Vec::new()) };
    live.sort_unstable();
    let mut between = Vec::new();
    let mut end = 0_u64;
    for (offset, bytes) in live.iter().copied().chain([(stat.size, 0)]) {
        // Whole blocks only: the others hold something that is needed.
        let (from, to) = (end.next_multiple_of(BLOCK), offset / BLOCK * BLOCK);
        if from < to {
            between.push((from, to));
        }
        end = end.max(offset.saturating_add(bytes));
    }
    if between.is_empty() {
        return Ok(Vec::new());
    }
    let file = at.open_file()?;
    let mut holes = Vec::new();
    for (from, to) in between {
        let bytes = room_of(&file, from, to).at("look for holes in", at)?;
        if bytes > 0 {
            holes.push(Hole { from, length: to - from, bytes });
        }
    }
    Ok(holes)
}

/// The bytes of a part of a file that take room.
fn room_of(file: &File, from: u64, to: u64) -> io::Result<u64> {
    let (mut at, mut bytes) = (from, 0);
    while let Some((data, end)) = next_extent(file, at, to)? {
        // The next data may begin behind the part.
        bytes += end.min(to).saturating_sub(data);
        at = end;
    }
    Ok(bytes)
}

/// Frees parts of a pack; returns the bytes that stay.
fn punch(fs: &Fs, series: &Series, name: &[u8], holes: &[Hole]) -> Result<u64, Error> {
    let at = series.dir.at(name);
    let file = fs.append(at)?;
    for (i, hole) in holes.iter().enumerate() {
        if !fs.punch(&file, hole.from, hole.length, at)? {
            return Ok(holes[i..].iter().map(|hole| hole.bytes).sum());
        }
    }
    Ok(0)
}
