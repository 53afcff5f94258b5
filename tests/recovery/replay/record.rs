//! The record of one run: what each step did to which object, as `RECANT_STEPS=record:DIR` wrote it (src/fs/watch).

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

/// Device and inode number.
pub type Key = (u64, u64);

/// A name in a directory.
pub type Slot = (Key, String);

/// An object without its content and its names.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Object {
    pub dev: u64,
    pub ino: u64,
    pub kind: String,
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub mtime: (i64, i64),
    pub size: u64,
    pub xattrs: Vec<(String, Vec<u8>)>,
}

impl Object {
    pub fn key(&self) -> Key {
        (self.dev, self.ino)
    }
}

#[derive(Debug, Clone, Deserialize)]
struct Seen {
    directory: Option<Object>,
    path: Option<String>,
    name: Option<String>,
    object: Option<Object>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Before { n: usize, call: String, site: String, on: Vec<Seen> },
    After { after: usize, on: Vec<Seen> },
}

/// A name that leads elsewhere, or nowhere, than before.
#[derive(Debug, Clone)]
pub struct Renamed {
    pub slot: Slot,
    pub to: Option<Key>,
}

/// What a step syncs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sync {
    Object(Key),
    FileSystem(u64),
}

/// One step that was made.
#[derive(Debug, Clone)]
pub struct Step {
    /// Its number, from 1.
    pub n: usize,
    pub call: String,
    /// The line of source that asked for it, and for a sync of what kind of thing.
    pub site: String,
    /// For people: what it was done to.
    pub what: String,
    /// The names that changed.
    pub names: Vec<Renamed>,
    /// All objects that it touched, as they are afterwards.
    pub after: Vec<Object>,
    /// All objects that it touched, as they were.
    pub before: Vec<Object>,
    pub sync: Option<Sync>,
}

/// A whole run, or as far as it came.
#[derive(Default)]
pub struct Record {
    pub steps: Vec<Step>,
    /// What each name led to before the first step that touched it.
    pub first: BTreeMap<Slot, Option<Key>>,
    /// The files that the user had not synced when it began, with their sizes.
    pub dirty: BTreeMap<Key, u64>,
}

impl Record {
    pub fn read(directory: &Path) -> Self {
        let text = std::fs::read_to_string(directory.join("steps.jsonl")).expect("a record");
        let mut lines: Vec<Line> = text.lines().map(|line| serde_json::from_str(line).expect("a line of a record")).collect();
        // The last step was not looked at once more: it is a sync, which changes nothing, or the run was killed before it.
        if let Some(Line::Before { n, on, .. }) = lines.last() {
            lines.push(Line::After { after: *n, on: on.clone() });
        }
        let (mut steps, mut first) = (Vec::new(), BTreeMap::new());
        for pair in lines.chunks(2) {
            let [Line::Before { n, call, site, on }, Line::After { after, on: then }] = pair else {
                panic!("a record has two lines a step");
            };
            assert_eq!(n, after);
            steps.push(step(*n, call, site, on, then, &mut first));
        }
        Self { steps, first, dirty: BTreeMap::new() }
    }

    /// One run and the next, as one.
    pub fn then(mut self, later: Self) -> Self {
        let made = self.steps.len();
        self.steps.extend(later.steps.into_iter().map(|step| Step { n: made + step.n, ..step }));
        for (slot, to) in later.first {
            self.first.entry(slot).or_insert(to);
        }
        self
    }
}

fn step(n: usize, call: &str, site: &str, on: &[Seen], then: &[Seen], first: &mut BTreeMap<Slot, Option<Key>>) -> Step {
    let mut names = Vec::new();
    for (was, is) in on.iter().zip(then) {
        let (Some(directory), Some(name)) = (&was.directory, &was.name) else { continue };
        let slot = (directory.key(), name.clone());
        let (from, to) = (was.object.as_ref().map(Object::key), is.object.as_ref().map(Object::key));
        if from != to {
            first.entry(slot.clone()).or_insert(from);
            names.push(Renamed { slot, to });
        }
    }
    let object = on.first().and_then(|seen| seen.object.as_ref());
    let sync = match (call, object) {
        ("syncfs", Some(object)) => Some(Sync::FileSystem(object.dev)),
        ("fsync", Some(object)) => Some(Sync::Object(object.key())),
        _ => None,
    };
    let site = match sync {
        Some(Sync::FileSystem(_)) => format!("{site} file system"),
        Some(Sync::Object(_)) => format!("{site} {}", object.map_or("", |object| &object.kind)),
        None => site.to_owned(),
    };
    let all = |seen: &[Seen]| -> Vec<Object> {
        seen.iter().flat_map(|seen| [&seen.directory, &seen.object]).flatten().cloned().collect()
    };
    let what: Vec<String> = on
        .iter()
        .map(|seen| match (&seen.path, &seen.name) {
            (Some(path), Some(name)) => format!("{path}/{name}"),
            _ => format!("inode {}", seen.object.as_ref().map_or(0, |object| object.ino)),
        })
        .collect();
    Step { n, call: call.into(), site, what: what.join(" "), names, after: all(then), before: all(on), sync }
}
