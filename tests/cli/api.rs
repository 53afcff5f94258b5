//! The library, called as another program would; and how much of it there is.

use std::path::Path;

use crate::common::World;
use recant::internals::{AbsPath, Fs, Id};
use recant::{Acted, Commit, Desk, Edit, End, Error, Kind, Restore, Rollback, SnapshotRequest, Target, Which};

fn open(world: &World) -> Desk {
    Desk::open(world.store()).expect("a desk")
}

/// Stages other content at a path.
fn write(world: &World, desk: &Desk, id: &str, path: &str, content: &str) -> Result<(), Error> {
    stage(world, desk, id, [(path, file(&mut content.as_bytes(), None))])
}

/// A file with this content.
fn file<'a>(content: &'a mut &[u8], mode: Option<u32>) -> Edit<'a> {
    Edit::Write { content, source: "a test's content", mode, over_directory: false }
}

fn stage<'a>(world: &World, desk: &Desk, id: &str, edits: impl IntoIterator<Item = (&'a str, Edit<'a>)>) -> Result<(), Error> {
    let edits = edits.into_iter().map(|(path, edit)| (Path::new(path), edit));
    recant::stage(desk, id, &world.tree(), edits, false).map(drop)
}

fn begin(desk: &Desk, name: Option<&str>) -> String {
    recant::begin(desk, name).expect("a session").id().to_owned()
}

/// A session that puts `new` at `file`, where `old` is.
fn edited(world: &World, desk: &Desk) -> String {
    world.write("file", "old");
    let id = begin(desk, None);
    write(world, desk, &id, "file", "new").expect("staged");
    id
}

fn commit(desk: &Desk, id: &str) -> Result<Option<Acted>, Error> {
    recant::commit(desk, &Commit::of(Target::all(id)))
}

fn rollback(desk: &Desk, id: &str) -> Result<Option<Acted>, Error> {
    recant::rollback(desk, &Rollback::of(Target::all(id)))
}

fn discard(desk: &Desk, id: &str) -> Result<recant::Discarded, Error> {
    recant::discard(desk, &[id.to_owned()], End::Aside, false, None)
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
    let desk = open(&world);
    let id = begin(&desk, Some("mine"));
    write(&world, &desk, &id, "file", "new").expect("staged");
    refused(recant::begin(&desk, Some("mine")), Kind::Refused);
    assert!(discard(&desk, &id).expect("discarded").stopped().is_none());
    assert_eq!(world.read("file"), "old");
    assert!(world.recant("log --all").ok().stdout().contains("discard"));
    // What is on the tree is not dropped.
    let next = begin(&desk, Some("mine"));
    write(&world, &desk, &next, "file", "new").expect("staged");
    commit(&desk, &next).expect("committed");
    refused(discard(&desk, &next), Kind::Refused);
    assert_eq!(world.read("file"), "new");
}

/// One edit takes up what another one of the same call has staged: its content, too.
#[test]
fn several_edits_of_a_path_that_are_staged_at_once_are_all_held() {
    let world = World::new();
    world.write("file", "old").chmod("file", 0o644);
    let before = world.manifest();
    let desk = open(&world);
    let id = begin(&desk, None);
    let [mut new, mut one, mut two] = ["new", "one", "two"].map(str::as_bytes);
    let edits = [
        ("file", file(&mut new, None)),
        ("file", Edit::Chmod(0o600)),
        ("made", file(&mut one, None)),
        ("made", Edit::Chmod(0o640)),
        ("made", file(&mut two, None)),
        ("made", Edit::Chmod(0o750)),
        ("directory", Edit::Mkdir(None)),
        ("directory", Edit::Chmod(0o700)),
    ];
    stage(&world, &desk, &id, edits).expect("staged");
    commit(&desk, &id).expect("committed");
    let state = |name: &str| world.manifest().0[name.as_bytes()].mode;
    assert_eq!((world.read("file"), state("file")), ("new".into(), 0o600));
    assert_eq!((world.read("made"), state("made"), state("directory")), ("two".into(), 0o750, 0o700));
    rollback(&desk, &id).expect("rolled back");
    before.without_directory_times().assert_same(&world.manifest().without_directory_times(), "rolled back");
}

