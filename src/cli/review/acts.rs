//! The acts of the screen: verbs as a person types them, with what was picked in place of paths. Each knows the calls that undo it.

use std::cell::{OnceCell, RefCell};
use std::ffi::OsString;

use super::{lines_of, snapshot};
use crate::cli::args::Verb;
use crate::cli::problem::{Against, Problem};
use crate::cli::which::Want;
use crate::cli::{Call, help, merge, picks, text};
use crate::diff::entries::Taken;
use crate::diff::picked::Picked;
use crate::fs::Fs;
use crate::fs::path::AbsPath;
use crate::review::facts::{Act, Ended};
use crate::session::header::{Origin, Status};
use crate::session::id::Id;

/// Words of a call.
type Words = Vec<OsString>;

/// A deed of this screen that can be undone: what it was, and the calls that undo it, the first one first.
struct Done {
    what: String,
    back: Vec<Words>,
}

/// The acts, and what was done with them.
pub struct Acts<'c> {
    call: &'c Call,
    done: Vec<Done>,
    said: Vec<String>,
}

/// How a session stands before an act.
struct Stand {
    status: Status,
    head: u32,
    has_steps: bool,
}

impl<'c> Acts<'c> {
    /// Nothing was done yet.
    pub fn new(call: &'c Call) -> Self {
        Self { call, done: Vec::new(), said: Vec::new() }
    }

    /// A line for each deed, for the terminal once the screen has gone.
    pub fn said(&self) -> &[String] {
        &self.said
    }

    /// The calls that undo the last deed.
    pub fn last(&self) -> Option<String> {
        let done = self.done.last()?;
        let calls: Vec<String> = done.back.iter().map(|words| typed(words)).collect();
        Some(format!("{}: {}", done.what, calls.join("; ")))
    }

    /// Undoes the last deed.
    pub fn undo(&mut self) -> Ended {
        let Some(done) = self.done.pop() else { return Ended::Refused(vec!["nothing was done that can be undone".into()]) };
        let mut lines = vec![format!("undone: {}", done.what)];
        for (n, words) in done.back.iter().enumerate() {
            match self.call_by(words, |_| {}) {
                Ok((said, _)) => lines.extend(said),
                // A step that cannot be gone back to stands in the way of nothing else.
                Err(problem) if words.first().is_some_and(|verb| verb == "rewind") => {
                    lines.push(format!("the session stays at its step: {}", problem.message));
                }
                Err(problem) => {
                    let back = done.back[n..].to_vec();
                    self.done.push(Done { what: done.what, back });
                    return Ended::Refused(lines_of(&problem));
                }
            }
        }
        self.said.push(lines[0].clone());
        Ended::Done(lines)
    }

    /// Undoes a turn of an agent and the later ones.
    pub fn undo_turn(&mut self, n: u64) -> Ended {
        let words = words(["agent", "undo", &n.to_string()]);
        let done = self.call_by(&words, |_| {});
        self.ended(done, format!("undo of turn {n}"), |id| id.map(|id| rollback(&id)).into_iter().collect())
    }

    /// Makes a session stand at a step.
    pub fn rewind(&mut self, id: &Id, n: u32) -> Ended {
        let before = match self.stand(id) {
            Ok(stand) => stand,
            Err(problem) => return Ended::Refused(lines_of(&problem)),
        };
        let done = self.call_by(&rewound(id, n), |_| {});
        self.ended(done, format!("rewind to step {n}"), |_| vec![rewound(id, before.head)])
    }

    /// Restores what is picked from a snapshot.
    pub fn restore(&mut self, store: &AbsPath, directory: &AbsPath, n: u64, picked: &Picked) -> Ended {
        match snapshot::changed(store, directory, n, picked) {
            Ok(changed) if changed.is_empty() => {}
            Ok(changed) => return Ended::Changed(changed),
            Err(problem) => return Ended::Refused(lines_of(&problem)),
        }
        let mut words = words(["snapshot", "restore", &n.to_string(), "--dir"]);
        words.push(directory.as_path().into());
        words.push("--".into());
        words.extend(picked.0.iter().map(|pick| pick.path.as_path().into()));
        let done = self.call_by(&words, |_| {});
        self.ended(done, format!("restore from snapshot {n}"), |id| id.map(|id| rollback(&id)).into_iter().collect())
    }

    /// Acts on what is picked of a session.
    pub fn on_session(&mut self, id: &Id, act: Act, picked: Picked) -> Ended {
        let before = match self.stand(id) {
            Ok(stand) => stand,
            Err(problem) => return Ended::Refused(lines_of(&problem)),
        };
        match act {
            Act::Commit if before.status == Status::RolledBack => self.redo(id, picked),
            Act::Commit => self.commit(id, &before, picked),
            Act::RollBack => self.roll_back(id, picked),
            Act::Discard => self.discard(id, &before, picked),
            Act::Merge => self.merge(id, &before, &picked),
            Act::Restore => Ended::Refused(vec!["a session has nothing to restore".into()]),
        }
    }

