//! The uppers of a session's earlier steps. They are sealed: the next command's upper lies over them, and nothing is written to them again
//! but modes (`collect::open_up`).
//!
//! Many steps make many uppers, and each costs a command time. So the newest ones of a place are merged now and then (`blocks`): the block
//! `K.A-B.BOOT` shows what those of the steps A to B show. Blocks are made of links, hold nothing of their own, and count in the boot alone
//! that made them, as nobody syncs them.

use std::collections::{HashMap, HashSet};

use super::opened_modes;
use crate::capture::place::layout::{Route, is_opaque_directory};
use crate::error::{At, Error};
use crate::fs::{Dev, Dir, Stat};
use crate::session::{PartedPaths, Place, Session, boot_id, is_block};

/// The sealed uppers of a session, as it stands at its head.
#[derive(Debug, Default)]
pub struct Sealed {
    /// The numbers of the steps up to the head, the newest first.
    chain: Vec<u32>,
    /// The names in `held/upper`.
    names: HashSet<Vec<u8>>,
    /// The blocks of this boot.
    blocks: Vec<Block>,
    /// The modes that commands left on what was opened up since.
    left: HashMap<(Dev, u64), u32>,
    /// The paths that left the session: uppers of earlier steps show through a block that leaves them out.
    gone: PartedPaths,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    pub k: u32,
    /// The oldest step in it.
    pub from: u32,
    /// The newest step in it.
    pub to: u32,
    /// The newest step at which something left that it leaves out; 0 if nothing is left out.
    pub cut: u32,
}

/// One of the uppers that show through each other: that of one step, or a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layer {
    /// The oldest step in it.
    pub from: u32,
    /// The newest step in it.
    pub to: u32,
    /// The newest step at which something left that this block leaves out; 0 for an upper or block that leaves nothing out.
    pub cut: u32,
}

impl Block {
    /// Its name in `held/upper`.
    pub fn name(self) -> Vec<u8> {
        let cut = if self.cut > 0 { format!("-{}", self.cut) } else { String::new() };
        format!("{}.{}-{}{cut}.{}", self.k, self.from, self.to, this_boot()).into_bytes()
    }

    fn parse(name: &[u8]) -> Option<Self> {
        let (k, rest) = std::str::from_utf8(name).ok()?.split_once('.')?;
        let (steps, boot) = rest.split_once('.')?;
        let (from, to) = steps.split_once('-')?;
        let (to, cut) = to.split_once('-').unwrap_or((to, "0"));
        let block = Self { k: k.parse().ok()?, from: from.parse().ok()?, to: to.parse().ok()?, cut: cut.parse().ok()? };
        (boot == this_boot()).then_some(block)
    }
}

/// The start of this boot's id, which ends the names of its blocks.
fn this_boot() -> String {
    boot_id().chars().filter(char::is_ascii_hexdigit).take(8).collect()
}

impl Sealed {
    /// Finds the uppers of the steps `chain` (the oldest first) of a session in its directory `held`.
    pub fn of(held: &Dir, session: &Session, chain: Vec<u32>) -> Result<Self, Error> {
        if chain.is_empty() {
            return Ok(Self::default());
        }
        let uppers = held.at(b"upper").open_dir()?;
        let names: HashSet<Vec<u8>> = uppers.names()?.into_iter().collect();
        let blocks = names.iter().filter(|name| is_block(name)).filter_map(|name| Block::parse(name)).collect();
        let gone = match &session.header.steps {
            Some(steps) if steps.left > 0 => session.steps()?.left_at(&chain),
            _ => PartedPaths::default(),
        };
        Ok(Self { chain: chain.into_iter().rev().collect(), names, blocks, left: opened_modes::left(held)?, gone })
    }

    /// The mode that a command left on an object.
    pub fn as_left(&self, stat: &Stat) -> u32 {
        self.left.get(&(stat.dev, stat.ino)).copied().unwrap_or(stat.mode)
    }

    /// The numbers of the steps, the newest first.
    pub fn steps(&self) -> impl Iterator<Item = u32> {
        self.chain.iter().copied()
    }

    /// The steps that have an upper of a place, the newest first.
    pub fn steps_of(&self, place: &Place) -> impl Iterator<Item = u32> {
        self.chain.iter().copied().filter(|step| self.names.contains(&place.upper_name(*step)))
    }

    /// The uppers of a place, the newest first: of blocks the largest, of other steps their own.
    pub fn layers(&self, place: &Place) -> Vec<Layer> {
        let mut layers: Vec<Layer> = Vec::new();
        for step in self.steps_of(place) {
            if layers.last().is_some_and(|above| step >= above.from) {
                continue;
            }
            let ending_here = self.blocks.iter().filter(|block| block.k == place.k && block.to == step && block.cut == 0);
            let is_of_chain = |block: &&Block| self.chain.contains(&block.from);
            let largest = ending_here.filter(is_of_chain).map(|block| block.from).min();
            let cut = self.gone.newest();
            layers.push(match self.steps_of(place).last() {
                Some(oldest) if step < cut => Layer { from: oldest, to: step, cut },
                _ => Layer { from: largest.unwrap_or(step), to: step, cut: 0 },
            });
        }
        layers
    }

