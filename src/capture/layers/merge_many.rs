//! Merges the newest sealed uppers of a place once there are many, so that a command runs over a few of them however many steps there are.
//! The sizes of the blocks grow from the newest to the oldest, by twice at least: each object is linked a few times in a session's life.

use super::merge_uppers::{LeavingPaths, LinkOrCopy, merge};
use super::opened_modes;
use super::sealed_uppers::{Block, Layer, Sealed};
use crate::capture::place::layout::Route;
use crate::error::Error;
use crate::fs::{Dir, Fs};
use crate::session::{Place, Session, StepList, is_block};

/// The most uppers of earlier steps that a command runs over.
pub const MOST: usize = 15;

/// The fewest that are merged at once.
const FEWEST: usize = 8;

/// Makes the blocks through which a command sees the tree where paths left the session.
///
/// # Errors
/// A system call failed.
pub fn leave_out(
    fs: &Fs,
    held: &Dir,
    (route, places): (Route, &[Place]),
    sealed: &mut Sealed,
    session: &Session,
) -> Result<(), Error> {
    let lacking: Vec<(&Place, Block)> = places.iter().filter_map(|place| Some((place, sealed.lacks(place)?))).collect();
    if lacking.is_empty() {
        return Ok(());
    }
    let list = session.steps()?;
    let uppers = held.at(b"upper").open_dir()?;
    for (place, block) in lacking {
        // No upper is between the newest in it and the step at which something left.
        let at = sealed.steps().find(|step| *step <= block.cut).unwrap_or(block.to);
        let net = list.net(session, at)?;
        let top =
            if place.file.is_some() { place.path.parent().unwrap_or_else(|| place.path.clone()) } else { place.path.clone() };
        let cut = LeavingPaths { top, gone: sealed.parted_paths(), net: &net };
        let layers = sealed.within(&uppers, place, block)?;
        make(fs, (route, sealed), &uppers, (layers, Some(&cut)), block)?;
        sealed.add(block);
    }
    Ok(())
}

/// Makes a block of these uppers.
fn make(
    fs: &Fs,
    (route, sealed): (Route, &Sealed),
    uppers: &Dir,
    layers: (Vec<(u32, Dir)>, Option<&LeavingPaths<'_>>),
    block: Block,
) -> Result<(), Error> {
    let name = block.name();
    let half_made = format!("{}.{}-{}.new", block.k, block.from, block.to).into_bytes();
    let at = uppers.at(&half_made);
    fs.remove_all(at)?;
    let notes = merge(fs, (route, sealed), layers, (at, &name), LinkOrCopy::Link)?;
    opened_modes::append(fs, uppers, &notes)?;
    Ok(fs.rename_over(at, uppers.at(&name))?)
}

/// Merges uppers of places that have too many. `steps` reads the records, which tell how much each step changed.
pub fn merge_many(
    fs: &Fs,
    held: &Dir,
    (route, places): (Route, &[Place]),
    sealed: &mut Sealed,
    steps: impl FnOnce() -> Result<StepList, Error>,
) -> Result<(), Error> {
    let many: Vec<&Place> = places.iter().filter(|place| sealed.layers(place).len() > MOST).collect();
    if many.is_empty() {
        return Ok(());
    }
    let steps = steps()?;
    let weigh = |layer: &Layer| -> u64 {
        let within = steps.steps.iter().filter(|step| (layer.from..=layer.to).contains(&step.n));
        within.map(|step| step.changes().max(1)).sum()
    };
    let uppers = held.at(b"upper").open_dir()?;
    for place in many {
        let layers = sealed.layers(place);
        let count = to_merge(&layers.iter().map(weigh).collect::<Vec<_>>());
        let (Some(newest), Some(oldest)) = (layers.first(), layers.get(count - 1)) else { continue };
        let block = Block { k: place.k, from: oldest.from, to: newest.to, cut: 0 };
        let opened = |layer: &Layer| Ok((layer.to, uppers.at(&Sealed::name(place, *layer)).open_dir()?));
        let merged = layers[..count].iter().map(opened).collect::<Result<_, Error>>()?;
        make(fs, (route, sealed), &uppers, (merged, None), block)?;
        sealed.add(block);
    }
    sweep(fs, &uppers, places, sealed)
}

/// Removes the blocks that nothing runs over any more.
fn sweep(fs: &Fs, uppers: &Dir, places: &[Place], sealed: &Sealed) -> Result<(), Error> {
    let used = |place: &Place| sealed.layers(place).into_iter().map(|layer| Sealed::name(place, layer)).collect::<Vec<_>>();
    let used: Vec<Vec<u8>> = places.iter().flat_map(used).collect();
    for name in uppers.names()?.iter().filter(|name| is_block(name) && !used.contains(name)) {
        fs.remove_all(uppers.at(name))?;
    }
    Ok(())
}

/// The number of the newest uppers to merge, of these weights, the newest first: some, and each older one that is not much heavier than all
/// before it.
fn to_merge(weights: &[u64]) -> usize {
    let mut count = FEWEST.min(weights.len());
    let mut sum: u64 = weights[..count].iter().sum();
    while let Some(next) = weights.get(count).filter(|next| **next <= 2 * sum) {
        (count, sum) = (count + 1, sum + next);
    }
    count
}

#[cfg(test)]
mod tests {
    use crate::capture::layers::merge_many::*;

    /// Adds steps of one change, and counts the links that merging makes.
    #[test]
    fn few_uppers_are_left_and_each_object_is_linked_a_few_times() {
        for first in [1, 20_000] {
            let (mut layers, mut links) = (vec![first], 0);
            let mut most = 0;
            for _ in 0..1_000 {
                layers.insert(0, 1);
                if layers.len() > MOST {
                    let count = to_merge(&layers);
                    let sum: u64 = layers.drain(..count).sum();
                    layers.insert(0, sum);
                    links += sum;
                }
                most = most.max(layers.len());
            }
            assert!(most <= MOST, "{most}");
            assert!(links <= 6 * 1_000 + first, "{links} links after a first step of {first}");
        }
    }
}