    fn commit(&mut self, id: &Id, before: &Stand, picked: Picked) -> Ended {
        let (paths, what) = (paths(&picked), deed("commit", &picked));
        let done = self.call_by(&words(["commit", id.as_str()]), |verb| {
            if let Verb::Commit(args) = verb {
                args.what.picked = Some(picked);
            }
        });
        let (head, steps) = (before.head, before.has_steps);
        self.ended(done, what, |made| match made {
            // A part: the session it became goes back first, then the session goes on as it was.
            Some(made) if made != *id => [rollback(&made)].into_iter().chain(steps.then(|| rewound(id, head))).collect(),
            Some(_) => vec![rollback(id).into_iter().chain(paths).collect()],
            // Nothing was done.
            None => Vec::new(),
        })
    }

    fn redo(&mut self, id: &Id, picked: Picked) -> Ended {
        if picked.0.iter().any(|pick| pick.taken != Taken::Whole) {
            return Ended::Refused(vec!["what was rolled back is committed again by whole files: a chooses all of one".into()]);
        }
        let (paths, what) = (paths(&picked), deed("redo", &picked));
        let done = self.call_by(&words(["redo", id.as_str()]), |verb| {
            if let Verb::Redo(args) = verb {
                args.what.picked = Some(picked);
            }
        });
        self.ended(done, what, |made| made.map(|_| rollback(id).into_iter().chain(paths).collect()).into_iter().collect())
    }

    fn roll_back(&mut self, id: &Id, picked: Picked) -> Ended {
        let (paths, what) = (paths(&picked), deed("rollback", &picked));
        let done = self.call_by(&words(["rollback", id.as_str()]), |verb| {
            if let Verb::Rollback(args) = verb {
                args.what.picked = Some(picked);
            }
        });
        self.ended(done, what, |made| match made {
            Some(made) if made != *id => vec![rollback(&made)],
            Some(_) => vec![words(["redo", id.as_str()]).into_iter().chain(paths).collect()],
            None => Vec::new(),
        })
    }

    fn discard(&mut self, id: &Id, before: &Stand, picked: Picked) -> Ended {
        let what = deed("discard", &picked);
        let done = self.call_by(&words(["discard", id.as_str()]), |verb| {
            if let Verb::Discard(args) = verb {
                args.picked = Some(picked);
            }
        });
        self.ended(done, what, |_| back_to(id, before))
    }

    /// Puts held changes onto what is on the tree by now; they stay held.
    fn merge(&mut self, id: &Id, before: &Stand, picked: &Picked) -> Ended {
        let call = self.call.for_screen();
        let merged = || -> Result<(), Problem> {
            let (store, mut session) = call.locked(id.as_str(), Want::Commit)?;
            picks::refuse_changed(Some(picked), &session)?;
            let mut paths: Vec<AbsPath> = picked.0.iter().map(|pick| pick.path.clone()).collect();
            merge::merge(&call, store, &mut session, false, &mut paths).map(drop)
        };
        let done = merged().map(|()| (call.out.kept(), None));
        let done = done.map(|(lines, id)| match lines.is_empty() {
            true => (vec!["there was nothing to merge: the tree has what these changes were made of".into()], id),
            false => (lines, id),
        });
        self.ended(done, deed("merge", picked), |_| back_to(id, before))
    }

    /// Notes that the person's editor changed what is held.
    pub fn edited(&mut self, id: &Id, before: (u32, bool), done: Result<Vec<String>, Problem>) -> Ended {
        let (head, has_steps) = before;
        let back = || if has_steps { vec![rewound(id, head)] } else { Vec::new() };
        match done {
            Ok(lines) if lines.is_empty() => Ended::Done(vec!["nothing was edited".into()]),
            done => self.ended(done.map(|lines| (lines, None)), "edit".into(), |_| back()),
        }
    }

    /// The step at which a session stands, and true if it has steps.
    pub fn head(&self, id: &Id) -> Result<(u32, bool), Problem> {
        self.stand(id).map(|stand| (stand.head, stand.has_steps))
    }

