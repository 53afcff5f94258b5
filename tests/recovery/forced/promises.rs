//! What is promised, asserted after each verb and each recovery.

use std::collections::BTreeMap;

use serde_json::Value;

use super::sight::{Change, Moment, assert_others, differs, places_of, rows};
use super::{Act, Scene};
use crate::common::Said;

/// What is promised.
impl Scene {
    /// What was reported to be done is done: everything, where nothing was left out.
    pub fn assert_reported(&self, act: &Act, said: &Said, now: &Moment, is_all: bool) {
        let report = said.json();
        let word = |row: &Value| row["done"].as_str().expect("a word").to_owned();
        let done: BTreeMap<String, String> =
            rows(&report["paths"]).iter().map(|row| (self.below(&row["path"]), word(row))).collect();
        for change in &act.changes {
            let how = done.get(&change.path);
            let as_it_is = |text: &String| {
                text.contains("given back as it is now") && self.is_named(&change.path, std::slice::from_ref(text))
            };
            if (how.is_some() || is_all) && !act.named.iter().any(as_it_is) {
                assert_at(act, change, now, how.is_some_and(|how| how == "unchanged"));
            }
        }
        assert_others(&act.changes, &act.before.tree, &now.tree, &act.what);
    }

    /// What has changed its side is where that says, though nothing has reported it: nor which file was given back as it is now.
    pub fn assert_settled(&self, act: &Act, now: &Moment) {
        let sides = self.sides();
        // What left with a part is in the session no more.
        let moved = act.changes.iter().filter(|change| sides.get(&change.path) != act.sides.get(&change.path));
        let is_file = |change: &&Change| now.tree.get(&change.path).is_some_and(|found| found.kind == "file");
        let moved = moved.filter(|change| act.verb != "rollback" || !is_file(change));
        moved.for_each(|change| assert_at(act, change, now, true));
        assert_others(&act.changes, &act.before.tree, &now.tree, &act.what);
    }

    /// Untouched is the same object with all that it has, at every path, and on the same side.
    pub fn assert_untouched(&self, act: &Act, now: &Moment) {
        for path in act.before.tree.keys().chain(now.tree.keys()) {
            assert_eq!(act.before.tree.get(path), now.tree.get(path), "{}: {path} before and now", act.what);
        }
        assert_eq!(act.sides, self.sides(), "{}: sides before and now", act.what);
    }

    /// What was taken off the tree lies where it is kept: in the checkpoint what was put under, in `displaced` and named what gave
    /// way besides. What the session has brought may be back among what it holds.
    pub fn assert_named(&self, act: &Act, now: &Moment) {
        for path in now.in_store.get(&act.late).into_iter().chain(now.in_tree.get(&act.late)).flatten() {
            let kept = path.split('/').find(|name| name.contains("-kept-"));
            let is_named = kept.is_none_or(|kept| act.named.iter().any(|text| text.contains(kept)));
            assert!(is_named, "{}: what came late is in {path}, and that is not said: {:?}", act.what, act.named);
        }
        let is_kept = |path: &&String| path.contains("/displaced/");
        for (token, paths) in act.before.in_tree.iter().filter(|(token, _)| act.owed.contains(token)) {
            if now.in_tree.contains_key(token) {
                continue;
            }
            let (there, before) = (&now.in_store[token], act.before.in_store.get(token));
            if there.iter().filter(is_kept).any(|path| before.is_none_or(|before| !before.contains(path))) {
                let is_named = paths.iter().any(|path| self.is_named(path, &act.named));
                assert!(is_named, "{}: {paths:?} is in {there:?}, and that is not said: {:?}", act.what, act.named);
            } else if !self.brought.contains(token) {
                let is_fine = |path: &String| is_kept(&path) || act.verb != "rollback" && path.contains("/checkpoint/");
                assert!(there.iter().any(is_fine), "{}: {paths:?} is in {there:?} alone", act.what);
            }
        }
    }

    /// Whether the path, or a directory that it lay in, stands in one of these texts.
    pub fn is_named(&self, path: &str, texts: &[String]) -> bool {
        let path = self.world.path(path);
        let above = path.ancestors().take_while(|directory| *directory != self.world.tree());
        above.map(|directory| directory.display().to_string()).any(|directory| {
            texts.iter().any(|text| {
                let after = text.match_indices(&directory).map(|(at, _)| &text[at + directory.len()..]);
                after.into_iter().any(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || "/.".contains(c)))
            })
        })
    }

    /// The checkpoint can be given back: an original that has a name outside of it is what is written under that.
    pub fn assert_whole(&mut self, what: &str) {
        let id = self.id.clone();
        let said = self.recant(&["checkpoint", "verify", &id], "");
        // These it can be given back with: as they are now, by force.
        let is_fair = |line: &str| line.contains("under another name") || line.contains("put into the kept directory since");
        let is_whole = said.status == 0 || said.status == 3 && said.stderr().lines().all(is_fair);
        assert!(is_whole, "{what}: verify {said}");
    }
}

#[track_caller]
pub fn assert_kept(act: &Act, now: &Moment) {
    let lost: Vec<_> = act.owed.difference(&now.all()).map(|token| (*token, places_of(*token, &act.before))).collect();
    assert!(lost.is_empty(), "{}: lost, and where it was: {lost:?}", act.what);
}

#[track_caller]
pub fn assert_at(act: &Act, change: &Change, now: &Moment, is_already: bool) {
    let why = differs(now.tree.get(&change.path), change, is_already);
    assert_eq!(why, None, "{}: {} was said to be done", act.what, change.path);
}

/// Notes what a report says to be kept, and gives what it says of a recovery.
pub fn named_of(act: &mut Act, said: &Said) -> String {
    if said.out.is_empty() {
        return String::new();
    }
    let report = said.json();
    let recovered = rows(&report["recovered"]);
    let kept = recovered.iter().flat_map(|row| rows(&row["kept"])).map(|row| &row["path"]);
    let notes = recovered.iter().chain([&report]).flat_map(|row| rows(&row["notes"]));
    let texts = rows(&report["displaced"]).iter().chain(kept).chain(notes);
    act.named.extend(texts.map(|text| text.as_str().expect("a text").to_owned()));
    let left = recovered.iter().flat_map(|row| rows(&row["left"]));
    act.named
        .extend(left.map(|row| format!("{}: {}", row["path"].as_str().expect("a path"), row["why"].as_str().expect("a reason"))));
    recovered.first().map_or_else(String::new, |row| row["result"].as_str().expect("a word").to_owned())
}
