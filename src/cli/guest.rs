//! An agent as the guest of a run: what stays real for it, the store that it has inside, and what is committed by itself at its end.

use std::ffi::OsString;
use std::io::Read;
use std::path::PathBuf;

use globset::{GlobSet, GlobSetBuilder};

use super::agents::settings::{name_of, surroundings};
use crate::agent::known::Agent;
use crate::agent::state::{State as Kept, obeyed_change};
use crate::capture::place::layout::Pass;
use crate::compare::entries::Taken;
use crate::compare::picked::seen;
use crate::compare::picked::{Pick, Picked};
use crate::compare::sources::{Content, OnTree, Sources};
use crate::config::path_glob;
use crate::error::{At, Error, Reason, command};
use crate::face::call::Call;
use crate::face::ended::Ended;
use crate::face::figures;
use crate::face::place::{absolute, cwd, whole};
use crate::face::text::acts;
use crate::fs::dir::{Dir, Sort};
use crate::fs::path::AbsPath;
use crate::remedy::words;
use crate::session::change::{Change, Changes};
use crate::session::id::Id;
use crate::session::opened::{Locked, Session};
use crate::session::own_store::{self, Made};
use crate::session::run::{Coverage, How};
use crate::session::sides::Side;
use crate::session::store::Store;
use crate::tree::state::State;
use crate::verb::commit::{Commit, commit as commit_part};
use crate::verb::resolve::guard;
use crate::verb::resolve::target::{Target, What};

/// The most bytes of a file of state that are read for what an agent obeys in it.
const MOST: u64 = 16 << 20;

/// An agent that is held.
#[derive(Debug)]
pub struct Guest {
    agent: Agent,
    passes: Vec<AbsPath>,
    records: Vec<String>,
    made: Vec<String>,
    of_conversations: Vec<AbsPath>,
}

impl Guest {
    /// Makes all ready for an agent in a session's run.
    ///
    /// # Errors
    /// No home directory is known; the own store cannot be made.
    pub fn receive(call: &Call, store: &Store, agent: Agent, (session, hide): (&Session, &[PathBuf])) -> Result<Self, Error> {
        let usual = Kept::of(agent, &surroundings()?, &absolute(&cwd()?)?);
        let set = call.config.agents.get(agent.word());
        let passes: Vec<AbsPath> = match set.and_then(|set| set.pass.as_ref()) {
            Some(paths) => paths.iter().map(|path| absolute(path)).collect::<Result<_, _>>()?,
            None => usual.pass,
        };
        let (records, made, of_conversations) = match set.and_then(|set| set.records.clone()) {
            Some(records) => (records, Vec::new(), Vec::new()),
            None => (usual.records, usual.made, usual.of_conversations),
        };
        // What an earlier run of the session changed it has to see.
        let changes = session.changes()?;
        let is_held = |path: &AbsPath| changes.list.iter().any(|held| held.path.is_under(path) || path.is_under(&held.path));
        let hidden = hide.iter().map(|path| absolute(&whole(path)?)).collect::<Result<Vec<_>, _>>()?;
        let is_hidden = |path: &AbsPath| hidden.iter().any(|hidden| path.is_under(hidden));
        let passes = passes.into_iter().filter(|path| path.as_path().exists() && !is_held(path) && !is_hidden(path)).collect();
        if own_store::make(&call.fs, store, session)? == Made::Anew {
            call.out.warn(
                "the store that the session's runs had inside was spoilt: its turns are gone, and what is held is not touched",
            );
        }
        Ok(Self { agent, passes, records, made, of_conversations })
    }

    /// The paths that stay real for it.
    pub fn passes(&self) -> impl Iterator<Item = Pass> {
        let why = self.why();
        self.passes.iter().map(move |path| Pass { path: path.as_path().to_path_buf(), why: why.clone() })
    }

    /// The variables that tell processes inside of the agent and of its store.
    pub fn env(&self, store: &Store) -> Vec<(OsString, OsString)> {
        vec![("RECANT_AGENT".into(), self.agent.word().into()), ("RECANT_STORE".into(), store.path.as_path().as_os_str().into())]
    }

