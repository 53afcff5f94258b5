//! A person's policy, `agent.policy`: what of a session an agent may commit without its person, and why the rest waits.
//!
//! An agent writes what it likes into a session, and chooses where that begins, under which name, in how many. So only ordinary files and
//! directories fit, by their whole paths; all that has to come along fits too; and what the policy commits is counted over all sessions of the
//! store, until the person acts in this project.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::os::unix::fs::MetadataExt;

use globset::GlobMatcher;
use serde::Serialize;

use super::act::named_paths::denied;
use super::desk::Desk;
use super::error;
use super::parts::select::{self, Selection, Way};
use super::resolve::guard::is_all_by_agents;
use super::resolve::scope::Scope;
use crate::agent::known::is_agents;
use crate::compare::{Renames, Sources, Taken};
use crate::engine::MinorPaths;
use crate::error::Error;
use crate::fs::AbsPath;
use crate::session::{Change, Changes, Session, Store, may_part};
use crate::settings::path_glob;
use crate::tree::danger::danger;
use crate::tree::{Object, State, marks_project, project_of};

/// The changes that were asked for, by whether the policy allows them.
#[derive(Debug, Default)]
pub struct Judged {
    /// By the index of the change.
    fits: BTreeMap<usize, Fit>,
    waits: BTreeMap<usize, String>,
}

#[derive(Debug)]
struct Fit {
    glob: String,
    /// True for a new directory that fits only for what comes into it, as `docs` for `docs/**`.
    is_above: bool,
}

/// A change that waits for its person, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Waits {
    pub path: AbsPath,
    pub why: String,
}

impl Judged {
    pub fn selection(&self) -> Selection {
        self.fits.keys().map(|i| (*i, Taken::Whole)).collect()
    }

    pub fn fit(&self) -> u64 {
        self.fits.len() as u64
    }

    /// The globs by which something fits.
    pub fn globs(&self) -> Vec<String> {
        self.fits.values().map(|fit| fit.glob.clone()).collect::<BTreeSet<_>>().into_iter().collect()
    }

    pub fn waits(&self, changes: &Changes) -> Vec<Waits> {
        self.waits.iter().map(|(i, why)| Waits { path: changes.list[*i].path.clone(), why: why.clone() }).collect()
    }

    fn wait(&mut self, i: usize, why: impl Into<String>) {
        self.fits.remove(&i);
        self.waits.insert(i, why.into());
    }

    fn all_wait(&mut self, why: &str) {
        std::mem::take(&mut self.fits).into_keys().for_each(|i| self.wait(i, why));
    }

    fn has(&self, i: usize) -> bool {
        self.fits.contains_key(&i)
    }
}

/// True if the settings have a policy.
pub fn is_set(desk: &Desk) -> bool {
    !desk.config.policy_commit.value.is_empty()
}

/// A policy as it stands in a project.
#[derive(Debug, Serialize)]
pub struct Standing {
    pub commit: Vec<String>,
    pub max_files: u64,
    /// The paths that an agent may commit until the person acts there; none if other settings count for the store.
    pub left: u64,
}

/// The policy as it stands in the project of the working directory; `None` if there is none.
///
/// # Errors
/// The store cannot be read; the working directory is gone.
pub fn standing(desk: &Desk) -> Result<Option<Standing>, Error> {
    if !is_set(desk) {
        return Ok(None);
    }
    let (commit, max_files) = (desk.config.policy_commit.value.clone(), desk.config.policy_max_files.value);
    let left = match desk.store()? {
        Some(store) if not_of_person(desk, store)?.is_none() => max_files.saturating_sub(used(store, &Scope::here()?)?),
        _ => 0,
    };
    Ok(Some(Standing { commit, max_files, left }))
}

/// The reason why the settings in force are not those of the store's person. An agent can make a store, and be the first in it.
fn not_of_person(desk: &Desk, store: &Store) -> Result<Option<&'static str>, Error> {
    Ok(match store.person()? {
        None => Some(error::NO_PERSON),
        Some(known) => (desk.person().as_ref() != Some(&known)).then_some(error::OTHER_SETTINGS),
    })
}

