//! Whatever stands in the store's files: what reads them never panics, never hangs, and what is believed leads nowhere but to the
//! session's own paths. Valid files are mutated, by bytes and by their JSON, hashes made right again in every other case; the library's
//! readers read them in this process. Of those that are believed, a sample is carried out by the binary, and everything around compared.
//!
//! `RECANT_FUZZ` is the number of executions in all (10,000,000 in the long test), `RECANT_SEED` the first seed.

use std::collections::BTreeSet;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::common::{self, Dice, Manifest, World, elsewhere};
use crate::{held, kill, step_like};
use recant::internals::{self, AbsPath, Draft, Hash, Id, Journal, Original, Session, Spot, Store};
use serde_json::Value;

/// One stored file that is read.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Target {
    Header,
    Changes,
    Manifest,
    Journal,
    Draft,
}

/// Each of them, in sessions that stand in different ways: the variants of [`Scene::new`].
const KINDS: [(Target, Range<usize>); 5] =
    [(Target::Header, 0..3), (Target::Changes, 0..3), (Target::Manifest, 1..3), (Target::Journal, 0..3), (Target::Draft, 0..1)];
/// No case takes longer, on whatever machine.
const BOUND: Duration = Duration::from_secs(10);

/// A session with that file in it, in a world with much around it that is none of its business.
struct Scene {
    world: World,
    id: String,
    target: Target,
    variant: usize,
    file: PathBuf,
    valid: Vec<u8>,
    store: PathBuf,
    _elsewhere: Option<tempfile::TempDir>,
}

impl Scene {
    /// `None` where it cannot be had here, which is said.
    fn new(target: Target, variant: usize) -> Option<Self> {
        let mut world = World::new();
        let mut store = world.store();
        // A draft is written where something has to be made: copies between two file systems.
        let elsewhere = if target == Target::Draft { Some(elsewhere()?) } else { None };
        if let Some(elsewhere) = &elsewhere {
            store = elsewhere.path().join("store");
            world.set("RECANT_STORE", &store);
        }
        for file in ["a", "b", "c", "f/x", "f/y", "keep", "kept/1", "kept/2", "../outside/precious"] {
            world.write(file, format!("the original content of {file}")).set_mtime(file, 1_000_000_000, 7);
        }
        world.symlink("somewhere", "link").chmod("b", 0o600);
        let id =
            held(&world, ["write a new a", "write b new b", "write made made", "write deep/er/n n", "delete c", "delete link"]);
        world.stage(&id, ["delete f", "chmod 640 b", "symlink a turned"]);
        let call = |verb: &str| world.call([verb, &*id]);
        let recant = |verb: &str| drop(call(verb).run().ok());
        // Killed before the first step that looks like this; what the steps are tells one that is not killed.
        let kill_at = |verb: &str, back: &str, like: &dyn Fn(&str) -> bool| {
            let n = step_like(|| call(verb), like);
            recant(back);
            kill(call(verb), n);
        };
        let exchange = |step: &str| step.contains("EXCHANGE");
        if variant != 0 || !matches!(target, Target::Header | Target::Changes) {
            recant("commit");
        }
        match (target, variant) {
            (Target::Header | Target::Changes | Target::Manifest, 2) => drop(world.recant(&format!("rollback {id} a f")).ok()),
            (Target::Header | Target::Changes | Target::Manifest, _) => {}
            (Target::Journal, 0) => kill_at("rollback", "redo", &exchange),
            (Target::Journal, _) => {
                recant("rollback");
                let sealed = |step: &str| step.contains("log.jsonl");
                kill_at("redo", "rollback", if variant == 1 { &exchange } else { &sealed });
            }
            (Target::Draft, _) => {
                recant("rollback");
                kill_at("redo", "rollback", &|step| step.contains("openat CREAT") && step.contains("/.recant-"));
            }
        }
        let session = store.join("sessions").join(&id);
        let file = match target {
            Target::Header => session.join("session.json"),
            Target::Changes => session.join("changes.jsonl"),
            Target::Manifest => session.join("checkpoint/manifest.jsonl"),
            Target::Journal => store.join("journals").join(&id),
            Target::Draft => store.join("journals").join(format!("{id}.tmp")),
        };
        let valid = std::fs::read(&file).unwrap_or_else(|error| panic!("{target:?} {variant}: {}: {error}", file.display()));
        Some(Self { world, id, target, variant, file, valid, store, _elsewhere: elsewhere })
    }