    /// Says, before the agent starts, where its changes go, what is not held (`coverage` has it), and what a person should know.
    pub fn greet(&self, call: &Call, session: &Session, coverage: &[Coverage]) {
        let names = call.out.names();
        let named = session.header.name.as_ref().map(|name| format!(", named {name}")).unwrap_or_default();
        let why = self.why();
        let mut passed = coverage.iter().filter(|row| row.how == How::Passed && row.why.as_ref() == Some(&why));
        let real = match (passed.next(), passed.count()) {
            (None, _) => String::new(),
            (Some(row), 0) => format!("; real: {}", names.show(&row.path)),
            (Some(row), more) => format!("; real: {} and {more} more", names.show(&row.path)),
        };
        let tail = session.id().tail();
        call.out.note(figures::filled(&format!("{} is held in session {tail}{named}{real}", self.agent.name())));
        let look = command(format_args!("review {}", session.header.name.as_deref().unwrap_or(tail)));
        call.out.note(figures::filled_remedy(&("what you save here meanwhile is a conflict; watch it by " + look), 8));
    }

    fn why(&self) -> String {
        format!("{} keeps it", self.agent.name())
    }

    /// Commits what the agent only recorded about itself, as a session of its own, and says so. What it obeys of it, and what somebody else
    /// changed meanwhile, stays held; and all of it, where the commit comes to nothing.
    ///
    /// # Errors
    /// The session cannot be locked again.
    pub fn commit_records(&self, call: &Call, store: &Store, session: Locked) -> Result<Locked, Error> {
        let id = session.id().clone();
        let found = self.records(&session);
        drop(session);
        let own = self.agent.name();
        let kept = |problem: &Error| {
            let first = problem.rows().first().map(|against| format!(": {}", against.path)).unwrap_or_default();
            call.out.note(figures::filled(&format!("what {own} keeps about itself is held: {}{first}", problem.message())));
        };
        match found {
            Err(problem) => kept(&problem),
            Ok(Records { picked, held }) => {
                say_held(call, &held);
                let count = picked.0.len();
                let variable = guard::limited(call).filter(|_| count > 0);
                if let Some(variable) = variable {
                    let why = format!("an agent calls ({variable} is set)");
                    call.out.note(figures::filled(&format!("what {own} keeps about itself is held: {why}")));
                } else if count > 0 {
                    match commit(call, &id, picked) {
                        Ok(Some((part, Ended::Done))) => {
                            let files = figures::count(count as u64, "file");
                            let back = command(format_args!("rollback {}", part.tail()));
                            let line = words(format_args!("{files} that {own} keeps about itself committed; ")) + back;
                            call.out.note(figures::filled_remedy(&line, 8));
                        }
                        Ok(Some((part, _))) => {
                            let look = command(format_args!("show {}", part.tail()));
                            let line = words(format_args!("some of what {own} keeps about itself is held: ")) + look;
                            call.out.note(figures::filled_remedy(&line, 8));
                        }
                        Ok(None) => {}
                        Err(problem) => kept(&problem),
                    }
                }
            }
        }
        store.lock_session(&call.fs, &id)
    }

    /// The changes of files that the agent only records.
    fn records(&self, session: &Session) -> Result<Records, Error> {
        let (globs, made) = (set_of(&self.records)?, set_of(&self.made)?);
        let changes = session.changes()?;
        let sides = session.sides(changes.list.len())?;
        let mut sources = Sources::of(session)?;
        let conversations: Vec<Conversation<'_>> =
            changes.list.iter().filter_map(|change| Conversation::of(change, &globs)).collect();
        let (mut picks, mut held) = (Vec::new(), Vec::new());
        for (change, side) in changes.list.iter().zip(&sides) {
            let path = &change.path;
            let is_memory = path.as_bytes().split(|b| *b == b'/').any(|name| name == b"memory");
            // A directory of which nothing is committed stays, too; one that is needed comes along.
            let is_directory = change.after.as_ref().is_some_and(State::is_dir);
            let kept_of = self.of_conversations.iter().find(|kept| path.is_under(kept));
            let is_record = kept_of.is_some() || globs.is_match(path.as_path());
            if side.is_in() || is_memory || is_directory || change.marks.same_content || !is_record {
                continue;
            }
            let is_anothers = kept_of.is_some_and(|kept| !conversations.iter().any(|one| one.made(change, kept, &changes)))
                || change.before.object.is_some() && made.is_match(path.as_path());
            let is_theirs = change.marks.foreign || sources.on_tree(change, *side) != OnTree::AsRecorded;
            let why = match self.no_record(&changes, change, &mut sources) {
                _ if is_theirs => Some("somebody else changed it meanwhile".into()),
                _ if is_anothers => Some("it may belong to another conversation".into()),
                Ok(None) if picks.len() == MOST_RECORDS => Some(format!("there are more than {MOST_RECORDS}")),
                Ok(why) => why,
                Err(error) => Some(error.to_string()),
            };
            match why {
                Some(why) => held.push((path.clone(), why)),
                None => picks.push(Pick { path: path.clone(), taken: Taken::Whole, seen: seen(change, *side, &mut sources) }),
            }
        }
        Ok(Records { picked: Picked(picks), held })
    }