/// Judges changes of a session, by index. The caller holds the lock of policies, if something is to be committed.
///
/// # Errors
/// The session, the store or the tree cannot be read.
pub fn judge(desk: &Desk, store: &Store, session: &Session, changes: &Changes, asked: Vec<usize>) -> Result<Judged, Error> {
    let mut judged = Judged::default();
    if let Some(why) = stands_against(desk, store, session)? {
        asked.into_iter().for_each(|i| judged.wait(i, why));
        return Ok(judged);
    }
    let policy = Policy::of(desk, store, session, changes)?;
    for i in asked {
        match policy.glob_for(&changes.list[i]) {
            Ok(fit) => drop(judged.fits.insert(i, fit)),
            Err(why) => judged.wait(i, why),
        }
    }
    keep_together(session, changes, &mut judged)?;
    let here = session.header.cwd.as_ref().map_or_else(Scope::everywhere, Scope::of_directory);
    let (most, used) = (desk.config.policy_max_files.value, used(store, &here)?);
    if judged.fit() > most.saturating_sub(used) {
        judged.all_wait(&error::too_many(judged.fit(), most, used));
    }
    Ok(judged)
}

/// The reason why nothing of a session may be committed by a policy.
fn stands_against(desk: &Desk, store: &Store, session: &Session) -> Result<Option<&'static str>, Error> {
    let header = &session.header;
    if let Some(why) = not_of_person(desk, store)? {
        return Ok(Some(why));
    }
    Ok(match () {
        () if !may_part(header) => Some(error::NOT_PENDING),
        () if header.failed.is_some() || header.unsynced => Some(error::FAILED),
        () if header.imported.is_some() => Some(error::IMPORTED),
        () if !is_all_by_agents(session)? => Some(error::A_PERSONS),
        () => None,
    })
}

/// The number of paths that the policy committed since a person acted in a project: in all projects, as an agent chooses where it works. An
/// agent can add no act to a session that is committed, so that its header tells of this one.
fn used(store: &Store, here: &Scope) -> Result<u64, Error> {
    let (headers, _) = store.headers()?;
    let acts = || headers.iter().filter(|header| !header.beside).filter_map(|header| Some((header, header.acted.as_ref()?)));
    let of_person = acts().filter(|(header, act)| act.by.is_none() && here.has(store, header)).map(|(_, act)| act.n).max();
    let by_policy = acts().filter(|(_, act)| !act.purpose.policy.is_empty() && Some(act.n) > of_person);
    Ok(by_policy.map(|(header, _)| header.counts.inside).sum())
}

/// A rule of the policy.
struct Glob {
    text: String,
    matcher: GlobMatcher,
    /// True if it is a path, without a character that stands for others.
    is_literal: bool,
    /// True if it is about paths in the project.
    is_relative: bool,
}

impl Glob {
    fn of(text: &str) -> Result<Self, Error> {
        let broken = |error: globset::Error| crate::engine::refused_at("agent.policy.commit", error);
        let is_relative = !text.starts_with('/');
        // As a whole path, a glob without '/' means no name at any depth.
        let matcher =
            path_glob(&if is_relative { format!("/{text}") } else { text.to_owned() }).map_err(broken)?.compile_matcher();
        Ok(Self { text: text.to_owned(), matcher, is_literal: is_plain(text), is_relative })
    }

    fn names(&self, path: &AbsPath) -> bool {
        self.matcher.is_match(path.as_path())
    }

    /// True if a directory is one of those that the glob begins with: `docs` of `docs/**`.
    fn begins_with(&self, directory: &AbsPath) -> bool {
        let plain: Vec<&str> = self.text.trim_start_matches('/').split('/').take_while(|part| is_plain(part)).collect();
        AbsPath::parse(format!("/{}", plain.join("/"))).is_ok_and(|plain| plain.is_under(directory))
    }
}

/// True for a text without a character that stands for others.
fn is_plain(text: &str) -> bool {
    !text.contains(['*', '?', '[', ']', '{', '}', '\\'])
}

