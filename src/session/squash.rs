//! Merges the oldest steps of a session into one, which ends going back to them: what only they held is removed. Their records stay. A branch
//! is let go once all of it is older than what is kept; until then its steps, and those below it, stay.
//!
//! Their uppers stay too, without the files that later ones of them had replaced: what shows at the newest of them is as before.

use std::collections::HashSet;

use super::header::Steps;
use super::open_session::{Locked, part};
use super::run_record::Run;
use super::steps::StepList;
use crate::error::Error;
use crate::fs::{Fs, Sort};

/// How many steps are kept to go back to, and how many bytes they may hold.
#[derive(Debug, Clone, Copy)]
pub struct Keep {
    pub steps: usize,
    /// Bytes of content.
    pub bytes: u64,
}

impl Locked {
    /// Merges the oldest steps if there are more than are to be kept; some more are left until then, so that not each command has to. Returns
    /// the number of steps that can no longer be gone back to.
    ///
    /// # Errors
    /// A system call failed: what the session holds is as before, and what was to be freed may be there still.
    pub fn merge_oldest(&mut self, fs: &Fs, keep: Keep) -> Result<usize, Error> {
        let Some(steps) = &self.header.steps else { return Ok(0) };
        let most = keep.steps.max(1);
        let many = usize::try_from(steps.last - steps.floor).unwrap_or(usize::MAX) > most + most / 8;
        if !many && self.header.sizes.held <= keep.bytes {
            return Ok(0);
        }
        let (list, Some(run)) = (self.steps()?, self.run()?) else { return Ok(0) };
        let Some(floor) = floor(&list, steps, keep) else { return Ok(0) };
        let freed = self.freed(&list, floor)?;
        let gone = list.kept(&self.header).difference(&list.standing_on(floor)).count();
        let mut header = self.header.clone();
        header.sizes.held = header.sizes.held.saturating_sub(freed.bytes);
        header.steps = header.steps.map(|steps| Steps { floor, ..steps });
        // I12: what says that nobody goes back to them goes first, durably.
        self.save(fs, header)?;
        self.remove_freed(fs, &run, &freed)?;
        Ok(gone)
    }

    /// All that nobody can go back to once `floor` is the oldest step, beside what was freed before.
    fn freed(&self, list: &StepList, floor: u32) -> Result<Freed, Error> {
        let old = self.header.steps.as_ref().map_or(0, |steps| steps.floor);
        let (before, chain): (HashSet<u32>, HashSet<u32>) =
            (list.chain(old).into_iter().collect(), list.chain(floor).into_iter().collect());
        let mut freed = Freed::default();
        let (kept, stays) = (list.kept(&self.header), list.standing_on(floor));
        for step in list.steps.iter().filter(|step| !chain.contains(&step.n) && !stays.contains(&step.n)) {
            freed.whole.push(step.n);
            freed.bytes += if kept.contains(&step.n) { step.held } else { 0 };
        }
        for step in list.steps.iter().filter(|step| chain.contains(&step.n) && !before.contains(&step.n)) {
            for change in list.own(self, step.n)?.list {
                let (Some(held_by), Some(before)) = (change.from, &change.before.object) else { continue };
                // A directory shows through, and a new one lies over the file that it replaced.
                if !before.is_dir() && !change.after.as_ref().is_some_and(|after| after.is_dir()) {
                    freed.bytes += before.size();
                    freed.replaced.push((held_by, change.path));
                }
            }
        }
        Ok(freed)
    }

    fn remove_freed(&self, fs: &Fs, run: &Run, freed: &Freed) -> Result<(), Error> {
        let held = part(&self.dir, b"held")?;
        let uppers = part(&self.dir, b"held/upper")?;
        // Blocks are made of links: they would keep the bytes.
        self.remove_blocks(fs)?;
        for step in &freed.whole {
            for place in &run.places {
                let name = place.upper_name(*step);
                fs.remove_all(uppers.at(&name))?;
            }
        }
        for (step, path) in &freed.replaced {
            let Some(upper) = run.upper_of(Some(*step), path) else { continue };
            let cut = upper.iter().rposition(|b| *b == b'/').unwrap_or(0);
            let dir = match held.open_below(&upper[..cut]) {
                // It went with a directory above, or before this was cut off last time.
                Err(error) if error.leads_nowhere() => continue,
                dir => dir?,
            };
            let at = dir.at(&upper[cut + 1..]);
            if at.stat()?.is_some_and(|stat| stat.sort != Sort::Directory) {
                let mtime = dir.stat()?.mtime;
                fs.unlink(at)?;
                fs.set_mtime(dir.at(b"."), mtime)?;
            }
        }
        Ok(())
    }
}

/// All that only merged steps held.
#[derive(Debug, Default)]
struct Freed {
    /// Steps of branches that nobody can go back to any more.
    whole: Vec<u32>,
    /// Steps, each with a path at which a later one replaced what it held.
    replaced: Vec<(u32, crate::fs::AbsPath)>,
    bytes: u64,
}

/// The oldest step to keep: the newest one on which all that are to be kept stand. These are the newest ones, of all branches, as many as
/// may be. `None` if it is the oldest already, or there is none: then nothing is let go until a branch is too old.
fn floor(list: &StepList, steps: &Steps, keep: Keep) -> Option<u32> {
    let (mut count, mut bytes) = (0, 0);
    let kept = list.steps.iter().rev().take_while(|step| {
        (count, bytes) = (count + 1, bytes + step.held);
        count == 1 || count <= keep.steps && bytes <= keep.bytes
    });
    let mut common: Option<Vec<u32>> = None;
    for chain in kept.map(|step| list.chain(step.n)) {
        common = Some(match common {
            None => chain,
            Some(common) => common.into_iter().zip(chain).take_while(|(a, b)| a == b).map(|(n, _)| n).collect(),
        });
    }
    let floor = *common?.last()?;
    let is_first = list.chain(floor).first() == Some(&floor);
    Some(floor).filter(|floor| *floor != steps.floor && !(is_first && steps.floor == 0))
}