    /// Why a change is more than a record; `None` if it is one: a file that was made, or a line that was added, or state in which the agent
    /// obeys nothing that changed.
    fn no_record(&self, changes: &Changes, change: &Change, sources: &mut Sources<'_>) -> Result<Option<String>, Error> {
        let own = self.agent.name();
        let Some(after) = &change.after else { return Ok(Some("it was deleted".into())) };
        if let Some(why) = odd(change.before.object.as_ref(), after, change.marks.linked) {
            return Ok(Some(why.into()));
        }
        // A directory that was made for it comes along.
        let above = std::iter::successors(change.path.parent(), AbsPath::parent);
        let mut made = above.filter_map(|above| at(changes, &above)?.after.as_ref());
        if made.any(|made| made.meta.mode & DIRECTORY_GAINS != 0 || !made.meta.xattrs.is_empty()) {
            return Ok(Some("the directory that was made for it is open to others".into()));
        }
        if after.size() > MOST {
            return Ok(Some(format!("it is larger than {}", figures::bytes(MOST))));
        }
        let before = before(change)?;
        let mut bytes = Vec::new();
        match sources.after(change, Side::Never, &OnTree::AsRecorded)? {
            Content::File(file) => drop(file.take(MOST).read_to_end(&mut bytes).at("read", &change.path)?),
            Content::Gone(why) => return Ok(Some(why)),
        }
        let name = change.path.name();
        Ok(if name.ends_with(b".json") {
            obeyed_change(name, &before, &bytes).map(|member| format!("{own} obeys {member} in it, and that was changed"))
        } else {
            (!bytes.starts_with(&before)).then(|| "lines that were in it are gone".into())
        })
    }
}

/// The most records that are committed at once: each is a descriptor.
const MOST_RECORDS: usize = 300;

/// The most lines about records that stay held.
const MOST_LINES: usize = 3;

fn say_held(call: &Call, held: &[(AbsPath, String)]) {
    for (path, why) in held.iter().take(MOST_LINES) {
        call.out.note(figures::filled(&format!("{} is held: {why}", call.out.names().show(path))));
    }
    let more = held.len().saturating_sub(MOST_LINES);
    if more > 0 {
        call.out.note(format_args!("and {} more", figures::count(more as u64, "file")));
    }
}

/// Set-user-id, set-group-id, and what others may write to.
const DIRECTORY_GAINS: u32 = 0o6022;

fn at<'c>(changes: &'c Changes, path: &AbsPath) -> Option<&'c Change> {
    changes.list.binary_search_by(|change| change.path.cmp(path)).ok().map(|i| &changes.list[i])
}

/// The oddity of a record: anything but a plain file, or rights that it gains.
fn odd(before: Option<&State>, after: &State, linked: bool) -> Option<&'static str> {
    /// Set-user-id, set-group-id, and what others may do.
    const GAINS: u32 = 0o6133;
    let had = before.map_or(0, |before| before.meta.mode);
    match () {
        () if !after.is_file() || before.is_some_and(|before| !before.is_file()) => Some("it is no plain file"),
        () if linked => Some("it has several names"),
        () if after.meta.mode & GAINS & !had != 0 => Some("its mode gives more than a record needs"),
        () if before.is_some_and(|before| (before.meta.uid, before.meta.gid) != (after.meta.uid, after.meta.gid)) => {
            Some("its owner was changed")
        }
        () if !after.meta.xattrs.is_empty() => Some("it has extended attributes"),
        () => None,
    }
}