/// A policy as it counts for one session.
struct Policy {
    globs: Vec<Glob>,
    /// The project; `None` where relative globs mean nothing.
    project: Option<AbsPath>,
    denied: MinorPaths,
    /// Paths that no policy may touch, nor what lies above or below them.
    own: Vec<AbsPath>,
    /// All that the session would create or change, in lower case.
    written: HashSet<Vec<u8>>,
    home: Option<AbsPath>,
}

impl Policy {
    fn of(desk: &Desk, store: &Store, session: &Session, changes: &Changes) -> Result<Self, Error> {
        let globs = desk.config.policy_commit.value.iter().map(|text| Glob::of(text)).collect::<Result<_, _>>()?;
        let home = dirs::home_dir();
        let home_path = desk.person().and_then(|person| person.home);
        let is_broad = |project: &AbsPath| project.depth() == 0 || home_path.as_ref().is_some_and(|home| home.is_under(project));
        let project = session.header.cwd.as_ref().map(|cwd| project_of(cwd, home.as_deref())).filter(|of| !is_broad(of));
        let file = desk.config.file.as_deref().map(|file| [file.to_path_buf(), file.canonicalize().unwrap_or_default()]);
        let path = |path: std::path::PathBuf| AbsPath::parse(path.into_os_string().into_encoded_bytes()).ok();
        let own = file.into_iter().flatten().filter_map(path).chain([store.path.clone()]).collect();
        let written = changes.list.iter().filter(|change| change.after.is_some()).map(|change| &change.path);
        let written = written.map(|path| path.as_bytes().to_ascii_lowercase()).collect();
        Ok(Self { globs, project, denied: denied(desk)?, own, written, home: home_path })
    }

    /// The glob that allows a change, or why none does.
    fn glob_for(&self, change: &Change) -> Result<Fit, String> {
        let path = &change.path;
        if self.own.iter().any(|own| own.is_under(path) || path.is_under(own)) {
            return Err(error::SETTINGS.into());
        }
        if (self.denied)(path) {
            return Err(error::DENIED.into());
        }
        let find = |is: &dyn Fn(&Glob, &AbsPath) -> bool| {
            self.globs.iter().find(|glob| self.seen_by(glob, path).is_some_and(|path| is(glob, &path)))
        };
        let literal = find(&|glob, path| glob.is_literal && glob.names(path));
        let named = literal.or_else(|| find(&Glob::names));
        let makes_directory = change.before.object.is_none() && change.after.as_ref().is_some_and(State::is_dir);
        let glob = named.or_else(|| find(&|glob, path| makes_directory && glob.begins_with(path)));
        let glob = glob.ok_or(error::NO_GLOB)?;
        if literal.is_none() {
            refuse_dangerous(change)?;
            if is_agents(path, self.home.as_ref()) {
                return Err(error::AGENTS.into());
            }
            if path.ancestors().any(|above| self.is_repository(&above, path)) {
                return Err(error::REPOSITORY.into());
            }
        }
        refuse_unusual(change)?;
        Ok(Fit { glob: glob.text.clone(), is_above: named.is_none() })
    }

    /// True for a directory that git would take for a repository, whatever its name is, if all of the session were real; and for one that lacks
    /// other parts still, if the path below it is one that git obeys or runs.
    fn is_repository(&self, directory: &AbsPath, path: &AbsPath) -> bool {
        let has = |name: &str| {
            directory.join(name.as_bytes()).is_ok_and(|part| {
                self.written.contains(&part.as_bytes().to_ascii_lowercase()) || part.as_path().symlink_metadata().is_ok()
            })
        };
        let below = path.as_bytes()[directory.as_bytes().len()..].to_ascii_lowercase();
        let part = below.split(|b| *b == b'/').find(|part| !part.is_empty());
        let is_obeyed = || part.is_some_and(|part| matches!(part, b"config" | b"config.worktree" | b"hooks"));
        has("HEAD") && (is_obeyed() || has("commondir") || has("objects") && has("refs"))
    }

