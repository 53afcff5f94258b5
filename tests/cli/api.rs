//! The face of the library, called as another program would; and how much of it there is.

use std::path::Path;

use crate::common::World;
use recant::{ChangeKind, Edit, Error, Kind, SessionId, Status, Store, Verb};

fn open(world: &World) -> Store {
    Store::open(world.store()).expect("a store")
}

/// Puts other content at a path.
fn write<'a>(path: &'a Path, content: &'a str) -> Edit<'a> {
    Edit::Write { path, content: Box::new(content.as_bytes()), mode: None }
}

/// A session that puts `new` at `file`, where `old` is.
fn edited(world: &World, store: &Store) -> SessionId {
    world.write("file", "old");
    let id = store.begin(None).expect("a session");
    store.stage(&id, [write(&world.path("file"), "new")]).expect("staged");
    id
}

fn refused<T>(done: Result<T, Error>, kind: Kind) -> Error {
    let error = done.err().expect("an error");
    assert_eq!(error.kind(), kind, "{error}");
    error
}

#[test]
fn a_session_that_is_discarded_changes_nothing_and_leaves_its_name() {
    let world = World::new();
    world.write("file", "old");
    let store = open(&world);
    let id = store.begin(Some("mine")).expect("a session");
    store.stage(&id, [write(&world.path("file"), "new")]).expect("staged");
    refused(store.begin(Some("mine")), Kind::Refused);
    store.discard(&id).expect("discarded");
    assert_eq!(world.read("file"), "old");
    assert!(world.recant("log --all").ok().stdout().contains("discard"));
    // What is on the tree is not dropped.
    let next = store.begin(Some("mine")).expect("a free name");
    store.stage(&next, [write(&world.path("file"), "new")]).expect("staged");
    store.plan(&next, Verb::Commit, &[]).and_then(recant::Plan::apply).expect("committed");
    refused(store.discard(&next), Kind::Refused);
    assert_eq!(world.read("file"), "new");
}

/// One edit takes up what another one of the same call has staged: its content, too.
#[test]
fn several_edits_of_a_path_that_are_staged_at_once_are_all_held() {
    let world = World::new();
    world.write("file", "old").chmod("file", 0o644);
    let before = world.manifest();
    let store = open(&world);
    let id = store.begin(None).expect("a session");
    let [file, made, directory] = ["file", "made", "directory"].map(|name| world.path(name));
    let mode = |path, mode| Edit::Mode { path, mode };
    let edits = [
        write(&file, "new"),
        mode(&file, 0o600),
        write(&made, "one"),
        mode(&made, 0o640),
        write(&made, "two"),
        mode(&made, 0o750),
        Edit::Mkdir { path: &directory, mode: None },
        mode(&directory, 0o700),
    ];
    store.stage(&id, edits).expect("staged");
    store.plan(&id, Verb::Commit, &[]).and_then(recant::Plan::apply).expect("committed");
    let state = |name: &str| world.manifest().0[name.as_bytes()].mode;
    assert_eq!((world.read("file"), state("file")), ("new".into(), 0o600));
    assert_eq!((world.read("made"), state("made"), state("directory")), ("two".into(), 0o750, 0o700));
    store.plan(&id, Verb::Rollback, &[]).and_then(recant::Plan::apply).expect("rolled back");
    before.without_directory_times().assert_same(&world.manifest().without_directory_times(), "rolled back");
}

