//! What a power cut may leave of a run: for each step the states that no sync has ruled out.
//!
//! The model is weaker than ext4, xfs and btrfs are together: a change of names lasts once one of its directories is synced
//! and all changes of these names before it last with it; content, and metadata, once its own object is synced; all
//! else may be there or not, each by itself. A directory that is moved keeps its place in the order
//! of what happens in it: ext4 and xfs keep the order of all names, btrfs commits all when a moved directory is synced. A rename to another
//! directory may leave both names until the old directory is synced as well. Nothing is ordered but by syncs.

use std::collections::{BTreeMap, BTreeSet};

use super::common::Dice;
use super::record::{Key, Object, Record, Renamed, Slot, Step, Sync};

/// How much of what was not synced is there after the cut.
#[derive(Debug, Clone, Copy)]
pub enum Loss {
    /// None of it.
    All,
    /// All names, but no content and no metadata.
    Content,
    /// All content and metadata, but no names.
    Names,
    /// Each of it with this chance in ten.
    Some(u64),
    /// All but one of the changes of names, with what came later to the same names.
    OneName,
    /// Nothing but one of the changes of names, with what came before to the same names.
    AllButOneName,
    /// Just what the site that is left out had made to last.
    Unsynced,
}

/// What becomes of a file's content.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Content {
    Whole,
    /// Cut to so many bytes.
    Cut(u64),
    /// From so many bytes on nothing but zeros.
    Zeros(u64),
}

/// What the disk holds after the cut, of all that the run has touched.
pub struct State {
    /// Where each name leads.
    pub names: BTreeMap<Slot, Option<Key>>,
    pub content: BTreeMap<Key, Content>,
    /// Metadata; a directory's time goes with the names in it.
    pub objects: BTreeMap<Key, Object>,
    /// For messages.
    pub lost: String,
}

/// All that can be lost at one step.
pub struct Cut<'r> {
    steps: &'r [Step],
    record: &'r Record,
    /// For each step with names: whether it is known to last.
    lasting: Vec<bool>,
    /// The directories that were synced after a step, of those in which it changed names.
    synced_after: Vec<BTreeSet<Key>>,
    /// For each file: bytes that last, and bytes written.
    content: BTreeMap<Key, (u64, u64)>,
    /// For each object: the states that may be there, the oldest first.
    objects: BTreeMap<Key, Vec<(usize, Object)>>,
    /// The same with all syncs, where one site's are left out.
    synced: Option<Box<Cut<'r>>>,
}

impl<'r> Cut<'r> {
    /// Right before step `n`, `without` one site's syncs. What the user had not synced is at stake once the steps have begun.
    pub fn new(record: &'r Record, n: usize, without: Option<&str>) -> Self {
        let (steps, dirty) = (&record.steps[..n - 1], &record.dirty);
        let mut cut = Self {
            steps,
            record,
            lasting: vec![false; steps.len()],
            synced_after: vec![BTreeSet::new(); steps.len()],
            content: dirty.iter().map(|(key, size)| (*key, (0, *size))).collect(),
            objects: BTreeMap::new(),
            synced: without.map(|_| Box::new(Self::new(record, n, None))),
        };
        for (i, step) in steps.iter().enumerate() {
            for object in &step.before {
                cut.objects.entry(object.key()).or_insert_with(|| vec![(0, object.clone())]);
            }
            match &step.sync {
                Some(_) if Some(&*step.site) == without => {}
                Some(sync) => cut.sync(i, *sync),
                None => cut.touch(step),
            }
        }
        // The user's own unsynced content is nothing that recant could keep before it has begun.
        if !steps.iter().any(|step| step.sync.is_none() && step.what.contains("/journals/") && step.call == "renameat") {
            cut.content.retain(|key, _| !dirty.contains_key(key));
        }
        cut
    }