    /// The call that the screen was opened by.
    pub fn call(&self) -> &'c Call {
        self.call
    }

    /// Opens a path in the tool for differences, on the terminal.
    pub fn tool(&mut self, words: &[&str], path: &AbsPath) -> Ended {
        let mut words = self::words(words.iter().copied());
        // Without the `--` the path would be read as the tool.
        if !words.iter().any(|word| word == "--") {
            words.push("--".into());
        }
        let at = words.iter().position(|word| word == "--").unwrap_or(words.len());
        words.insert(at, "--tool".into());
        words.push(path.as_path().into());
        let verb = match parsed(&words) {
            Ok(verb) => verb,
            Err(why) => return Ended::Refused(vec![why]),
        };
        let call = self.call.again();
        match call.carry_out(verb).and_then(|_| call.out.finish()) {
            Ok(()) => Ended::Done(Vec::new()),
            Err(problem) => Ended::Refused(lines_of(&problem)),
        }
    }

    fn stand(&self, id: &Id) -> Result<Stand, Problem> {
        let session = self.call.store_with(id.as_str())?.session(id)?;
        let header = &session.header;
        Ok(Stand { status: header.status(), head: header.head(), has_steps: header.origin == Origin::Captured })
    }

    /// Carries out a call with all that it prints kept. `with` changes the verb that the words give.
    fn call_by(&self, words: &[OsString], with: impl FnOnce(&mut Verb)) -> Result<(Vec<String>, Option<Id>), Problem> {
        let mut verb = parsed(words).map_err(Problem::refused)?;
        with(&mut verb);
        let call = self.call.for_screen();
        call.carry_out(verb)?;
        call.out.finish()?;
        Ok((call.out.kept(), call.out.session.take()))
    }

    /// The end of a deed. `back`: the calls that undo it, by the session that it made, if it made one.
    fn ended(
        &mut self,
        done: Result<(Vec<String>, Option<Id>), Problem>,
        what: String,
        back: impl FnOnce(Option<Id>) -> Vec<Words>,
    ) -> Ended {
        match done {
            Ok((lines, made)) => {
                self.said.extend(lines.iter().filter(|line| line.starts_with("session ")).cloned());
                let back = back(made);
                if !back.is_empty() {
                    self.done.push(Done { what, back });
                }
                Ended::Done(lines.into_iter().filter(|line| !is_row(line)).collect())
            }
            Err(problem) if problem.message == picks::STALE => {
                let line = |against: &Against| self.call.out.sentence(&format!("{}: {}", against.path, against.why));
                Ended::Changed(problem.paths.iter().map(line).collect())
            }
            Err(problem) => Ended::Refused(lines_of(&problem).iter().map(|line| self.call.out.sentence(line)).collect()),
        }
    }
}

/// True for a row of a report that names a path which the question has named or counted.
fn is_row(line: &str) -> bool {
    const WORDS: [&str; 9] =
        ["created", "modified", "deleted", "metadata", "unchanged", "restored", "removed", "recreated", "discarded"];
    line.starts_with("… and ") || WORDS.iter().any(|word| line.split(' ').next() == Some(word))
}

/// The call that makes a session stand as before; none for one without steps.
fn back_to(id: &Id, before: &Stand) -> Vec<Words> {
    if before.has_steps { vec![rewound(id, before.head)] } else { Vec::new() }
}

/// The name of a deed.
fn deed(verb: &str, picked: &Picked) -> String {
    format!("{verb} of {}", text::count(picked.0.len() as u64, "change"))
}

fn paths(picked: &Picked) -> Words {
    picked.0.iter().map(|pick| pick.path.as_path().into()).collect()
}

fn words<'w>(words: impl IntoIterator<Item = &'w str>) -> Words {
    words.into_iter().map(OsString::from).collect()
}

fn rollback(id: &Id) -> Words {
    words(["rollback", id.as_str()])
}

fn rewound(id: &Id, n: u32) -> Words {
    words(["rewind", id.as_str(), &n.to_string()])
}

fn parsed(words: &[OsString]) -> Result<Verb, String> {
    let all: Words = [OsString::from("recant")].into_iter().chain(words.iter().cloned()).collect();
    let cli = help::parse(&all).map_err(|error| error.to_string())?;
    cli.verb.ok_or_else(|| "no verb".into())
}

/// A call as a person types it, its paths counted.
fn typed(words: &[OsString]) -> String {
    let (paths, others): (Vec<&OsString>, Vec<&OsString>) =
        words.iter().partition(|word| word.as_encoded_bytes().starts_with(b"/"));
    let short = |word: &&OsString| {
        let word = word.to_string_lossy();
        Id::parse(&word).map_or_else(|| word.to_string(), |id| id.tail().to_owned())
    };
    let mut line = others.iter().map(short).collect::<Vec<_>>().join(" ");
    match &paths[..] {
        [] => {}
        [one] => line.push_str(&format!(" {}", one.to_string_lossy())),
        many => line.push_str(&format!(" and {} paths", many.len())),
    }
    crate::error::command(format_args!("{line}"))
}

impl Call {
    /// A call for an act of the screen, which was asked for there: what it prints is kept.
    fn for_screen(&self) -> Self {
        Self { out: self.out.keeping(), yes: true, can_ask: false, ..self.again() }
    }

    /// This call once more.
    fn again(&self) -> Self {
        Self {
            fs: Fs::new(),
            config: self.config.clone(),
            place: self.place.clone(),
            out: self.out.again(),
            yes: self.yes,
            can_ask: self.can_ask,
            is_far: self.is_far,
            store: OnceCell::new(),
            last: RefCell::default(),
            recovered: RefCell::default(),
        }
    }
}