    /// All around the store: the tree, and what lies outside of it.
    fn around(&self) -> Manifest {
        let mut all = self.world.manifest();
        let outside = common::manifest(&self.world.root().join("outside"));
        all.0.extend(outside.0.into_iter().map(|(path, row)| ([b"../outside/", &path[..]].concat(), row)));
        all
    }
}

/// What a value becomes: numbers at the edges, paths that lead elsewhere, other kinds.
fn odd_values(scene: &Scene) -> Vec<Value> {
    let path = |below: &str| Value::from(scene.world.path(below).to_str().expect("a plain path"));
    let mut odd: Vec<Value> =
        [0, 1, 2, 7, 255, 4096, u64::from(u32::MAX), u64::MAX, i64::MAX.unsigned_abs()].map(Value::from).into();
    odd.extend([-1, i64::MIN].map(Value::from));
    odd.extend(["keep", "kept", "kept/1", "a", "f/x", "../outside/precious", "", "a/../keep", "made"].map(path));
    odd.push(Value::from(scene.world.root().join("outside/precious").to_str().expect("a plain path")));
    odd.push(Value::from(scene.world.root().join("outside").to_str().expect("a plain path")));
    odd.extend(
        ["/", "", ".", "..", "../../..", "/etc/passwd", "x\0y", "i5", "n3i2", "i99999999999999999999", "file", "folder"]
            .map(Value::from),
    );
    odd.extend([Value::Null, true.into(), false.into(), 1.5.into(), Value::Array(Vec::new()), Value::Object(Default::default())]);
    odd.push(Value::from("y".repeat(5000)));
    odd.push(serde_json::json!({ "b64": "L2V0Yy8A/w==" }));
    for at in ["../../precious", "checkpoint/blobs", "checkpoint/../..", "held/objects", "held", "session.json"] {
        odd.push(serde_json::json!({ "session": at }));
    }
    for at in ["keep", "kept", "../outside"] {
        odd.push(serde_json::json!({ "tree": scene.world.path(at).canonicalize().expect("a path that is there") }));
    }
    odd
}

struct Mutator<'a> {
    random: Dice,
    odd: Vec<Value>,
    lines: Vec<&'a [u8]>,
    valid: &'a [u8],
    sealed: bool,
}

impl<'a> Mutator<'a> {
    fn new(scene: &'a Scene, seed: u64) -> Self {
        let lines = scene.valid.split_inclusive(|b| *b == b'\n').collect();
        let sealed = matches!(scene.target, Target::Manifest | Target::Journal);
        Self { random: Dice(seed), odd: odd_values(scene), lines, valid: &scene.valid, sealed }
    }

    fn case(&mut self) -> Vec<u8> {
        let mut bytes = if self.random.below(3) == 0 { self.by_bytes() } else { self.by_lines() };
        // A hash that is wrong is the end of it: what stands behind it is read only with one that is right.
        if self.sealed && self.random.below(8) != 0 {
            let end = bytes.strip_suffix(b"\n").unwrap_or(&bytes).iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
            bytes.truncate(end);
            let hash = Hash::of(&bytes).to_string();
            bytes.extend_from_slice(format!("{{\"end\":\"{hash}\"}}\n").as_bytes());
        }
        bytes
    }

