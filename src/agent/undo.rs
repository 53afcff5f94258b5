//! Undo: which paths a turn and the later ones wrote and nobody else has touched since, and what was there before.
//!
//! A path goes back if every one of these turns that changed it claims it, nobody else claims it, each found it as the one before had left
//! it, and it is now as the last one left it. What else they changed stays, and is named with the reason: what is not as they left it, what is
//! older than they are, what is not covered ([`uncovered`](super::uncovered)). What they did not change is nobody's business here.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::anew::{Built, build_anew};
use super::look::Look;
use super::only::TakingOut;
use super::turn::{Turn, Wrote, mark};
use super::uncovered::{Became, Fate, fates};
use crate::error::Error;
use crate::fs::path::AbsPath;
use crate::snapshot::compare::{self, Compared, Difference, Hashes, OLDER, OLDER_FORCIBLE, Terms};
use crate::snapshot::rule_source::Source;
use crate::snapshot::series::Series;
use crate::tree::state::State;

/// The turns that are taken back, and the others.
pub struct Chosen<'a> {
    /// Those that are taken back, the oldest first.
    pub back: Vec<&'a Turn>,
    pub others: Vec<&'a Turn>,
    reach: Reach,
    undone: &'a BTreeMap<u64, BTreeSet<AbsPath>>,
}

/// How far an undo reaches from a turn on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The turn and the later ones of its conversation.
    Later,
    /// The turn alone, merged under what came later.
    Only,
    Conversation,
}

impl<'a> Chosen<'a> {
    /// Of all `turns` of the directory `n` and what it reaches; `near` are those of projects in this one or around it. A conversation is a
    /// session of an agent. `undone` has the paths of each turn that are taken back already.
    pub fn from(
        turns: &'a [Turn],
        near: &'a [Turn],
        (n, reach): (u64, Reach),
        undone: &'a BTreeMap<u64, BTreeSet<AbsPath>>,
    ) -> Self {
        let first = turns.iter().find(|turn| turn.head.n == n);
        let is_of = |turn: &&Turn| match reach {
            Reach::Only => turn.head.n == n,
            Reach::Later => turn.head.n >= n && first.is_some_and(|first| turn.is_with(first)),
            Reach::Conversation => first.is_some_and(|first| turn.is_with(first)),
        };
        let (back, others) = turns.iter().partition::<Vec<_>, _>(is_of);
        Self { back, others: others.into_iter().chain(near).collect(), reach, undone }
    }

    /// True if these turns changed something there, as far as was seen.
    fn have_changed(&self, path: &AbsPath) -> bool {
        self.back.iter().flat_map(|turn| turn.own_changes()).any(|change| change.path.is_under(path))
    }

    /// The number of files that go back and that no tool of these turns named.
    fn by_commands(&self, compared: &Compared) -> u64 {
        let is_by_command = |path: &AbsPath| self.back.iter().any(|turn| turn.is_by_command(path));
        let files = compared.differences.iter().filter(|d| !d.now.as_ref().or(d.then.as_ref()).is_some_and(State::is_dir));
        files.filter(|d| is_by_command(&d.path)).count() as u64
    }

    /// The first turn whose snapshot was whole when it began to write.
    pub fn base(&self) -> Option<&'a Turn> {
        self.back.iter().copied().find(|turn| turn.covered)
    }
}

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
    let mut compared = compare::with_tree(store, series, n, terms)?;
    let told = Told::of(chosen);
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
    sorting.later(&mut compared, |snapshot| compare::with_tree(store, series, snapshot, terms))?;
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
    told: &'a Told<'a>,
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
    fn new(told: &'a Told<'a>, asked: Asked<'a>, n: u64) -> Self {
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

/// The decision about a path.
enum Verdict {
    /// It goes back to what this snapshot has, which has this mark.
    Back {
        snapshot: u64,
        was: Option<u64>,
    },
    Stays(String),
    /// The turn wrote it, and it was changed since, as this says.
    Changed(String),
    /// It is as before an earlier turn, which was taken back.
    IsBack,
}

/// The facts that turns tell of each path.
struct Told<'a> {
    chosen: &'a Chosen<'a>,
    /// The turns that changed a path, the oldest first.
    by_path: BTreeMap<&'a AbsPath, Vec<(&'a Turn, &'a Wrote)>>,
}

impl<'a> Told<'a> {
    fn of(chosen: &'a Chosen<'a>) -> Self {
        let mut by_path: BTreeMap<&AbsPath, Vec<_>> = BTreeMap::new();
        for turn in &chosen.back {
            let undone = chosen.undone.get(&turn.head.n);
            let is_there = |wrote: &&Wrote| !undone.is_some_and(|undone| undone.contains(&wrote.path));
            turn.wrote.iter().filter(is_there).for_each(|wrote| by_path.entry(&wrote.path).or_default().push((*turn, wrote)));
        }
        Self { chosen, by_path }
    }