    /// The path as a glob sees it; `None` if it does not concern it.
    fn seen_by(&self, glob: &Glob, path: &AbsPath) -> Option<AbsPath> {
        if !glob.is_relative {
            return Some(path.clone());
        }
        let project = self.project.as_ref().filter(|project| path.is_under(project) && path != *project)?;
        AbsPath::parse(&path.as_bytes()[project.as_bytes().len()..]).ok()
    }
}

/// Refuses what a person should see before all else: unless the policy names its whole path.
fn refuse_dangerous(change: &Change) -> Result<(), String> {
    let Change { path, before, after, .. } = change;
    // A directory that ignores case has it under another name. What goes may have been a safeguard.
    let lower = AbsPath::parse(path.as_bytes().to_ascii_lowercase()).unwrap_or_else(|_| path.clone());
    let danger_at = |path: &AbsPath| {
        danger(path, &before.object, after).or_else(|| danger(path, &None, &before.object)).or_else(|| danger(path, &None, after))
    };
    if let Some(danger) = danger_at(path).or_else(|| danger_at(&lower)) {
        return Err(danger.why().into());
    }
    let in_repository = lower.as_bytes().split(|b| *b == b'/').any(|name| name.starts_with(b".") && marks_project(name));
    if in_repository || before.object.is_none() && marks_project(path.name()) {
        return Err(error::MARKS_PROJECT.into());
    }
    let holds_programs = path.parent().is_some_and(|above| matches!(above.name(), b"bin" | b"sbin"));
    let is_program = |object: &Object| object.as_ref().is_some_and(|state| state.is_file() && state.meta.mode & 0o111 != 0);
    if holds_programs && is_program(after) { Err(error::PROGRAM.into()) } else { Ok(()) }
}

/// Refuses what is more than other content of an ordinary file, or leads to other paths.
fn refuse_unusual(change: &Change) -> Result<(), &'static str> {
    let (before, after) = (change.before.object.as_ref(), change.after.as_ref());
    let is_ordinary = |state: &State| state.is_file() || state.is_dir();
    if !before.into_iter().chain(after).all(is_ordinary) {
        return Err(error::NO_FILE);
    }
    let real = change.path.as_path().symlink_metadata().ok();
    let has_names = real.as_ref().is_some_and(|real| real.is_file() && real.nlink() > 1);
    if has_names || change.marks.linked || change.marks.link_broken {
        return Err(error::NAMES);
    }
    let Some(after) = after else { return Ok(()) };
    let special = |state: &State| state.meta.mode & 0o7002;
    if special(after) & !before.map_or(0, special) != 0 {
        return Err(error::MODE);
    }
    let owner = |state: &State| (state.meta.uid, state.meta.gid);
    let is_own = || after.meta.uid == rustix::process::geteuid().as_raw() && is_own_group(&change.path, after.meta.gid);
    if before.map_or_else(|| !is_own(), |before| owner(before) != owner(after)) {
        return Err(error::OWNER);
    }
    let xattrs = before.map(|before| &*before.meta.xattrs).unwrap_or_default();
    if xattrs != &*after.meta.xattrs || change.original.is_some() { Err(error::ATTRIBUTES) } else { Ok(()) }
}

/// True for the group that a new file gets by itself: the caller's, or that of the directory.
fn is_own_group(path: &AbsPath, gid: u32) -> bool {
    let above = || path.ancestors().find_map(|above| above.as_path().symlink_metadata().ok());
    gid == rustix::process::getegid().as_raw() || above().is_some_and(|above| above.gid() == gid)
}