    fn by_bytes(&mut self) -> Vec<u8> {
        let mut bytes = self.valid.to_vec();
        for _ in 0..=self.random.below(3) {
            let at = self.random.below(bytes.len().max(1));
            let end = bytes.len().min(at + self.random.below(40));
            match self.random.below(6) {
                0 if !bytes.is_empty() => bytes[at] ^= 1 << self.random.below(8),
                1 => bytes.truncate(at),
                2 => drop(bytes.drain(at..end)),
                3 => {
                    let again = bytes[at..end].to_vec();
                    bytes.splice(at..at, again);
                }
                4 => {
                    let json: [&[u8]; 8] = [b"[", b"{", b"\"", b"\n", b"null", b",", b"9999999999999999999", b"\\ud800"];
                    let piece = self.random.of(&[&json[..], &[b"\0\0\0\0", b"\xff\xfe"]].concat());
                    let piece = piece.repeat(if self.random.below(50) == 0 { 20_000 } else { 1 });
                    bytes.splice(at..at, piece);
                }
                _ if !bytes.is_empty() => bytes[at] = u8::try_from(self.random.below(256)).expect("a byte"),
                _ => {}
            }
        }
        bytes
    }

    fn by_lines(&mut self) -> Vec<u8> {
        let mut lines: Vec<Vec<u8>> = self.lines.iter().map(|line| line.to_vec()).collect();
        for _ in 0..=self.random.below(3) {
            let (i, j) = (self.random.below(lines.len()), self.random.below(lines.len()));
            match self.random.below(12) {
                0 => lines.swap(i, j),
                1 if lines.len() > 1 => drop(lines.remove(i)),
                2 => lines.insert(i, lines[j].clone()),
                _ => {
                    let Ok(mut value) = serde_json::from_slice::<Value>(&lines[i]) else { continue };
                    self.turn(&mut value);
                    lines[i] = serde_json::to_vec(&value).expect("JSON");
                    lines[i].push(b'\n');
                }
            }
        }
        lines.concat()
    }

    /// Goes down to a random place, and puts something else there.
    fn turn(&mut self, value: &mut Value) {
        let deeper = self.random.below(8) != 0;
        match value {
            Value::Object(map) if deeper && !map.is_empty() => {
                let key = map.keys().nth(self.random.below(map.len())).cloned().expect("a key");
                if self.random.below(12) == 0 {
                    map.remove(&key);
                } else if let Some(value) = map.get_mut(&key) {
                    self.turn(value);
                }
            }
            Value::Array(list) if deeper && !list.is_empty() => {
                let i = self.random.below(list.len());
                match self.random.below(10) {
                    0 => drop(list.remove(i)),
                    1 => list.insert(i, self.random.of(&self.odd)),
                    _ => self.turn(&mut list[i]),
                }
            }
            Value::Number(number) if self.random.below(2) == 0 => {
                let by = [1, -1, 256, 1 << 32][self.random.below(4)];
                *value = number.as_i64().map_or(Value::Null, |n| n.wrapping_add(by).into());
            }
            other => *other = self.random.of(&self.odd),
        }
    }
}

/// The store as the library opens it, and an id for it.
pub fn open(store: &Path, id: &str) -> (Store, Id) {
    let path = AbsPath::parse(store.canonicalize().expect("a store").into_os_string().into_encoded_bytes()).expect("a path");
    (Store::open(&path).expect("a store").expect("a store"), Id::parse(id).expect("an id"))
}

