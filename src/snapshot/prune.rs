//! Prune: names go first, durably; then the content that no manifest file names any more (N4).
//!
//! A pack of which a part is needed stays, and the blocks of the rest are given back by punching holes: offsets stay what they are,
//! no manifest is rewritten, and a prune that is killed has at worst left something to the next one. What shares a block with
//! content that is needed is freed with that.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::Error;
use super::content::{BLOBS, HALF_MADE, pack_name};
use super::manifest::{self, At, Reading};
use super::series::{Locked, Series, Summary};
use crate::error::At as _;
use crate::fs::Fs;
use crate::fs::dir::Time;
use crate::tree::digest::Digest;

/// Which snapshots are to go; the newest never does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// All that hold for each of the conditions that are given.
    All(Conditions),
    /// What one of the limits asks for.
    Any(Conditions),
    /// These.
    Named(Vec<u64>),
}

/// Conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Conditions {
    /// All but so many of the newest.
    pub keep: Option<usize>,
    /// What was taken before.
    pub before: Option<Time>,
    /// The oldest, until the rest take no more bytes.
    pub max_size: Option<u64>,
}

/// What went.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pruned {
    /// The numbers.
    pub gone: Vec<u64>,
    /// Bytes on disk that became free, or would.
    pub freed: u64,
    /// Why content stays that may not be needed.
    pub kept: Option<String>,
}

/// One piece of content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Piece {
    Packed { pack: u64, offset: u64 },
    Blob(Digest),
}

/// What is needed: its bytes, and the newest snapshot that needs it.
type Needed = HashMap<Piece, (u64, u64)>;