#[test]
fn every_sort_of_edit_is_held_committed_rolled_back_and_redone() {
    let world = World::new();
    world.write("file", "old").write("gone/inside", "x").write("plain", "x").chmod("plain", 0o644);
    let store = open(&world);
    let before = world.manifest();
    let id = store.begin(Some("all-sorts")).expect("a session");
    let [file, gone, made, inside, link, plain] =
        ["file", "gone", "made", "made/file", "link", "plain"].map(|name| world.path(name));
    let edits = [
        Edit::Write { path: &file, content: Box::new(&b"new"[..]), mode: Some(0o600) },
        Edit::Delete { path: &gone, recursive: true },
        Edit::Mkdir { path: &made, mode: Some(0o750) },
        write(&inside, "more"),
        Edit::Symlink { path: &link, target: Path::new("file") },
        Edit::Mode { path: &plain, mode: 0o755 },
    ];
    store.stage(&id, edits).expect("staged");
    before.assert_same(&world.manifest(), "staging");

    let kinds: Vec<_> = store
        .changes(&id)
        .expect("changes")
        .into_iter()
        .map(|change| (world.mask(&change.path.display().to_string()), change.kind))
        .collect();
    use ChangeKind::{Created, Deleted, Metadata, Modified};
    let expected = [
        ("file", Modified),
        ("gone", Deleted),
        ("gone/inside", Deleted),
        ("link", Created),
        ("made", Created),
        ("made/file", Created),
        ("plain", Metadata),
    ];
    assert_eq!(kinds, expected.map(|(name, kind)| (format!("/world/tree/{name}"), kind)));
    let mut patch = Vec::new();
    store.patch(&id, &mut patch).expect("a patch");
    assert_eq!(String::from_utf8(patch).expect("text"), world.recant(&format!("diff {id}")).ok().stdout());

    let plan = store.plan(&id, Verb::Commit, &[]).expect("a plan");
    let report = plan.report().expect("no conflict").clone();
    before.assert_same(&world.manifest(), "planning");
    assert_eq!(plan.apply().expect("committed").changes, report.changes);
    let after = world.manifest();
    assert_eq!((world.read("file"), world.read("made/file"), world.read("link")), ("new".into(), "more".into(), "new".into()));
    store.plan(&id, Verb::Rollback, &[]).expect("a plan").apply().expect("rolled back");
    before.assert_same(&world.manifest(), "rollback");
    store.plan(&id, Verb::Redo, &[]).expect("a plan").apply().expect("redone");
    after.assert_same(&world.manifest(), "redo");
    let listed = store.sessions().expect("a list").pop().expect("one session").expect("that can be read");
    assert_eq!(&listed.id, &id);
    assert_eq!((listed.name.as_deref(), listed.status, listed.changes), (Some("all-sorts"), Status::Committed, 7));
    assert_eq!(store.find("all-sorts").expect("found"), id);
    assert_eq!(id.to_string().parse::<SessionId>().expect("an id"), id);
    world.assert_tidy("the face");
}

#[test]
fn one_edit_that_is_refused_stages_none() {
    let world = World::new();
    let store = open(&world);
    let id = edited(&world, &store);
    let [first, second] = ["first", "missing/second"].map(|name| world.path(name));
    let edits = [write(&first, "1"), write(&second, "2")];
    let error = refused(store.stage(&id, edits), Kind::Refused);
    assert!(error.path().is_some_and(|path| path.ends_with("/missing")) && error.remedy().is_some(), "{error:?}");
    assert_eq!(error.state(), Some("nothing was changed"));
    assert_eq!(store.changes(&id).expect("changes").len(), 1);
    refused(store.stage(&id, [Edit::Delete { path: Path::new("file"), recursive: false }]), Kind::Refused);
    refused(store.plan(&id, Verb::Commit, &[Path::new("file")]).map(drop), Kind::Refused);
    refused(Store::open("store").map(drop), Kind::Refused);
}

#[test]
fn a_conflict_is_planned_stops_a_commit_and_gives_way_to_force() {
    let world = World::new();
    let store = open(&world);
    let id = edited(&world, &store);
    let plan = store.plan(&id, Verb::Commit, &[]).expect("a plan");
    assert!(plan.conflicts().is_empty());
    // Between plan and apply.
    world.write("file", "theirs");
    let error = refused(plan.apply(), Kind::Conflict);
    assert!(error.to_string().contains("changed since") && error.path().is_some(), "{error}");
    assert_eq!(world.read("file"), "theirs");
    let plan = store.plan(&id, Verb::Commit, &[]).expect("a plan");
    let [conflict] = plan.conflicts() else { panic!("{:?}", plan.conflicts()) };
    assert!(conflict.path == world.path("file") && conflict.forcible && plan.report().is_none(), "{conflict:?}");
    plan.force().expect("committed");
    assert_eq!(world.read("file"), "new");
    store.plan(&id, Verb::Rollback, &[&world.path("file")]).expect("a plan").apply().expect("rolled back");
    assert_eq!(world.read("file"), "theirs");
}

