//! Undo: which paths a turn and the later ones wrote and nobody else has touched since, and what was there before.
//!
//! A path goes back if every one of these turns that changed it claims it, nobody else claims it, each found it as the one before had left
//! it, and it is now as the last one left it. What else they changed stays, and is named with the reason: what is not as they left it, what is
//! older than they are, what is not covered ([`uncovered`](super::uncovered)). What they did not change is nobody's business here.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::chosen_turns::{Chosen, Reach};
use super::project_walk::Look;
use super::rebuild_times::Built;
use super::rebuild_times::build_anew;
use super::single_turn::TakingOut;
use super::turn::mark;
use super::uncovered::{Became, Fate, fates};
use super::undo_verdict::{Verdict, Writers};
use crate::error::Error;
use crate::fs::AbsPath;
use crate::snapshot::{Compared, Difference, Hashes, OLDER, OLDER_FORCIBLE, Series, Source, Terms, differences};

/// The paths of turns that are taken back, and what was there before.
pub struct Undo {
    /// The differences to be undone, against the snapshot before the first turn or a later one. `left` has what stays, and why.
    pub compared: Compared,
    /// The number of the snapshot that it is compared with.
    pub n: u64,
    /// The paths that the turns wrote, and that are as before already.
    pub same: Vec<AbsPath>,
    /// The deeds on what is not covered.
    pub fates: Vec<Fate>,
    /// The built directories that are newer than sources that go back.
    pub built: Vec<Built>,
    /// The number of paths that go back and that no tool named: they changed while a command ran.
    pub by_commands: u64,
}

/// The paths that a call takes back.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// These alone, with the directory as `/`; all if there is none.
    pub paths: &'a [AbsPath],
    /// True if others' work on them goes, too.
    pub force: bool,
}

/// Compares the tree with the snapshots from before the turns. `store` is recant's own directory. `None` if no turn is covered.
///
/// # Errors
/// A snapshot or the tree cannot be read.
pub fn undo(store: &AbsPath, series: &Series, chosen: &Chosen<'_>, asked: Asked<'_>) -> Result<Option<Undo>, Error> {
    let Some((n, existed)) = chosen.base().and_then(|turn| turn.before) else { return Ok(None) };
    let latest = chosen.back.iter().filter_map(|turn| turn.before).map(|(_, time)| time).max();
    // What is older is so by the turn that wrote the path first.
    let terms =
        Terms { whole: true, paths: asked.paths, hashes: Hashes::All, with_vcs: false, existed: latest, with_older: true };
    let mut compared = differences::with_tree(store, series, n, terms)?;
    let told = Writers::of(chosen);
    if !asked.force {
        let first = |path: &AbsPath| told.by_path.get(path).and_then(|told| told.first()?.0.before);
        compared.spare_older(series, OLDER_FORCIBLE, |path| {
            let (snapshot, existed) = first(path).unwrap_or((n, existed));
            (snapshot, Some(existed))
        })?;
    }
    let now = Look::at(&series.directory, store, &Source::of(series, n)?, None)?;
    let fates = narrowed(&mut compared, chosen, asked, &now);
    let mut sorting = Sorting::new(&told, asked, n);
    sorting.differences(&mut compared, series)?;
    sorting.unchanged(&compared);
    sorting.later(&mut compared, |snapshot| differences::with_tree(store, series, snapshot, terms))?;
    let same = sorting.leave(&mut compared);
    compared.settle(&series.directory);
    let built = build_anew(&mut compared, &now, &series.directory);
    let by_commands = chosen.by_commands(&compared);
    Ok(Some(Undo { compared, n, same, fates, built, by_commands }))
}

/// Reduces the differences to those that are asked for, and returns the deeds on what is not covered.
fn narrowed(compared: &mut Compared, chosen: &Chosen<'_>, asked: Asked<'_>, now: &Look) -> Vec<Fate> {
    let mut fates = fates(&chosen.back, Some(now));
    fates.retain(|fate| asked.has(&fate.path));
    if !asked.paths.is_empty() {
        compared.only(asked.paths);
    }
    if !asked.force {
        spare_copies(compared, &mut fates);
    }
    let is_their_move =
        |path: &AbsPath| fates.iter().any(|fate| path.is_under(&fate.path) || fate.became == Became::Moved(path.clone()));
    compared.left.retain(|(path, _)| chosen.have_changed(path) && !is_their_move(path));
    fates
}

/// Differences from the first snapshot, while it is decided which go back.
struct Sorting<'a> {
    told: &'a Writers<'a>,
    asked: Asked<'a>,
    /// The first snapshot.
    n: u64,
    seen: BTreeSet<AbsPath>,
    /// The paths that go back to later snapshots, by these.
    later: BTreeMap<u64, BTreeSet<AbsPath>>,
    stay: Vec<(Difference, String)>,
    /// The paths that are as before already.
    same: Vec<AbsPath>,
}

impl<'a> Sorting<'a> {
    fn new(told: &'a Writers<'a>, asked: Asked<'a>, n: u64) -> Self {
        Self { told, asked, n, seen: BTreeSet::new(), later: BTreeMap::new(), stay: Vec::new(), same: Vec::new() }
    }