    fn paths(&self) -> impl Iterator<Item = &'a AbsPath> {
        self.by_path.keys().copied()
    }

    /// Decides about a path: with its difference from the first snapshot, if it differs.
    fn verdict(&self, path: &AbsPath, difference: Option<&Difference>, force: bool) -> Verdict {
        let Some(told) = self.by_path.get(path) else {
            return if self.is_back(path, difference) { Verdict::IsBack } else { Verdict::Stays(self.whose(path)) };
        };
        if let Some((turn, _)) = told.iter().find(|(turn, _)| !turn.covered) {
            return Verdict::Stays(format!("turn {} is not covered: it began before its snapshot was whole", turn.head.n));
        }
        let ([(first, wrote), ..], [.., (last, latest)]) = (&told[..], &told[..]) else {
            return Verdict::Stays(self.whose(path));
        };
        let Some((snapshot, _)) = first.before else { return Verdict::Stays(self.whose(path)) };
        let back = Verdict::Back { snapshot, was: wrote.was };
        if force {
            return back;
        }
        if let Some(why) = told.iter().find_map(|(turn, wrote)| self.not_own(turn, wrote)) {
            return Verdict::Stays(why);
        }
        let parted = told.windows(2).find(|pair| pair[0].1.is != pair[1].1.was);
        if let Some([(earlier, _), (later, _)]) = parted {
            return Verdict::Stays(format!("it was changed between turns {} and {}", earlier.head.n, later.head.n));
        }
        // Without a difference from the first snapshot it is as that has it, and was so before the first of these turns or not.
        let now = difference.map_or(wrote.was, |difference| mark(difference.now.as_ref()));
        if difference.is_some() && now != latest.is {
            return Verdict::Changed(format!("it was changed since turn {}{}", last.head.n, self.by_whom(path, last)));
        }
        back
    }

    /// The reason why a path that a turn seems to have written is not its own.
    fn not_own(&self, turn: &Turn, wrote: &Wrote) -> Option<String> {
        if let Some(why) = turn.against(&wrote.path) {
            return Some(format!("turn {}: {why}", turn.head.n));
        }
        // Two commands ran at once: what one has changed, the other may have, too.
        let may_have = |other: &&&Turn| !other.is_with(turn) && other.overlaps(turn) && turn.shares(&wrote.path, other);
        let also = self.chosen.others.iter().find(may_have)?;
        Some(format!("{} may have changed it, too", self.words(also)))
    }

    /// True if a turn that is taken back wrote the path, and it is as before that.
    fn is_back(&self, path: &AbsPath, difference: Option<&Difference>) -> bool {
        let now = mark(difference.and_then(|difference| difference.now.as_ref()));
        let turns = self.chosen.back.iter().chain(&self.chosen.others);
        let of = |turn: &&&Turn| self.chosen.undone.get(&turn.head.n).is_some_and(|undone| undone.contains(path));
        turns.filter(of).flat_map(|turn| &turn.wrote).any(|wrote| wrote.path == *path && wrote.was == now)
    }

    /// The reason why a path that none of the turns wrote differs.
    fn whose(&self, path: &AbsPath) -> String {
        let wrote = |turn: &&&Turn| turn.claims(path) && turn.wrote.iter().any(|wrote| wrote.path == *path);
        let since = self.chosen.back.first().map_or(0, |turn| turn.head.n);
        match self.chosen.others.iter().rev().filter(|turn| turn.head.n > since).find(wrote) {
            Some(turn) => format!("{} wrote it", self.words(turn)),
            None => "these turns did not write it".into(),
        }
    }

    fn by_whom(&self, path: &AbsPath, since: &Turn) -> String {
        let wrote = |turn: &&&Turn| turn.last >= since.head.time && turn.wrote.iter().any(|wrote| wrote.path == *path);
        match self.chosen.others.iter().rev().find(wrote) {
            Some(turn) => format!(", by {}", self.words(turn)),
            None => String::new(),
        }
    }

    /// A turn in words, with its directory if that is another one.
    fn words(&self, turn: &Turn) -> String {
        let head = &turn.head;
        let is_here = self.chosen.back.first().is_none_or(|first| first.head.directory == head.directory);
        let there = if is_here { String::new() } else { format!(" in {}", head.directory) };
        format!("turn {} of {}{there}", head.n, head.agent.word())
    }
}