#[test]
fn a_plan_holds_its_session_and_no_other() {
    let world = World::new();
    let store = open(&world);
    let id = edited(&world, &store);
    let plan = store.plan(&id, Verb::Commit, &[]).expect("a plan");
    refused(store.plan(&id, Verb::Commit, &[]).map(drop), Kind::Busy);
    world.recant(&format!("commit {id}")).with(6);
    let other = store.begin(None).expect("another");
    store.stage(&other, [write(&world.path("other"), "x")]).expect("staged");
    drop(plan);
    world.recant(&format!("commit {id}")).ok();
}

#[test]
fn a_snapshot_is_listed_restored_and_the_restore_taken_back() {
    let world = World::new();
    world.write("file", "first").write(".git/config", "x");
    let store = open(&world);
    let (number, skipped) = store.take_snapshot(&world.tree(), Some("one")).expect("a snapshot");
    assert_eq!((number, skipped.len()), (0, 0), "{skipped:?}");
    let listed = store.snapshots(&world.tree()).expect("a list").pop().expect("one").expect("that can be read");
    assert_eq!((listed.number, listed.message.as_deref()), (0, Some("one")));
    let nothing = store.restore(&world.tree(), 0).expect("nothing to do");
    assert!(nothing.session.is_none() && nothing.changes.is_empty(), "{nothing:?}");
    world.write("file", "second").write("more", "x");
    let before = world.manifest();
    let report = store.restore(&world.tree(), 0).expect("restored");
    assert_eq!((report.changes.len(), world.read("file"), world.exists("more")), (2, "first".into(), false));
    assert!(world.recant("log --all").ok().stdout().contains("snapshot restore 0"));
    let id = report.session.expect("a session");
    store.plan(&id, Verb::Rollback, &[]).expect("a plan").apply().expect("taken back");
    before.assert_same(&world.manifest(), "the restore taken back");
    refused(store.restore(&world.tree(), 1), Kind::Refused);
    assert!(store.snapshots(&world.path("nowhere")).expect("a list").is_empty());
    world.assert_tidy("the face");
}

#[test]
fn threads_share_a_store() {
    fn shared<T: Send + Sync>(_: &T) {}
    let world = World::new();
    let store = open(&world);
    shared(&store);
    std::thread::scope(|scope| {
        for name in ["a", "b", "c", "d"] {
            let (world, store) = (&world, &store);
            scope.spawn(move || {
                let id = store.begin(None).expect("a session");
                store.stage(&id, [write(&world.path(name), name)]).expect("staged");
                store.plan(&id, Verb::Commit, &[]).expect("a plan").apply().expect("committed");
            });
        }
    });
    assert_eq!(["a", "b", "c", "d"].map(|name| world.read(name)), ["a", "b", "c", "d"]);
    world.assert_tidy("threads");
}

#[test]
fn the_signals_that_a_program_handles_are_its_own() {
    let world = World::new();
    let store = open(&world);
    let id = edited(&world, &store);
    store.plan(&id, Verb::Commit, &[]).expect("a plan").apply().expect("committed");
    let status = std::fs::read_to_string("/proc/self/status").expect("this process");
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:\t")).expect("a mask");
    let caught = u64::from_str_radix(caught, 16).expect("hexadecimal");
    for signal in [1, 2, 15] {
        assert_eq!(caught & 1 << (signal - 1), 0, "signal {signal} has a handler: {status}");
    }
}

#[test]
fn what_a_crash_left_is_recovered_before_anything_is_changed() {
    let world = World::new();
    let store = open(&world);
    for asks in [true, false] {
        let id = edited(&world, &store);
        let before = world.manifest();
        let log = world.root().join("steps");
        let kill = |order: String| world.call(["commit", &*id.to_string()]).env("RECANT_STEPS", order).run();
        kill(format!("log:{}", log.display())).ok();
        store.plan(&id, Verb::Rollback, &[]).expect("a plan").apply().expect("rolled back");
        let steps = std::fs::read_to_string(&log).expect("the steps");
        let n = steps.lines().position(|line| line.contains("session.json.new")).expect("such a step") + 1;
        world.remove(&log);
        // Redo has the same steps but for what is there by then: after the exchange, before the seal.
        let killed = world.call(["redo", &*id.to_string()]).env("RECANT_STEPS", format!("kill:{n}")).run();
        assert_eq!(killed.status, 137, "{killed}");
        assert_eq!(world.journals().len(), 1, "{steps}");
        if asks {
            let recovered = store.recover().expect("recovered");
            assert_eq!((recovered.len(), &recovered[0].session), (1, &id));
            assert!(recovered[0].outcome.as_ref().is_ok_and(Vec::is_empty), "{recovered:?}");
            assert!(store.recover().expect("nothing left").is_empty());
        } else {
            store.begin(None).expect("a session");
        }
        assert!(world.journals().is_empty());
        before.assert_same(&world.manifest(), "recovery");
    }
}