    fn touch(&mut self, step: &Step) {
        for object in &step.after {
            let history = self.objects.entry(object.key()).or_default();
            if history.last().is_none_or(|(_, last)| last != object) {
                history.push((step.n, object.clone()));
            }
        }
        if matches!(&*step.call, "write" | "pwrite" | "copy" | "ftruncate" | "fallocate")
            && let (Some(was), Some(is)) = (step.before.last(), step.after.last())
        {
            self.content.entry(is.key()).or_insert((was.size, 0)).1 = is.size;
        }
    }

    fn sync(&mut self, i: usize, sync: Sync) {
        let covers = |key: &Key| match sync {
            Sync::Object(synced) => *key == synced,
            Sync::FileSystem(dev) => key.0 == dev,
        };
        for (key, (lasts, written)) in &mut self.content {
            if covers(key) {
                *lasts = *written;
            }
        }
        for (key, history) in &mut self.objects {
            if covers(key) {
                history.drain(..history.len() - 1);
            }
        }
        for j in (0..i).rev() {
            for renamed in &self.steps[j].names {
                if covers(&renamed.slot.0) {
                    self.synced_after[j].insert(renamed.slot.0);
                    self.make_last(j);
                }
            }
        }
    }

    /// A change of names lasts with all earlier ones of the same names.
    fn make_last(&mut self, j: usize) {
        if self.lasting[j] {
            return;
        }
        self.lasting[j] = true;
        for earlier in 0..j {
            if self.needs(j, earlier) {
                self.make_last(earlier);
            }
        }
    }

    /// Whether step `j` cannot be there without the earlier one: they change the same name, or one of them gives a directory its
    /// own name in which the other changes names.
    fn needs(&self, j: usize, earlier: usize) -> bool {
        let (later, earlier) = (&self.steps[j].names, &self.steps[earlier].names);
        let tied = |a: &Renamed, b: &Renamed| a.slot == b.slot || b.to == Some(a.slot.0) || a.to == Some(b.slot.0);
        later.iter().any(|a| earlier.iter().any(|b| tied(a, b)))
    }

    /// How much is at stake.
    pub fn at_stake(&self) -> usize {
        let names = (0..self.steps.len()).filter(|i| !self.steps[*i].names.is_empty() && !self.lasting[*i]).count();
        let content = self.content.values().filter(|(lasts, written)| lasts != written).count();
        let objects = self.objects.values().filter(|history| history.len() > 1).count();
        names + content + objects
    }

    /// One of the states that may be there.
    pub fn state(&self, loss: Loss, dice: &mut Dice) -> State {
        let there = self.names_there(loss, dice);
        let mut lost: Vec<String> = Vec::new();
        let mut names = self.record.first.clone();
        let mut last_of: BTreeMap<Key, usize> = BTreeMap::new();
        for (i, step) in self.steps.iter().enumerate() {
            if step.names.is_empty() {
                continue;
            }
            if !there[i] {
                lost.push(format!("{} {} {}", step.n, step.call, step.what));
                continue;
            }
            let moved = step.call.starts_with("renameat") && step.call != "renameat2 EXCHANGE";
            for renamed in &step.names {
                let directory = renamed.slot.0;
                // D4: until the directory that it left is synced, the old name may be there beside the new one.
                let stays = moved && renamed.to.is_none() && !self.synced_after[i].contains(&directory) && self.may_be_both(step);
                if stays && !matches!(loss, Loss::Content | Loss::Unsynced) && dice.roll(4) == 0 {
                    lost.push(format!("{} {} {} but for the old name", step.n, step.call, step.what));
                    continue;
                }
                names.insert(renamed.slot.clone(), renamed.to);
                last_of.insert(directory, step.n);
            }
        }
        let content = self.contents(loss, dice, &mut lost);
        let mut objects = BTreeMap::new();
        for (key, history) in &self.objects {
            let newest = history.len() - 1;
            let pick = match loss {
                _ if newest == 0 => 0,
                // A directory's time goes with the last change of its names.
                _ if history[0].1.kind == "directory" => {
                    let last = last_of.get(key).copied().unwrap_or(0);
                    history.iter().rposition(|(n, _)| *n <= last).unwrap_or(0)
                }
                Loss::All | Loss::Content | Loss::AllButOneName => 0,
                Loss::Names | Loss::OneName => newest,
                Loss::Unsynced => {
                    let lasts = self.synced.as_ref().is_none_or(|synced| synced.objects[key].len() < history.len());
                    if lasts { 0 } else { newest }
                }
                Loss::Some(chance) => {
                    if dice.roll(10) < chance {
                        newest
                    } else {
                        usize::try_from(dice.roll(newest as u64 + 1)).expect("small")
                    }
                }
            };
            if pick != newest {
                lost.push(format!("metadata of inode {}", key.1));
            }
            objects.insert(*key, history[pick].1.clone());
        }
        State { names, content, objects, lost: lost.join("\n  ") }
    }