    /// The name of an upper in `held/upper`.
    pub fn name(place: &Place, layer: Layer) -> Vec<u8> {
        let Layer { from, to, cut } = layer;
        if from == to && cut == 0 { place.upper_name(to) } else { Block { k: place.k, from, to, cut }.name() }
    }

    /// The paths that left the session.
    pub fn parted_paths(&self) -> &PartedPaths {
        &self.gone
    }

    /// The block of a place that leaves out what left, if it takes one and has none yet.
    pub fn lacks(&self, place: &Place) -> Option<Block> {
        let layer = self.layers(place).into_iter().find(|layer| layer.cut > 0)?;
        let block = Block { k: place.k, from: layer.from, to: layer.to, cut: layer.cut };
        (!self.blocks.contains(&block)).then_some(block)
    }

    /// Opens the uppers of the steps of a block, the newest first, each with its step.
    pub fn within(&self, uppers: &Dir, place: &Place, block: Block) -> Result<Vec<(u32, Dir)>, Error> {
        let steps = self.steps_of(place).filter(|step| (block.from..=block.to).contains(step));
        steps.map(|step| Ok((step, uppers.at(&place.upper_name(step)).open_dir()?))).collect()
    }

    /// Adds a block that was made.
    pub fn add(&mut self, block: Block) {
        self.blocks.push(block);
    }

    /// Opens the uppers of a place, the newest first, as far as they show through each other.
    pub fn below(&self, held: &Dir, place: &Place, route: Route) -> Result<Vec<Dir>, Error> {
        let mut below = Vec::new();
        for layer in self.layers(place) {
            let path = [b"upper/", &*Self::name(place, layer)].concat();
            let upper = held.open_below(&path).at("open a sealed upper of", &place.path)?;
            let hides = is_opaque_directory(route, &upper)?;
            below.push(upper);
            if hides {
                break;
            }
        }
        Ok(below)
    }
}

#[cfg(test)]
mod tests {
    use crate::capture::layers::sealed_uppers::*;
    use crate::fs::AbsPath;

    #[test]
    fn the_largest_blocks_of_the_chain_stand_for_their_steps() {
        let place = Place { path: AbsPath::parse("/p").unwrap(), k: 3, mtime: None, inode: None, file: None };
        let sealed = |left: u32, chain: &[u32], steps: &[u32], blocks: &[(u32, u32)]| Sealed {
            chain: chain.iter().rev().copied().collect(),
            names: steps.iter().map(|step| place.upper_name(*step)).collect(),
            blocks: blocks.iter().map(|(from, to)| Block { k: 3, from: *from, to: *to, cut: 0 }).collect(),
            left: HashMap::new(),
            gone: PartedPaths::of([(left, vec![place.path.clone()])].iter().filter(|(left, _)| *left > 0)),
        };
        let layers = |sealed: Sealed| sealed.layers(&place).iter().map(|layer| (layer.from, layer.to)).collect::<Vec<_>>();
        assert_eq!(layers(sealed(0, &[1, 2, 3, 4], &[1, 2, 4], &[])), [(4, 4), (2, 2), (1, 1)]);
        assert_eq!(layers(sealed(0, &[1, 2, 3, 4], &[1, 2, 3, 4], &[(1, 2), (2, 3), (1, 3)])), [(4, 4), (1, 3)]);
        // A block of a branch that was left is none of these.
        assert_eq!(layers(sealed(0, &[1, 2, 5, 6], &[1, 2, 3, 5, 6], &[(2, 3), (1, 2), (3, 6)])), [(6, 6), (5, 5), (1, 2)]);
        // All up to the step at which something left is one block, whether it is there yet or not; a later one may have it in it.
        assert_eq!(layers(sealed(3, &[1, 2, 3, 4], &[1, 2, 4], &[])), [(4, 4), (1, 2)]);
        assert_eq!(layers(sealed(3, &[1, 2, 3, 4, 5], &[1, 2, 4, 5], &[(1, 2), (1, 4)])), [(5, 5), (1, 4)]);
        let mut lacking = sealed(3, &[2, 3, 4], &[2, 4], &[]);
        let block = lacking.lacks(&place).unwrap();
        assert_eq!(block, Block { k: 3, from: 2, to: 2, cut: 3 });
        lacking.add(block);
        assert_eq!(lacking.lacks(&place), None);
    }

    #[test]
    fn a_block_is_known_by_its_name_in_its_boot() {
        let block = Block { k: 2, from: 1, to: 16, cut: 0 };
        for block in [block, Block { cut: 17, ..block }] {
            assert_eq!(Block::parse(&block.name()), Some(block));
        }
        assert!(is_block(&block.name()) && !is_block(b"2") && !is_block(b"2.16") && is_block(b"2.1-16.new"));
        for other in ["2", "2.16", "2.1-16", "2.1-16.00000000", "2.1-16.new", "x.1-16.00000000"] {
            assert_eq!(Block::parse(other.as_bytes()), None, "{other}");
        }
    }
}