#[test]
fn every_sort_of_edit_is_held_committed_rolled_back_and_redone() {
    let world = World::new();
    world.write("file", "old").write("gone/inside", "x").write("plain", "x").chmod("plain", 0o644);
    let desk = open(&world);
    let before = world.manifest();
    let id = begin(&desk, Some("all-sorts"));
    let [mut new, mut more] = ["new", "more"].map(str::as_bytes);
    let edits = [
        ("file", file(&mut new, Some(0o600))),
        ("gone", Edit::Delete { recursive: true }),
        ("made", Edit::Mkdir(Some(0o750))),
        ("made/file", file(&mut more, None)),
        ("link", Edit::Symlink { target: b"file", over_directory: false }),
        ("plain", Edit::Chmod(0o755)),
    ];
    stage(&world, &desk, &id, edits).expect("staged");
    before.assert_same(&world.manifest(), "staging");

    let shown = recant::show(&desk, Some("all-sorts"), &[]).expect("shown");
    let changes: Vec<_> = shown.changes().map(|(path, change)| (world.mask(&path.display().to_string()), change)).collect();
    let expected = [
        ("file", "modified"),
        ("gone", "deleted"),
        ("gone/inside", "deleted"),
        ("link", "created"),
        ("made", "created"),
        ("made/file", "created"),
        ("plain", "metadata"),
    ];
    assert_eq!(changes, expected.map(|(name, change)| (format!("/world/tree/{name}"), change)));
    let mut patch = Vec::new();
    recant::patch(&desk, &id, &mut patch).expect("a patch");
    assert_eq!(String::from_utf8(patch).expect("text"), world.recant(&format!("diff {id}")).ok().stdout());

    let would = recant::commit(&desk, &Commit::of(Target::all(&id).dry_run())).expect("no conflict").expect("changes");
    before.assert_same(&world.manifest(), "a dry run");
    let done = commit(&desk, &id).expect("committed").expect("changes");
    assert!(done.paths().eq(would.paths()) && done.paths().count() == 7 && done.session() == id);
    assert!(done.left().count() == 0 && done.notes().is_empty(), "{done:?}");
    let after = world.manifest();
    assert_eq!((world.read("file"), world.read("made/file"), world.read("link")), ("new".into(), "more".into(), "new".into()));
    rollback(&desk, &id).expect("rolled back");
    before.assert_same(&world.manifest(), "rollback");
    recant::redo(&desk, &Target::all(&id), false).expect("redone");
    after.assert_same(&world.manifest(), "redo");
    let listed = recant::list(&desk, &Which::all()).expect("a list");
    let [session] = listed.sessions() else { panic!("{listed:?}") };
    assert_eq!((session.id(), session.name(), session.status()), (&*id, Some("all-sorts"), "committed"));
    world.assert_tidy("the library");
}

/// What a value holds beyond its methods: it is what the program prints.
#[test]
fn values_are_the_json_of_the_program() {
    let world = World::new();
    let desk = open(&world);
    let id = edited(&world, &desk);
    let json = |words: &str| {
        let mut said = world.recant(words).ok().json();
        said.as_object_mut().and_then(|said| said.remove("schema")).expect("a document");
        said
    };
    let shown = recant::show(&desk, Some(&id), &[]).expect("shown");
    assert_eq!(serde_json::to_value(&shown).expect("JSON"), json(&format!("show {id} --json")));
    let listed = recant::list(&desk, &Which::all()).expect("a list");
    assert_eq!(serde_json::to_value(&listed).expect("JSON"), json("list --all --json"));
    let would = recant::commit(&desk, &Commit::of(Target::all(&id).dry_run())).expect("no conflict");
    let mut told = json(&format!("commit {id} --dry-run --json"));
    // It goes by the settings of the caller.
    told.as_object_mut().and_then(|told| told.remove("summary")).expect("a summary");
    assert_eq!(serde_json::to_value(&would).expect("JSON"), told);
}

#[test]
fn one_edit_that_is_refused_stages_none() {
    let world = World::new();
    let desk = open(&world);
    let id = edited(&world, &desk);
    let [mut one, mut two] = ["1", "2"].map(str::as_bytes);
    let edits = [("first", file(&mut one, None)), ("missing/second", file(&mut two, None))];
    let error = refused(stage(&world, &desk, &id, edits), Kind::Refused);
    assert!(error.path().is_some_and(|path| path.ends_with("/missing")) && error.remedy().is_some(), "{error:?}");
    assert_eq!(error.state(), Some("nothing was changed"));
    assert_eq!(recant::show(&desk, Some(&id), &[]).expect("shown").changes().count(), 1);
    let elsewhere = Target::all(&id).at(&world.tree(), ["elsewhere"]);
    refused(recant::commit(&desk, &Commit::of(elsewhere)), Kind::Refused);
    refused(Desk::open("store").map(drop), Kind::Refused);
}