    /// Only what is no directory can have two names.
    fn may_be_both(&self, step: &Step) -> bool {
        let moved = step.names.iter().find_map(|renamed| renamed.to);
        let directories: BTreeSet<Key> = step.names.iter().map(|renamed| renamed.slot.0).collect();
        let is_dir = step.before.iter().any(|object| Some(object.key()) == moved && object.kind == "directory");
        directories.len() > 1 && !is_dir
    }

    fn names_there(&self, loss: Loss, dice: &mut Dice) -> Vec<bool> {
        let loose: Vec<usize> = (0..self.steps.len()).filter(|i| !self.steps[*i].names.is_empty() && !self.lasting[*i]).collect();
        let chosen = (!loose.is_empty()).then(|| loose[usize::try_from(dice.roll(loose.len() as u64)).expect("small")]);
        let mut there = self.lasting.clone();
        for i in loose {
            let wanted = match loss {
                Loss::All | Loss::Names => false,
                Loss::Content => true,
                Loss::Some(chance) => dice.roll(10) < chance,
                Loss::OneName => Some(i) != chosen,
                Loss::Unsynced => self.synced.as_ref().is_none_or(|synced| !synced.lasting[i]),
                Loss::AllButOneName => chosen.is_some_and(|chosen| self.leads_to(i, chosen)),
            };
            // Not without what came before to the same names.
            there[i] = wanted && (0..i).all(|earlier| there[earlier] || !self.needs(i, earlier));
        }
        there
    }

    fn leads_to(&self, i: usize, chosen: usize) -> bool {
        i == chosen || i < chosen && (i + 1..=chosen).any(|next| self.needs(next, i) && self.leads_to(next, chosen))
    }

    fn contents(&self, loss: Loss, dice: &mut Dice, lost: &mut Vec<String>) -> BTreeMap<Key, Content> {
        let mut contents = BTreeMap::new();
        for (key, (lasts, written)) in self.content.iter().filter(|(_, (lasts, written))| lasts < written) {
            let content = match loss {
                Loss::All | Loss::Content | Loss::AllButOneName => Content::Cut(*lasts),
                Loss::Names | Loss::OneName => Content::Whole,
                Loss::Unsynced => match self.synced.as_ref().and_then(|synced| synced.content.get(key)) {
                    Some((lasts, _)) if lasts < written => Content::Whole,
                    _ => Content::Cut(*lasts),
                },
                Loss::Some(chance) if dice.roll(10) < chance => Content::Whole,
                Loss::Some(_) => match dice.roll(4) {
                    0 => Content::Cut(*lasts),
                    1 => Content::Cut(lasts + (written - lasts) / 2),
                    2 => Content::Zeros(*lasts),
                    _ => Content::Zeros(lasts + (written - lasts) / 2),
                },
            };
            if content != Content::Whole {
                lost.push(format!("content of inode {}: {content:?} of {written}", key.1));
            }
            contents.insert(*key, content);
        }
        contents
    }
}