    /// Decides about each difference: those that go back to the first snapshot stay in `compared`.
    fn differences(&mut self, compared: &mut Compared, series: &Series) -> Result<(), Error> {
        let chosen = self.told.chosen;
        let mut taking_out = match (&chosen.back[..], chosen.reach) {
            ([turn], Reach::Only) => TakingOut::of(series, turn)?,
            _ => None,
        };
        for difference in std::mem::take(&mut compared.differences) {
            self.seen.insert(difference.path.clone());
            match self.told.verdict(&difference.path, Some(&difference), self.asked.force) {
                Verdict::Back { snapshot, was } if mark(difference.then.as_ref()) != was => {
                    self.later.entry(snapshot).or_default().insert(difference.path);
                }
                Verdict::Back { .. } => compared.differences.push(difference),
                Verdict::Changed(why) => match taking_out.as_mut().map(|out| out.from(&difference)).transpose()? {
                    Some(Ok(merged)) => compared.differences.extend(merged),
                    Some(Err(not)) => self.stay.push((difference, format!("{why}: {not}"))),
                    None => self.stay.push((difference, why)),
                },
                Verdict::Stays(why) => self.stay.push((difference, why)),
                Verdict::IsBack => {}
            }
        }
        Ok(())
    }

    /// Decides about the paths that the turns wrote and that do not differ: they may have been something else before a later turn.
    fn unchanged(&mut self, compared: &Compared) {
        let kept: HashSet<&AbsPath> = compared.kept.iter().map(|(path, _)| path).collect();
        let stays =
            |path: &AbsPath| std::iter::successors(Some(path.clone()), AbsPath::parent).any(|above| kept.contains(&above));
        for path in self.told.paths().filter(|path| !self.seen.contains(*path) && self.asked.has(path) && !stays(path)) {
            match self.told.verdict(path, None, self.asked.force) {
                Verdict::Back { snapshot, .. } if snapshot != self.n => {
                    self.later.entry(snapshot).or_default().insert(path.clone());
                }
                Verdict::Back { .. } => self.same.push(path.clone()),
                Verdict::Stays(_) | Verdict::Changed(_) | Verdict::IsBack => {}
            }
        }
    }

    /// Adds the differences from later snapshots.
    fn later(&mut self, compared: &mut Compared, with: impl Fn(u64) -> Result<Compared, Error>) -> Result<(), Error> {
        for (snapshot, paths) in std::mem::take(&mut self.later) {
            let mut more = with(snapshot)?;
            more.differences.retain(|difference| paths.contains(&difference.path));
            more.name_groups_by_their_own();
            compared.differences.append(&mut more.differences);
        }
        compared.differences.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(())
    }

    /// Leaves what stays, and names what of it is of interest. Returns what is as before already.
    fn leave(self, compared: &mut Compared) -> Vec<AbsPath> {
        let Self { told, asked, stay, same, .. } = self;
        // What differs and none of these turns has changed is of no interest, unless somebody named it.
        let since: BTreeMap<AbsPath, String> = stay
            .iter()
            .filter(|(d, _)| asked.paths.is_empty() && !told.by_path.contains_key(&d.path))
            .map(|(d, why)| (d.path.clone(), why.clone()))
            .collect();
        compared.leave(stay, |path| same.binary_search(path).is_ok());
        compared.left.retain(|(path, why)| since.get(path) != Some(why));
        for turn in &told.chosen.back {
            compared.left.extend(turn.left.iter().filter(|(path, _)| asked.has(path)).cloned());
        }
        same
    }
}

/// Leaves what seems to be a copy of a thing that is gone and was not covered, as cp -a and a rename from another file system make them: it
/// has its time and size, or its time and names, and may be all that there is of it.
fn spare_copies(compared: &mut Compared, fates: &mut [Fate]) {
    let mut spared: Vec<AbsPath> = Vec::new();
    for fate in fates.iter_mut().filter(|fate| matches!(fate.became, Became::Deleted | Became::Overwritten)) {
        let names_in = |directory: &AbsPath| {
            let inside = compared.differences.iter().filter(|d| d.now.is_some() && d.path.parent().as_ref() == Some(directory));
            inside.map(|d| String::from_utf8_lossy(d.path.name()).into_owned()).collect::<Vec<_>>()
        };
        let is_copy = |d: &&Difference| match (&d.now, &d.then) {
            (Some(now), None) if now.meta.mtime == fate.out.mtime && now.is_dir() == fate.out.directory => {
                match &fate.out.names {
                    Some(names) => *names == names_in(&d.path),
                    None => now.is_file() && now.size() == fate.out.size,
                }
            }
            _ => false,
        };
        if let Some(copy) = compared.differences.iter().find(is_copy).map(|d| d.path.clone()) {
            fate.became = Became::Moved(copy.clone());
            spared.push(copy);
        }
    }
    let is_spared = |path: &AbsPath| spared.iter().any(|copy| path.is_under(copy));
    compared.differences.retain(|d| !is_spared(&d.path));
    compared.kept.extend(spared.iter().map(|path| (path.clone(), OLDER)));
}

impl Asked<'_> {
    fn has(&self, path: &AbsPath) -> bool {
        self.paths.is_empty() || self.paths.iter().any(|asked| path.is_under(asked))
    }
}