#[test]
fn a_conflict_stops_a_commit_is_named_and_gives_way_to_force() {
    let world = World::new();
    let desk = open(&world);
    let id = edited(&world, &desk);
    let all = Target::all(&id);
    recant::commit(&desk, &Commit::of(all.clone().dry_run())).expect("no conflict");
    // Between the dry run and the act.
    world.write("file", "theirs");
    for of in [all.clone(), all.clone().dry_run()] {
        let error = refused(recant::commit(&desk, &Commit::of(of)), Kind::Conflict);
        let [against] = &error.against()[..] else { panic!("{error:?}") };
        assert_eq!(against.path, world.path("file").to_str().expect("text"));
        assert!(against.why.starts_with("changed since"), "{against:?}");
    }
    assert_eq!(world.read("file"), "theirs");
    recant::commit(&desk, &Commit::of(all.clone()).force()).expect("committed");
    assert_eq!(world.read("file"), "new");
    recant::rollback(&desk, &Rollback::of(all.at(&world.tree(), ["file"]))).expect("rolled back");
    assert_eq!(world.read("file"), "theirs");
}

/// The error of several conflicts has them all, and so has that of one.
#[test]
fn each_conflict_of_several_is_named() {
    let world = World::new();
    let desk = open(&world);
    let id = edited(&world, &desk);
    world.write("other", "old");
    write(&world, &desk, &id, "other", "new").expect("staged");
    commit(&desk, &id).expect("committed");
    world.write("file", "theirs").write("other", "theirs");
    let error = refused(rollback(&desk, &id), Kind::Conflict);
    let paths: Vec<String> = error.against().into_iter().map(|against| world.mask(&against.path)).collect();
    assert_eq!(paths, ["/world/tree/file", "/world/tree/other"]);
    recant::rollback(&desk, &Rollback::of(Target::all(&id)).force()).expect("rolled back");
    assert_eq!((world.read("file"), world.read("other")), ("old".into(), "old".into()));
}

#[test]
fn a_call_is_refused_while_another_works_in_its_session_and_goes_on_in_others() {
    let world = World::new();
    let desk = open(&world);
    let id = edited(&world, &desk);
    let store = AbsPath::parse(world.store().to_str().expect("text")).expect("a path");
    let store = recant::internals::Store::open(&store).expect("it is read").expect("a store");
    let held = store.lock_session(&Fs::new(), &Id::parse(&id).expect("an id")).expect("the lock");
    refused(commit(&desk, &id), Kind::Busy);
    refused(recant::commit(&desk, &Commit::of(Target::all(&id).dry_run())), Kind::Busy);
    let other = begin(&desk, None);
    write(&world, &desk, &other, "other", "x").expect("staged");
    drop(held);
    // Nothing is locked between two calls.
    recant::commit(&desk, &Commit::of(Target::all(&id).dry_run())).expect("a dry run");
    world.recant(&format!("commit {id}")).ok();
}

#[test]
fn a_snapshot_is_listed_restored_and_the_restore_taken_back() {
    let world = World::new();
    world.write("file", "first").write(".git/config", "x");
    let desk = open(&world);
    let tree = world.tree();
    let taken = recant::take_snapshot(&desk, Some(&tree), SnapshotRequest::of(Some("one")), None).expect("a snapshot");
    assert_eq!((taken.n(), taken.left().count()), (0, 0), "{taken:?}");
    let listed = recant::snapshots(&desk, Some(&tree)).expect("a list");
    assert_eq!(listed.snapshots().collect::<Vec<_>>(), [(0, Some("one"))]);
    let restore = |key| recant::restore(&desk, &Restore::all(&tree, key));
    let nothing = restore("0").expect("nothing to do");
    assert!(nothing.session().is_none() && nothing.paths().count() == 0, "{nothing:?}");
    world.write("file", "second").write("more", "x");
    let before = world.manifest();
    let restored = restore("last").expect("restored");
    let paths: Vec<_> = restored.paths().map(|(path, done)| (world.mask(&path.display().to_string()), done)).collect();
    assert_eq!(paths, [("/world/tree/file".into(), "restored"), ("/world/tree/more".into(), "removed")]);
    assert_eq!((world.read("file"), world.exists("more"), restored.left().count()), ("first".into(), false, 0));
    assert!(world.recant("log --all").ok().stdout().contains("snapshot restore 0"));
    rollback(&desk, restored.session().expect("a session")).expect("taken back");
    before.assert_same(&world.manifest(), "the restore taken back");
    refused(restore("1"), Kind::Refused);
    world.assert_tidy("the library");
}

#[test]
fn threads_share_a_store_by_a_desk_each() {
    let world = World::new();
    std::thread::scope(|scope| {
        for name in ["a", "b", "c", "d"] {
            let world = &world;
            scope.spawn(move || {
                let desk = open(world);
                let id = begin(&desk, None);
                write(world, &desk, &id, name, name).expect("staged");
                commit(&desk, &id).expect("committed");
            });
        }
    });
    assert_eq!(["a", "b", "c", "d"].map(|name| world.read(name)), ["a", "b", "c", "d"]);
    world.assert_tidy("threads");
}