/// Has what belongs together wait together, until nothing that fits needs what waits.
fn keep_together(session: &Session, changes: &Changes, judged: &mut Judged) -> Result<(), Error> {
    if judged.fits.is_empty() {
        return Ok(());
    }
    let sides = session.sides(changes.list.len())?;
    let renames = Renames::find(&changes.list, &sides, &mut Sources::of(session)?)?;
    let moved = moved_directories(changes);
    loop {
        let fits: Vec<usize> = judged.fits.keys().copied().collect();
        for i in &fits {
            if let Some(why) = needs_what_waits(changes, &renames, &moved, judged, *i) {
                judged.wait(*i, why);
            }
        }
        if judged.fits.len() == fits.len() {
            break;
        }
    }
    let is_needed = |judged: &Judged, i: usize| {
        changes.under(&changes.list[i].path).any(|k| judged.fits.get(&k).is_some_and(|fit| !fit.is_above))
    };
    let above: Vec<usize> = judged.fits.iter().filter(|(_, fit)| fit.is_above).map(|(i, _)| *i).collect();
    for i in above {
        if !is_needed(judged, i) {
            judged.wait(i, error::NO_GLOB);
        }
    }
    let mut selection = judged.selection();
    select::with_names(session, changes, &mut selection)?;
    select::settle(changes, Way::Forth, |_| true, &mut selection);
    if !selection.keys().all(|i| judged.has(*i)) {
        judged.all_wait(error::WITH_NAMES);
    }
    Ok(())
}

/// The reason why a change cannot be committed without another one that waits.
fn needs_what_waits(
    changes: &Changes,
    renames: &Renames,
    moved: &BTreeMap<usize, usize>,
    judged: &Judged,
    i: usize,
) -> Option<String> {
    let path = &changes.list[i].path;
    let above: Vec<usize> =
        path.ancestors().filter_map(|above| changes.list.binary_search_by(|change| change.path.cmp(&above)).ok()).collect();
    let of_file = renames.deleted(i).map(|(old, _)| old).or_else(|| renames.created(i));
    let of_directories = above.iter().chain([&i]).filter_map(|k| moved.get(k).copied());
    if let Some(other) = of_file.into_iter().chain(of_directories).find(|other| !judged.has(*other)) {
        return Some(error::other_end_waits(&changes.list[other].path));
    }
    let (comes, goes) = (|k: usize| comes(&changes.list[k]), goes(&changes.list[i]));
    if let Some(above) = above.into_iter().filter(|k| comes(*k)).find(|k| !judged.has(*k)) {
        return Some(error::lies_in_what_waits(&changes.list[above].path));
    }
    let below = changes.under(path).find(|k| !judged.has(*k))?;
    // A new directory in which nothing but directories fits is a half of what was to come.
    let is_half = || {
        comes(i)
            && !judged.fits.get(&i).is_some_and(|fit| fit.is_above)
            && !changes.under(path).any(|k| judged.has(k) && !comes(k))
    };
    (goes || is_half()).then(|| error::holds_what_waits(&changes.list[below].path))
}

fn is_dir(object: &Object) -> bool {
    object.as_ref().is_some_and(State::is_dir)
}

/// True for a new directory.
fn comes(change: &Change) -> bool {
    !is_dir(&change.before.object) && is_dir(&change.after)
}

/// True for a directory that goes.
fn goes(change: &Change) -> bool {
    is_dir(&change.before.object) && !is_dir(&change.after)
}

/// Directories that went under another name, of both ends the other one: they have the same time, and the same names in them.
fn moved_directories(changes: &Changes) -> BTreeMap<usize, usize> {
    let all = |is: fn(&Change) -> bool| (0..changes.list.len()).filter(move |i| is(&changes.list[*i]));
    let time = |object: &Object| object.as_ref().map(|state| state.meta.mtime);
    let mut gone: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for i in all(goes) {
        gone.entry(time(&changes.list[i].before.object)).or_default().push(i);
    }
    let names = |i: usize| {
        let top = &changes.list[i].path;
        changes.under(top).map(|k| &changes.list[k].path.as_bytes()[top.as_bytes().len()..])
    };
    let mut moved = BTreeMap::new();
    for new in all(comes) {
        let mut alike = gone.get(&time(&changes.list[new].after)).into_iter().flatten().copied();
        if let Some(old) = alike.find(|old| !moved.contains_key(old) && names(*old).eq(names(new))) {
            moved.extend([(old, new), (new, old)]);
        }
    }
    moved
}