/// The most public items that the face may have: what is public has to be kept.
const MOST: usize = 84;

/// A program's author reads all of it. Counted are types, functions, methods, variants, and fields of structs; not what a trait gives, nor the
/// fields of a variant.
#[test]
fn the_face_is_small_and_all_of_it_is_documented() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let read = |name: &str| std::fs::read_to_string(top.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(read("api/mod.rs").contains("\n#![deny(missing_docs)]\n"));

    let mut items = Vec::new();
    for entry in std::fs::read_dir(top.join("api")).expect("the face") {
        let name = entry.expect("a file of it").file_name().into_string().expect("an ASCII name");
        items.extend(public_items(&read(&format!("api/{name}"))));
    }
    // Of the crate's error those types that it shows.
    let shown = ["Error", "Kind"];
    items.extend(public_items(&read("error.rs")).into_iter().filter(|item| item.split("::").any(|part| shown.contains(&part))));
    items.sort();
    println!("{} public items: {}", items.len(), items.join(", "));
    assert!(items.len() <= MOST, "{} public items, more than {MOST}: {}", items.len(), items.join(", "));

    // Nothing else is public, and every type of the face is.
    let lib = read("lib.rs");
    let named = lib.split_once("pub use api::{").and_then(|(_, rest)| rest.split_once('}')).expect("the face").0;
    let mut named: Vec<&str> = named.split(',').map(str::trim).filter(|name| !name.is_empty()).chain(shown).collect();
    named.sort_unstable();
    let types: Vec<&str> = items.iter().filter(|item| !item.contains("::")).map(String::as_str).collect();
    assert_eq!(named, types);
    let public = lib.lines().filter(|line| line.starts_with("pub ")).filter_map(|line| line.split('{').next());
    assert_eq!(
        public.collect::<Vec<_>>(),
        ["pub use api::", "pub use error::", "pub fn main() -> ExitCode ", "pub mod internals "]
    );
    assert!(lib.contains("\npub use error::{Error, Kind};\n"));
    let hidden = "#[cfg(feature = \"crash-points\")]\n#[doc(hidden)]\npub mod internals {";
    assert!(lib.contains(hidden) && lib.contains("#[doc(hidden)]\npub fn main()"));
}

/// The public items of a file: `Type`, `Type::method`, `Type::Variant`, `Type::field`. rustfmt has them one a line.
fn public_items(text: &str) -> Vec<String> {
    let mut items = Vec::new();
    // The type, enum or impl that a line lies in, and whether its names are public without a word.
    let mut within: Option<(String, bool)> = None;
    let word = |text: &str| text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default().to_owned();
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with("//")) {
        let depth = line.len() - line.trim_start().len();
        let line = line.trim_start();
        let public = line.strip_prefix("pub ");
        if depth == 0 {
            within = None;
            let declared = ["struct ", "enum ", "fn ", "type ", "const ", "static ", "trait "]
                .into_iter()
                .find_map(|kind| Some((kind, word(public?.strip_prefix(kind)?))));
            if let Some((kind, name)) = declared {
                within = Some((name.clone(), kind == "enum "));
                items.push(name);
            } else if let Some(of) = line.strip_prefix("impl").filter(|_| !line.contains(" for ")) {
                let of = if of.starts_with('<') { of.split_once("> ").map_or("", |(_, of)| of) } else { of };
                within = Some((word(of.trim_start()), false));
            }
        } else if let (4, Some((of, all))) = (depth, &within) {
            let method = public.map(|rest| rest.trim_start_matches("const ").trim_start_matches("fn "));
            let variant = Some(line).filter(|line| *all && line.starts_with(|c: char| c.is_ascii_uppercase()));
            items.extend(method.or(variant).map(|rest| format!("{of}::{}", word(rest))));
        }
    }
    items
}