/// Chooses what is to go.
pub fn choose(series: &Series, which: &Which) -> Result<Vec<u64>, Error> {
    let numbers = series.numbers()?;
    let Some((newest, old)) = numbers.split_last() else { return Ok(Vec::new()) };
    let (conditions, all) = match which {
        Which::All(conditions) => (conditions, true),
        Which::Any(conditions) => (conditions, false),
        Which::Named(named) => {
            if let Some(n) = named.iter().find(|n| !numbers.contains(n)) {
                series.find(&n.to_string())?;
            }
            if named.contains(newest) {
                return Err(Error::Refused {
                    path: series.folder.to_string(),
                    why: format!("snapshot {newest} is the newest, which stays"),
                    remedy: Some("recant snapshot create takes another one; then it can go".into()),
                });
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
        sets.push(if used(series)? <= max_size { BTreeSet::new() } else { over(series, old, max_size)? });
    }
    let mut sets = sets.into_iter();
    let first = sets.next().unwrap_or_default();
    let gone = sets.fold(first, |a, b| if all { &a & &b } else { &a | &b });
    Ok(gone.into_iter().collect())
}

/// The oldest, until what the rest need is no more than `max_size`.
fn over(series: &Series, old: &[u64], max_size: u64) -> Result<BTreeSet<u64>, Error> {
    // One that cannot be read stands against any sum.
    let Ok(needed) = needed(series, &BTreeSet::new()) else { return Ok(BTreeSet::new()) };
    let mut by_newest: BTreeMap<u64, u64> = BTreeMap::new();
    for (bytes, newest) in needed.values() {
        *by_newest.entry(*newest).or_default() += bytes;
    }
    for n in series.numbers()? {
        let name = manifest::name(n);
        let size = series.dir.at(&name).stat().at("look at", series.dir.at(&name))?.map_or(0, |stat| stat.size);
        *by_newest.entry(n).or_default() += size;
    }
    let mut gone = BTreeSet::new();
    let mut rest: u64 = by_newest.values().sum();
    for n in old {
        if rest <= max_size {
            break;
        }
        gone.insert(*n);
        rest = by_newest.range(n + 1..).map(|(_, bytes)| bytes).sum();
    }
    Ok(gone)
}

/// Bytes on disk of a series.
pub fn used(series: &Series) -> Result<u64, Error> {
    let mut bytes = 0;
    for dir in [series.dir.open_below(b""), series.dir.open_below(BLOBS)] {
        let dir = dir.at("open", series.dir.path().display())?;
        for name in dir.names().at("list", dir.path().display())? {
            bytes += dir.at(&name).stat().at("look at", dir.at(&name))?.map_or(0, |stat| stat.blocks * 512);
        }
    }
    Ok(bytes)
}

/// Removes snapshots, and what only they needed.
pub fn prune(fs: &Fs, series: &Series, _lock: &Locked, gone: &[u64]) -> Result<Pruned, Error> {
    let before = used(series)?;
    let doubt = take_names(fs, series, gone)?;
    let kept = match doubt {
        Some(why) => Some(why),
        None => match needed(series, &BTreeSet::new()) {
            Ok(needed) => {
                sweep(fs, series, &needed)?;
                None
            }
            Err(error @ Error::Damaged { .. }) => Some(error.to_string()),
            Err(error) => return Err(error),
        },
    };
    Ok(Pruned { gone: gone.to_vec(), freed: before.saturating_sub(used(series)?), kept })
}

/// What pruning would free, nothing done.
pub fn would(series: &Series, gone: &[u64]) -> Result<Pruned, Error> {
    let without: BTreeSet<u64> = gone.iter().copied().collect();
    let sum = |needed: Needed| needed.values().map(|(bytes, _)| bytes).sum::<u64>();
    let (all, rest) = match (needed(series, &BTreeSet::new()), needed(series, &without)) {
        (Ok(all), Ok(rest)) => (sum(all), sum(rest)),
        (Err(error @ Error::Damaged { .. }), _) | (_, Err(error @ Error::Damaged { .. })) => {
            return Ok(Pruned { gone: gone.to_vec(), freed: 0, kept: Some(error.to_string()) });
        }
        (Err(error), _) | (_, Err(error)) => return Err(error),
    };
    Ok(Pruned { gone: gone.to_vec(), freed: all - rest, kept: None })
}

/// The summaries of those that are not to go, and why one of them cannot be read.
fn staying(series: &Series, gone: &BTreeSet<u64>) -> Result<(Vec<Summary>, Option<String>), Error> {
    let (mut found, mut doubt) = (Vec::new(), None);
    for n in series.numbers()?.into_iter().filter(|n| !gone.contains(n)) {
        match series.summary(n) {
            Ok(summary) => found.push(summary),
            Err(error @ Error::Damaged { .. }) => doubt = Some(error.to_string()),
            Err(error) => return Err(error),
        }
    }
    Ok((found, doubt))
}

/// The names go, and stay away (I12). A whole one that others are told from loses its name alone. Gives why nothing may be
/// swept, if something stands against it.
fn take_names(fs: &Fs, series: &Series, gone: &[u64]) -> Result<Option<String>, Error> {
    let (staying, doubt) = staying(series, &gone.iter().copied().collect())?;
    let is_base = |n: &u64| doubt.is_some() || staying.iter().any(|summary| summary.head.base == Some(*n));
    let dir = &series.dir;
    for n in gone {
        let (name, base) = (manifest::name(*n), manifest::base_name(*n));
        if is_base(n) {
            fs.rename_over(dir.at(&name), dir.at(&base)).at("rename", dir.at(&name))?;
        } else {
            fs.unlink_if_there(dir.at(&name)).at("remove", dir.at(&name))?;
        }
    }
    for n in series.bases()?.iter().filter(|n| !is_base(n)) {
        let name = manifest::base_name(*n);
        fs.unlink_if_there(dir.at(&name)).at("remove", dir.at(&name))?;
    }
    fs.sync_dir(dir).at("sync", dir.path().display())?;
    Ok(doubt)
}

/// What the manifest files name, those of `without` not counted: more than the snapshots need, where a base has what all of
/// them have otherwise.
fn needed(series: &Series, without: &BTreeSet<u64>) -> Result<Needed, Error> {
    let (staying, doubt) = staying(series, without)?;
    if let Some(why) = doubt {
        return Err(Error::Damaged { path: series.dir.path().display().to_string(), why });
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
        let is_there = series.dir.at(&name).stat().at("look at", series.dir.at(&name))?.is_some();
        let mut reading =
            if is_there { Reading::open(series.dir.at(&name), file)? } else { manifest::open_base(&series.dir, file)? };
        while let Some((_, entry)) = reading.next_line()? {
            let Some(entry) = entry else { continue };
            let piece = match (entry.at, entry.digest()) {
                (Some(At::Pack { pack, offset }), _) => Piece::Packed { pack, offset },
                (Some(At::Blob), Some(digest)) => Piece::Blob(digest),
                _ => continue,
            };
            let known = found.entry(piece).or_insert((entry.size(), newest));
            known.1 = known.1.max(newest);
        }
    }
    Ok(found)
}

/// Holes are worth a call from this many bytes on.
const BLOCK: u64 = 4096;

fn sweep(fs: &Fs, series: &Series, needed: &Needed) -> Result<(), Error> {
    let dir = &series.dir;
    let mut packs: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
    for (piece, (bytes, _)) in needed {
        if let Piece::Packed { pack, offset } = piece {
            packs.entry(*pack).or_default().push((*offset, *bytes));
        }
    }
    for n in series.with_ending(".pack")? {
        let name = pack_name(n);
        let at = dir.at(&name);
        match packs.get_mut(&n) {
            None => fs.unlink_if_there(at).at("remove", at)?,
            Some(live) => punch(fs, series, &name, live)?,
        }
    }
    let blobs = dir.at(BLOBS).open_dir().at("open", dir.at(BLOBS))?;
    for name in blobs.names().at("list", blobs.path().display())? {
        let digest = std::str::from_utf8(&name).ok().and_then(Digest::parse);
        let is_ours = digest.is_some() || name == HALF_MADE;
        if is_ours && !digest.is_some_and(|digest| needed.contains_key(&Piece::Blob(digest))) {
            fs.unlink_if_there(blobs.at(&name)).at("remove", blobs.at(&name))?;
        }
    }
    Ok(())
}

/// Gives back the blocks of a pack between what is needed.
fn punch(fs: &Fs, series: &Series, name: &[u8], live: &mut [(u64, u64)]) -> Result<(), Error> {
    let at = series.dir.at(name);
    let Some(stat) = at.stat().at("look at", at)? else { return Ok(()) };
    live.sort_unstable();
    let mut dead = Vec::new();
    let mut end = 0_u64;
    for (offset, bytes) in live.iter().copied().chain([(stat.size, 0)]) {
        // Whole blocks alone: the others hold something that is needed.
        let (from, to) = (end.next_multiple_of(BLOCK), offset / BLOCK * BLOCK);
        if from < to {
            dead.push((from, to - from));
        }
        end = end.max(offset.saturating_add(bytes));
    }
    if dead.is_empty() {
        return Ok(());
    }
    let file = fs.append(at).at("open", at)?;
    for (from, length) in dead {
        if !fs.punch(&file, from, length, series.dir.path()).at("free blocks of", at)? {
            break;
        }
    }
    Ok(())
}