/// What the library's reader makes of the file: `None` where it is refused, else the paths that a session in it may touch.
pub fn read(target: Target, store: &Store, id: &Id, good: &Session) -> Option<BTreeSet<AbsPath>> {
    let mut own = BTreeSet::new();
    match target {
        Target::Header => {
            let session = store.session(id).ok()?;
            let _status = session.header.status();
            session.sides_of_all().ok()?;
        }
        Target::Changes => {
            let mut reading = good.read_changes().ok()?;
            drop(good.changes_as_written());
            while let Some(change) = reading.next().ok()? {
                change.sort();
                own.insert(change.path);
            }
            own.extend(reading.directory_times().into_iter().map(|time| time.path));
        }
        Target::Manifest => {
            let manifest = internals::Manifest::read(&good.dir).ok()?;
            for place in manifest.originals.values().filter_map(Original::place) {
                below_session(&place);
            }
        }
        Target::Journal => {
            let journal = Journal::read(store, id).ok()??;
            journal.prepared_spots().iter().for_each(own_spot);
            for step in journal.steps() {
                [step.at.to, step.at.out, step.at.home, step.at.spare].iter().flatten().for_each(own_spot);
            }
        }
        Target::Draft => Draft::read(store.journals(), id).ok()??.made.iter().for_each(own_spot),
    }
    Some(own)
}

/// Places of recant's own alone.
fn own_spot(spot: &Spot) {
    match spot {
        Spot::Session(below) => below_session(below),
        Spot::Tree(path) => assert!(path.name().starts_with(b".recant-"), "a place on the tree: {path}"),
    }
}

fn below_session(place: &[u8]) {
    let ours = [&b"held/"[..], b"checkpoint/blobs/", b"checkpoint/objects/", b"displaced/"];
    let plain = place.split(|b| *b == b'/').all(|part| !part.is_empty() && part != b"." && part != b"..");
    let is_ours = plain && ours.iter().any(|directory| place.starts_with(directory));
    assert!(is_ours, "a place in the session: {}", place.escape_ascii());
}

/// The verbs that work with such a file, by the binary: nothing around but the session's own paths becomes another.
fn carry_out(scene: &Scene, own: &BTreeSet<AbsPath>, what: &str) -> bool {
    let (before, stored) = (scene.around(), common::manifest(&scene.store));
    let verbs: &[&str] = match (scene.target, scene.variant) {
        (Target::Header | Target::Changes, 0) => &["show ID", "diff ID", "commit ID", "rollback ID"],
        (Target::Header | Target::Changes | Target::Manifest, _) => {
            &["checkpoint show ID", "checkpoint verify ID", "rollback ID", "redo ID", "rollback --force ID"]
        }
        (Target::Journal, _) => &["status", "recover", "recover ID --finish", "recover ID --give-up-unmounted", "rollback ID"],
        (Target::Draft, _) => &["status", "recover", "rollback ID"],
    };
    for words in verbs {
        let begun = Instant::now();
        let said = scene.world.recant(&words.replace("ID", &scene.id));
        assert!(said.status <= 7 && !said.stderr_lossy().contains("panicked"), "{what}: {words:?}: {said}");
        assert!(begun.elapsed() < BOUND, "{what}: {words:?} took {:?}", begun.elapsed());
    }
    let named = ["a", "b", "c", "f", "made", "deep", "link", "turned"];
    let tree = scene.world.tree();
    let is_own = |path: &[u8]| {
        let full = tree.join(common::name(path));
        let named = named.iter().any(|name| path == name.as_bytes() || path.starts_with(format!("{name}/").as_bytes()));
        // A directory's time goes with the names in it.
        named || own.iter().any(|own| full.starts_with(own.as_path()) || own.as_path().starts_with(&full))
    };
    let after = scene.around();
    for path in before.0.keys().chain(after.0.keys()).collect::<BTreeSet<_>>() {
        let top = path.as_slice() == b"." || path.is_empty();
        if !top && !is_own(path) {
            assert_eq!(before.0.get(path), after.0.get(path), "{what}: {} is none of the session's", path.escape_ascii());
        }
    }
    (before, stored) != (after, common::manifest(&scene.store))
}