#[test]
fn the_signals_that_a_program_handles_are_its_own() {
    let world = World::new();
    let desk = open(&world);
    let id = edited(&world, &desk);
    commit(&desk, &id).expect("committed");
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
    let desk = open(&world);
    for asks in [true, false] {
        let id = edited(&world, &desk);
        let before = world.manifest();
        let log = world.root().join("steps");
        let kill = |order: String| world.call(["commit", &*id]).env("RECANT_STEPS", order).run();
        kill(format!("log:{}", log.display())).ok();
        rollback(&desk, &id).expect("rolled back");
        let steps = std::fs::read_to_string(&log).expect("the steps");
        let n = steps.lines().position(|line| line.contains("session.json.new")).expect("such a step") + 1;
        world.remove(&log);
        // Redo has the same steps but for what is there by then: after the exchange, before the seal.
        let killed = world.call(["redo", &*id]).env("RECANT_STEPS", format!("kill:{n}")).run();
        assert_eq!(killed.status, 137, "{killed}");
        assert_eq!(world.journals().len(), 1, "{steps}");
        if asks {
            let recovered = recant::recover(&desk).expect("recovered");
            let told = serde_json::to_value(&recovered).expect("JSON");
            assert_eq!((&told["recovered"][0]["session"], &told["recovered"][0]["result"]), (&id.into(), &"undone".into()));
            assert_eq!(recovered.kind(), None, "{told}");
            assert!(recant::recover(&desk).expect("nothing left").is_empty());
        } else {
            recant::begin(&desk, None).expect("a session");
        }
        assert!(world.journals().is_empty());
        before.assert_same(&world.manifest(), "recovery");
    }
}

/// The most public items that the library may have: what is public has to be kept.
const MOST: usize = 90;

/// A program's author reads all of it. Counted are types, functions, methods and variants, and fields of structs; not what a trait gives, nor
/// the fields of a variant.
#[test]
fn the_library_is_small_and_all_of_it_is_documented() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let read = |name: &str| std::fs::read_to_string(top.join(name)).ok();
    let lib = read("lib.rs").expect("the library");
    assert!(lib.contains("\n#![deny(missing_docs)]\n"));

    let mut items = Vec::new();
    for line in lib.lines().filter(|line| line.starts_with("pub use ")) {
        let (module, names) = named(line);
        let file = module.join("/");
        let text = read(&format!("{file}.rs")).or_else(|| read(&format!("{file}/mod.rs"))).expect(line);
        // A room's face passes on what its files hold.
        let inner = std::fs::read_dir(top.join(&file)).into_iter().flatten().filter_map(Result::ok);
        let inner = inner.filter_map(|entry| std::fs::read_to_string(entry.path()).ok());
        let all: Vec<String> = std::iter::once(text).chain(inner).flat_map(|text| public_items(&text)).collect();
        for name in &names {
            let of = all.iter().filter(|item| item.split("::").next() == Some(name));
            let before = items.len();
            items.extend(of.map(|item| format!("{}::{item}", module.join("::"))));
            assert!(items.len() > before, "{line}: {name} is not found");
        }
    }
    // The desk's methods stand in several files.
    for file in ["verb/silent.rs", "verb/resolve/open.rs"] {
        items.extend(public_items(&read(file).expect(file)).into_iter().filter(|item| item.starts_with("Desk::")));
    }
    println!("{} public items: {}", items.len(), items.join(", "));
    assert!(items.len() <= MOST, "{} public items, more than {MOST}: {}", items.len(), items.join(", "));

    // Nothing else is public.
    let public = lib.lines().filter(|line| line.starts_with("pub ") && !line.starts_with("pub use "));
    assert_eq!(public.collect::<Vec<_>>(), ["pub fn main() -> ExitCode {", "pub mod internals {"]);
    let hidden = "#[cfg(feature = \"crash-points\")]\n#[doc(hidden)]\npub mod internals {";
    assert!(lib.contains(hidden) && lib.contains("#[doc(hidden)]\npub fn main()"));
}

/// The module and the names of a line such as `pub use verb::list::{Row as Session, list};`.
fn named(line: &str) -> (Vec<&str>, Vec<&str>) {
    let path = line.trim_start_matches("pub use ").trim_end_matches(';');
    let (module, names) = path.split_once('{').or_else(|| path.rsplit_once("::")).expect("a path");
    let names = names.trim_end_matches('}').split(", ").map(|name| name.split(' ').next().unwrap_or_default());
    (module.trim_end_matches("::").split("::").collect(), names.collect())
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