/// The content on the tree of a file that a run has changed; nothing if it was made. Larger than [`MOST`], its first bytes.
fn before(change: &Change) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    if let Some((parent, name)) = change.path.parent().zip(change.path.split().map(|(_, name)| name))
        && change.before.object.is_some()
    {
        let dir = Dir::open(parent.as_path())?;
        // What has come there since may never end.
        if dir.at(name).stat()?.is_some_and(|stat| stat.sort == Sort::File) {
            dir.at(name).open_file()?.take(MOST).read_to_end(&mut bytes).at("read", &change.path)?;
        }
    }
    Ok(bytes)
}

/// A conversation, as its transcript among the changes tells.
struct Conversation<'a> {
    /// The name of the transcript, which begins the names of all that is kept of it.
    id: &'a [u8],
    /// True if the transcript was there before.
    goes_on: bool,
}

impl<'a> Conversation<'a> {
    fn of(change: &'a Change, transcripts: &GlobSet) -> Option<Self> {
        let id = change.path.name().strip_suffix(b".jsonl").filter(|id| !id.is_empty())?;
        let is_among_transcripts = change.path.parent()?.parent()?.name() == b"projects";
        let is_one = is_among_transcripts && transcripts.is_match(change.path.as_path());
        is_one.then_some(Self { id, goes_on: change.before.object.is_some() })
    }

    /// True if it has made a file below `kept`, where all conversations keep theirs: the file is new, and so is what is kept of a conversation
    /// that is new itself.
    fn made(&self, change: &Change, kept: &AbsPath, changes: &Changes) -> bool {
        let Some(first) = change.path.below(kept).and_then(|below| below.split(|b| *b == b'/').find(|name| !name.is_empty()))
        else {
            return false;
        };
        let is_new = |path: &AbsPath| at(changes, path).is_some_and(|change| change.before.object.is_none());
        let is_first_new = kept.join(first).is_ok_and(|path| is_new(&path));
        first.starts_with(self.id) && change.before.object.is_none() && (self.goes_on || is_first_new)
    }
}

/// Files that the agent recorded about itself: those that can be committed, and those that stay held, each with the reason.
struct Records {
    picked: Picked,
    held: Vec<(AbsPath, String)>,
}

fn set_of(globs: &[String]) -> Result<GlobSet, Error> {
    let wrong = |glob: &str, why: globset::Error| Error::refused(format!("agent.NAME.records: {glob:?}: {why}"));
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        set.add(path_glob(glob).map_err(|why| wrong(glob, why))?);
    }
    set.build().map_err(|why| wrong("", why))
}

/// Commits picks of a session as one of its own; returns that, and how it ended. `None` if it came to nothing.
fn commit(call: &Call, id: &Id, picked: Picked) -> Result<Option<(Id, Ended)>, Error> {
    let within = call.for_screen();
    let of = Target { what: What::Beside(picked), ..Target::all(id.as_str()) };
    let Some(acted) = commit_part(&within, &Commit::of(of))? else { return Ok(None) };
    let ended = acts::end(&within, Some(&acted))?;
    Ok(Some((acted.session, ended)))
}

/// A name for a session: the agent's and the project's, with a number if it is taken, as it would be for a run of that name.
pub fn name(store: Option<&Store>, agent: Agent) -> Result<String, Error> {
    let base = name_of(agent)?;
    let Some(store) = store else { return Ok(base) };
    let (headers, _) = store.headers()?;
    let is_taken = |name: &str| {
        let free = store.name_is_free(&headers, name, store.begins_in.as_ref());
        // Any other error comes again, once the session is begun.
        free.is_err_and(|error| matches!(error.reason(), Some(Reason::Taken { .. } | Reason::IsId)))
    };
    let numbered = (2..).map(|n: u32| format!("{base}-{n}"));
    let name = std::iter::once(base.clone()).chain(numbered).find(|name| !is_taken(name));
    Ok(name.unwrap_or(base))
}