/// So many cases of one file; how many were believed, and how many of these were carried out.
fn fuzz(target: Target, variant: usize, seed: u64, cases: u64, carried: u64) -> (u64, u64) {
    let Some(mut scene) = Scene::new(target, variant) else { return (0, 0) };
    let (mut believed, mut done) = (0, 0);
    let mut case = 0;
    while case < cases {
        let (store, id) = open(&scene.store, &scene.id);
        let good = store.session(&id).expect("a session");
        let file = std::fs::File::options().write(true).open(&scene.file).expect("the file");
        let mut mutator = Mutator::new(&scene, seed.wrapping_add(case));
        let mut again = false;
        while case < cases && !again {
            case += 1;
            let bytes = mutator.case();
            file.set_len(bytes.len() as u64)
                .and_then(|()| file.write_all_at(&bytes, 0))
                .expect("a file in a temporary directory");
            let what = || format!("{target:?} {variant}, seed {seed}, case {case}: {}", bytes.escape_ascii());
            let begun = Instant::now();
            let own = catch_unwind(AssertUnwindSafe(|| read(target, &store, &id, &good)));
            assert!(begun.elapsed() < BOUND, "{} took {:?}", what(), begun.elapsed());
            let Ok(own) = own else { panic!("{}", what()) };
            let Some(own) = own else { continue };
            believed += 1;
            // Spread over all cases.
            if done * cases < case * carried {
                done += 1;
                again = carry_out(&scene, &own, &what());
            }
        }
        if again {
            drop((good, store, mutator));
            scene = Scene::new(target, variant).expect("a scene that could be had before");
        }
    }
    assert!(believed > 0, "{target:?} {variant}: nothing of {cases} cases was believed");
    (believed, done)
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().expect("a number"))
}

fn fuzz_all(cases: u64, carried: u64) {
    let seed = number("RECANT_SEED", 1);
    let kinds: Vec<_> = KINDS.into_iter().flat_map(|(target, variants)| variants.map(move |variant| (target, variant))).collect();
    let each = cases.div_ceil(kinds.len() as u64);
    println!("{} files with {each} cases each from seed {seed}", kinds.len());
    for (target, variant) in &kinds {
        let begun = Instant::now();
        let (believed, done) = fuzz(*target, *variant, seed, each, carried / kinds.len() as u64);
        println!("{target:?} {variant}: {believed} believed, {done} carried out, {:.0?}", begun.elapsed());
    }
}

#[test]
fn a_list_of_what_was_prepared_takes_nothing_away_but_what_preparing_makes() {
    let Some(scene) = Scene::new(Target::Draft, 0) else { return };
    let mut draft: Value = serde_json::from_slice(&scene.valid).expect("JSON");
    let count = || std::fs::read_dir(scene.store.join("sessions").join(&scene.id).join("held/objects")).expect("objects").count();
    let objects = count();
    let outside = scene.world.root().join("outside");
    let tree = |path: &Path| serde_json::json!({ "tree": path.to_str().expect("a plain path") });
    draft["made"] = Value::from_iter([
        tree(&outside),
        tree(&scene.world.path("kept")),
        tree(&scene.world.path("a")),
        serde_json::json!({ "session": "held" }),
        serde_json::json!({ "session": "held/../held" }),
    ]);
    std::fs::write(&scene.file, draft.to_string()).expect("the draft");
    let before = scene.around();
    scene.world.recant("recover").ok();
    before.assert_same(&scene.around(), "all is there");
    assert_eq!(count(), objects);
}

#[test]
fn whatever_stands_in_a_stored_file_is_read_without_a_panic_and_leads_nowhere_else() {
    fuzz_all(number("RECANT_FUZZ", 2_000), 24);
}

#[test]
#[ignore = "long: ten times as many cases as make test has"]
fn twenty_thousand_files() {
    fuzz_all(number("RECANT_FUZZ", 20_000), 36);
}

#[test]
#[ignore = "long: 10,000,000 cases take minutes"]
fn ten_million_files() {
    fuzz_all(number("RECANT_FUZZ", 10_000_000), 2_000);
}
