//! Much of everything: a million changes, ten thousand sessions, a sparse file of 20 GiB, directories 2,000 deep, 100,000 names in one,
//! paths of 4,000 bytes. Each is done, or refused by a clear error, in bounded memory. `make test` does less of it, the ignored tests the
//! whole; of many changes memory.rs.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

use crate::common::{Said, World, can_run, elsewhere, recant, skip};
use crate::desk::{Desk, Who, is_root};
use crate::filesystems::image;
use crate::has_strace;

/// Bytes that a program may hold beside what it has for each change. Most of it are pages of the program itself, which grow with a debug
/// build's size.
const FIXED: u64 = 32 << 20;
/// Bytes for each change.
const EACH: u64 = 700;

/// recant under time(1), which tells the most memory that it held at once: so many bytes are allowed.
fn bounded(world: &World, words: &[&str], bound: u64) {
    let at = world.root().join("measured");
    let begun = Instant::now();
    let path = at.to_str().expect("a plain path");
    let said = world.program("/usr/bin/time", [&["-q", "-f", "%M", "-o", path, recant()], words].concat()).run();
    assert_eq!(said.status, 0, "{words:?}: {said}");
    let text = std::fs::read_to_string(&at).expect("what time(1) measured");
    let most = text.trim().parse::<u64>().expect("KiB") << 10;
    println!("{}: {} MiB, {:.1?}", words.join(" "), most >> 20, begun.elapsed());
    assert!(most <= bound, "{words:?}: {most} bytes, {bound} are allowed");
}

/// recant with at most so many KiB of addresses.
fn within(world: &World, kib: u64, words: &str) -> Said {
    world.program("/bin/sh", ["-c", &format!("ulimit -v {kib}; exec {} {words}", recant())]).run()
}

#[test]
fn memory_does_not_grow_with_the_square_of_a_depth() {
    if !can_run() {
        return skip("nested directories: recant run does not work here");
    }
    let world = World::new();
    let dig = "import os\nfor i in range(12_000): os.mkdir('d'); os.chdir('d')\n";
    world.write("dig.py", dig);
    let before = world.manifest();
    // All the paths of it are 138 MiB.
    let said = within(&world, 200_000, "run -q -- python3 dig.py").with(1);
    let start = format!("recant: the run of session {}", id_of_running(&world));
    assert!(said.stderr().starts_with(&start) && said.stderr().contains("a path of more than 8,192 bytes"), "{said}");
    before.assert_same(&world.manifest(), "what cannot be held is not on the tree either");
    world.recant("commit last").with(1);
    let said = within(&world, 200_000, "discard last -y").ok();
    assert!(said.stderr().contains("is discarded"), "{said}");
    world.program("python3", ["dig.py"]).run().ok();
    let said = within(&world, 200_000, "snapshot create").with(4);
    assert!(said.stderr().contains("d: not in the snapshot: a path of more than 8,192 bytes"), "{said}");
}

/// The session whose run could not be collected.
fn id_of_running(world: &World) -> String {
    let list = world.recant("list --json").ok().json();
    assert_eq!(list["sessions"][0]["failed"], serde_json::json!({ "cut_off": {} }), "{list}");
    list["sessions"][0]["id"].as_str().expect("an id").to_owned()
}

#[test]
fn where_memory_is_short_a_message_says_so_and_the_next_verb_makes_the_tree_whole() {
    let world = World::new();
    let id = world.begin();
    let lines: Vec<String> = (0..4_000).map(|n| format!("write {}/{n} new", "d".repeat(250))).collect();
    world.stage(&id, lines.iter().map(String::as_str));
    let before = world.manifest();
    let mut short = 0;
    // From too little to begin with to enough.
    for kib in (20_000..200_000).step_by(2_000) {
        let said = within(&world, kib, &format!("commit {id} -q"));
        match said.status {
            0 => break,
            7 => assert!(said.stderr().starts_with("recant: out of memory: "), "{kib}: {said}"),
            // The loader had not enough.
            status => assert!(status > 7, "{kib}: {said}"),
        }
        short += u64::from(said.status == 7);
        world.recant("recover").ok();
        // Done, and short of memory behind that.
        if world.recant("list --json").ok().rows()[0]["status"] == "committed" {
            break;
        }
        before.assert_same(&world.manifest(), &format!("{kib} KiB"));
    }
    println!("short of memory {short} times");
    assert!(short > 0);
    world.recant(&format!("rollback {id} -q")).ok();
    before.assert_same(&world.manifest(), "after a rollback");
}

fn has_time() -> bool {
    let there = Path::new("/usr/bin/time").exists();
    if !there {
        skip("memory under load: no /usr/bin/time here");
    }
    there
}

/// The id of the only session.
fn id(world: &World) -> String {
    world.recant("show last --json").json()["session"]["id"].as_str().expect("an id").to_owned()
}

/// Nine of ten files new, the others edited, gone and changed in mode.
fn many_changes(count: u64) {
    let Some(world) = (can_run() && has_time()).then(World::new) else {
        return skip("many changes: recant run does not work here");
    };
    let old = count / 10;
    for i in 0..old {
        world.write(format!("old/{:04}/{i}", i / 500), "before");
    }
    let script = format!(
        "import os\nfor i in range({old}):\n p=f'old/{{i//500:04}}/{{i}}'\n if i%3==0: open(p,'w').write('after')\n elif i%3==1: os.remove(p)\n else: os.chmod(p,0o640)\n\
         for i in range({}):\n i%500 or os.makedirs(f'new/{{i//500:04}}')\n open(f'new/{{i//500:04}}/{{i}}','w').write('new')\n",
        count - old
    );
    let bound = FIXED + EACH * count;
    bounded(&world, &["run", "-q", "--", "python3", "-c", &script], bound);
    let id = id(&world);
    let before = world.manifest();
    for verb in ["commit", "rollback", "redo", "rollback"] {
        bounded(&world, &[verb, &id], bound);
    }
    before.assert_same(&world.manifest(), "after it was taken back twice");
}

fn many_sessions(count: u64) {
    let Some(world) = has_time().then(World::new) else { return };
    let first = world.begin();
    world.stage_write(&first, "f", "x");
    // The directories that recant makes, copied: with their own ids and numbers.
    let sessions = world.store().join("sessions");
    let script = format!(
        "import os,shutil,json\nfrom pathlib import Path\nat=Path(r'{0}')\nhead=json.loads((at/'{first}'/'session.json').read_text())\n\
         letters='abcdefghijklmnopqrstuvwxyz234567'\n\
         for i in range({count}-1):\n id='20200101-000000-'+letters[i>>15&31]+letters[i>>10&31]+letters[i>>5&31]+letters[i&31]\n\
         \n shutil.copytree(at/'{first}',at/id)\n (at/id/'session.json').write_text(json.dumps({{**head,'id':id,'seq':i+2}})+chr(10))\n",
        sessions.display()
    );
    world.program("python3", ["-c", &script]).run().ok();
    assert_eq!(std::fs::read_dir(&sessions).expect("sessions").count() as u64, count);
    let newest = world.begin();
    world.stage_write(&newest, "g", "y");
    for words in [&["list"][..], &["status"], &["show", "last"], &["commit", &newest], &["rollback", &newest]] {
        bounded(&world, words, FIXED + 2048 * count);
    }
    assert_eq!(world.recant("list --json").ok().rows().len() as u64, count + 1);
    bounded(&world, &["prune", "--sessions", "--keep", "1", "--dry-run"], FIXED + 2048 * count);
}

fn sparse_file(bytes: u64) {
    if !has_time() {
        return;
    }
    let (mut world, elsewhere) = (World::new(), elsewhere());
    // On one file system it is moved; between two copied.
    for store in [Some(world.store()), elsewhere.as_ref().map(|other| other.path().join("store"))].into_iter().flatten() {
        world.set("RECANT_STORE", &store);
        let sparse = |name: &str, size: u64, at: u64, text: &str| {
            use std::os::unix::fs::FileExt;
            world.write(name, "");
            let file = std::fs::File::options().write(true).open(world.path(name)).expect("the file");
            file.set_len(size).and_then(|()| file.write_all_at(text.as_bytes(), at)).expect("a hole");
        };
        sparse("large", bytes, bytes / 2, "in the middle");
        sparse("replacement", bytes - 4096, bytes / 3, "another");
        let blocks = |name: &str| world.path(name).metadata().expect("a file").blocks() * 512;
        let id = world.begin();
        let from = world.path("replacement");
        world.call(["session", "write", &id, "large", "--from", from.to_str().expect("a plain path")]).run().ok();
        for (verb, size) in [("commit", bytes - 4096), ("rollback", bytes)] {
            bounded(&world, &[verb, &id], FIXED);
            let found = world.path("large").metadata().expect("the file").len();
            assert_eq!(found, size, "{verb}");
            assert!(blocks("large") < 1 << 20, "{verb}: {} bytes on disk", blocks("large"));
        }
    }
}

fn deep_wide_and_long(levels: usize, names: usize, path: usize) {
    let Some(world) = has_time().then(World::new) else { return };
    if !can_run() {
        return skip("deep directories: recant run does not work here");
    }
    // Made step by step: no path of the whole depth can be given to the kernel.
    let script = format!(
        "import os\nos.mkdir('wide')\nfor i in range({names}): open(f'wide/{{i:06}}','w').write('x')\n\
         here=os.getcwd()\nos.mkdir('deep'); os.chdir('deep')\nfor i in range({levels}):\n os.mkdir('d'); os.chdir('d')\nopen('leaf','w').write('leaf')\nos.chdir(here)\n\
         os.mkdir('long'); os.chdir('long')\nfor i in range({path}//200+1):\n os.mkdir('l'*200); os.chdir('l'*200)\nopen('leaf','w').write('leaf')\n"
    );
    let changes = (names + levels + path / 200 + 10) as u64;
    // A path of 4,000 bytes is one of a change, and so are those above it.
    let bound = FIXED + EACH * changes + (levels * levels * 8) as u64;
    bounded(&world, &["run", "-q", "--", "python3", "-c", &script], bound);
    let id = id(&world);
    let before = world.manifest();
    for verb in ["commit", "rollback", "redo"] {
        bounded(&world, &[verb, &id], bound);
    }
    let script = format!(
        "import os\nassert len(os.listdir('wide'))=={names}\nos.chdir('deep')\nfor i in range({levels}): os.chdir('d')\nassert open('leaf').read()=='leaf'\n"
    );
    world.program("python3", ["-c", &script]).run().ok();
    world.recant(&format!("rollback {id}")).ok();
    before.assert_same(&world.manifest(), "after it was taken back");
}

/// How many system calls recant makes for `verb`.
fn calls(world: &World, verb: &str) -> u64 {
    calls_of(world, &[verb, "last", "-q"])
}

fn calls_of(world: &World, words: &[&str]) -> u64 {
    table_of_calls(world, words).values().sum()
}

/// The number of calls of each name, without those for memory and waiting, and what std checks in a debug build alone.
fn table_of_calls(world: &World, words: &[&str]) -> BTreeMap<String, u64> {
    let at = world.root().join("calls");
    let strace = ["-f", "-c", "-o", at.to_str().expect("a plain path"), recant()];
    world.program("strace", [&strace, words].concat()).run().ok();
    let table = std::fs::read_to_string(&at).expect("what strace counted");
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let aside = ["total", "fcntl", "futex", "brk", "mmap", "munmap", "mprotect", "madvise", "sched_yield"];
        let name = words.last().filter(|name| !aside.contains(name))?;
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        is_name.then(|| Some(((*name).to_owned(), words.get(3)?.parse::<u64>().ok()?))).flatten()
    };
    table.lines().filter_map(row).collect()
}

/// What a start costs depends on the machine (its mounts, PATH, groups): a bound with much room. What each earlier step adds does not: a narrow one.
#[test]
fn a_command_is_started_by_few_system_calls() {
    const A_MOUNT: u64 = 60;
    const AN_EARLIER_STEP: u64 = 15;
    let Some(world) = (can_run() && has_strace("the calls of a start")).then(World::new) else { return };
    let touch = |n: usize| world.call(["run", "-q", "--session", "s", "--", "touch", &format!("f{n}")]).run().ok();
    let table = table_of_calls(&world, &["run", "-q", "--", "true"]);
    let (all, mounts) = (table.values().sum::<u64>(), table["fsopen"]);
    println!("a run: {all} system calls, {mounts} mounts: {} and {A_MOUNT} a mount", all - mounts * A_MOUNT);
    assert!(all <= 1_100 + mounts * A_MOUNT, "a run: {all} system calls with {mounts} mounts: {table:?}");
    let steps = |from: usize, to: usize| {
        (from..to).for_each(|n| drop(touch(n)));
        calls_of(&world, &["run", "-q", "--session", "s", "--", "touch", &format!("after{to}")])
    };
    let (few, many) = (steps(0, 10), steps(11, 30));
    let each = many.saturating_sub(few) / 20;
    println!("a step after 10: {few} system calls; after 30: {many}; {each} for each earlier step, at most {AN_EARLIER_STEP}");
    assert!(each <= AN_EARLIER_STEP, "{each} system calls for each earlier step: {few} after 10, {many} after 30");
}

#[test]
fn a_deep_tree_costs_at_most_twice_the_calls_of_a_flat_one() {
    if !can_run() || !has_strace("the calls of a deep tree") {
        return;
    }
    let deep = "import os\nfor i in range(100):\n os.mkdir('d'*75); os.chdir('d'*75)\n";
    let flat = "import os\nos.mkdir('flat')\nfor i in range(99): os.mkdir(f'flat/{i:075}')\n";
    let [deep, flat] = [deep, flat].map(|script| {
        let world = World::new();
        world.call(["run", "-q", "--", "python3", "-c", script]).run().ok();
        ["commit", "rollback", "redo"].map(|verb| (verb, calls(&world, verb)))
    });
    for ((verb, deep), (_, flat)) in deep.into_iter().zip(flat) {
        let what = format!("{verb}: {deep} calls for 100 levels, {flat} for 100 directories side by side");
        println!("{what}");
        assert!(deep <= 2 * flat, "{what}");
    }
}

/// The most system calls for a path, by sort of change: of commit, rollback and redo.
const CALLS_A_PATH: [(&str, &str, &str, [u64; 3]); 3] = [
    ("created", "true", "for i in $(seq {}); do echo new $i > f$i; done", [8, 8, 8]),
    ("modified", "for i in $(seq {}); do echo old $i > f$i; done", "for i in f*; do echo new >> $i; done", [17, 14, 17]),
    ("deleted", "for i in $(seq {}); do echo old $i > f$i; done", "rm f*", [9, 7, 10]),
];

/// Those of so many paths less those of one, on ext4 where that can be had. Of fewer a run keeps the originals, and knows their hashes. A
/// rollback reads again what was put within the last tick of the clock, which is not always as much: hence a call more.
#[test]
fn a_path_costs_no_more_system_calls_than_the_table_says() {
    if !can_run() || !has_strace("the calls of a path") {
        return;
    }
    let ext4 = image("ext4");
    let directory = ext4.as_ref().map_or_else(std::env::temp_dir, |mount| mount.point.clone());
    const PATHS: u64 = 510;
    let calls_of = |who, (before, change): (&str, &str), paths: u64| {
        let desk = Desk::on(who, &directory);
        desk.made_before(&before.replace("{}", &paths.to_string()), ".");
        desk.held("-q", &change.replace("{}", &paths.to_string())).run().ok();
        ["commit", "rollback", "redo"].map(|verb| traced_calls(&desk, verb))
    };
    for who in [Who::Root, Who::User].into_iter().filter(|who| *who == Who::User || is_root()) {
        for (sort, before, change, most) in CALLS_A_PATH {
            let (one, many) = (calls_of(who, (before, change), 1), calls_of(who, (before, change), PATHS));
            for (i, verb) in ["commit", "rollback", "redo"].into_iter().enumerate() {
                let calls = (many[i].saturating_sub(one[i]) + PATHS / 2) / (PATHS - 1);
                println!("{who:?}: {verb}: {calls} system calls for a path that is {sort}, at most {}", most[i]);
                assert!(calls <= most[i] + u64::from(verb == "rollback"), "{who:?}: {verb}: {calls} calls for a {sort} path");
            }
        }
    }
}

/// How many system calls a verb makes, as [`calls`], but with those of leases.
fn traced_calls(desk: &Desk, verb: &str) -> u64 {
    let at = desk.world.root().join(format!("{verb}.trace"));
    let (path, binary) = (at.to_str().expect("a plain path"), desk.binary.to_str().expect("a plain path"));
    desk.give(desk.world.program("strace", ["-f", "-qq", "-o", path, binary, verb, "last", "-q"])).run().ok();
    let trace = std::fs::read_to_string(&at).expect("what strace saw");
    let aside =
        ["F_GETFD", "futex(", " brk(", "mmap(", "munmap(", "mprotect(", "madvise(", "sched_yield(", " resumed>", "+++", "---"];
    trace.lines().filter(|line| !aside.iter().any(|aside| line.contains(aside))).count() as u64
}

/// The calls of verbs that look at the store, and of a shell that completes, with 60 sessions less those with 20, by session.
#[test]
fn a_look_at_the_store_costs_three_system_calls_a_session() {
    if !has_strace("the calls of a look at the store") {
        return;
    }
    let mut world = World::new();
    let looks: [&[&str]; 6] =
        [&["status"], &["list", "--all"], &["checkpoint", "list"], &[], &["log"], &["--", "recant", "commit", ""]];
    let add_until = |world: &World, count: usize, from: usize| {
        for n in from..count {
            let id = world.edited(&format!("f{n}"));
            // Pending, committed, rolled back, discarded.
            let acts = [&[][..], &["commit"], &["commit", "rollback"], &["discard"]][n % 4];
            acts.iter().for_each(|act| drop(world.call([act, &*id]).run().ok()));
        }
    };
    let calls = |world: &mut World| {
        // What is as young as the clock of files is counted once more.
        std::thread::sleep(std::time::Duration::from_millis(30));
        world.recant("status").ok();
        looks.map(|words| {
            if words.first() == Some(&"--") {
                world.set("RECANT_COMPLETE", "fish")
            } else {
                world.unset("RECANT_COMPLETE")
            };
            calls_of(world, words)
        })
    };
    add_until(&world, 20, 0);
    let few = calls(&mut world);
    world.unset("RECANT_COMPLETE");
    add_until(&world, 60, 20);
    for ((words, fewer), more) in looks.iter().zip(few).zip(calls(&mut world)) {
        println!("{words:?}: {fewer} system calls with 20 sessions, {more} with 60");
        assert!(more <= fewer + 3 * 40 + 10, "{words:?}: {fewer} system calls with 20 sessions, {more} with 60");
    }
}

#[test]
fn a_look_at_the_store_costs_nothing_for_what_a_session_holds() {
    let what = "the calls of a look at much that is held";
    let Some(world) = (can_run() && has_strace(what)).then(World::new) else { return };
    world.call(["run", "-q", "--", "touch", "1"]).run().ok();
    world.recant("status").ok();
    let little = calls_of(&world, &["status"]);
    for act in [&["run", "-q", "--", "sh", "-c", "seq 10000 | xargs touch"][..], &["commit", "last", "-q"]] {
        world.call(act).run().ok();
        let much = calls_of(&world, &["status"]);
        // Where the size was not kept, as of a session that changed a moment before, its few directories are looked at.
        assert!(much <= little + 200, "{act:?}: {little} system calls, {much} after it");
    }
}

/// The calls of 16 steps each, as the uppers of so many are merged at once.
#[test]
#[ignore = "long: 230 steps"]
fn a_step_takes_as_many_calls_after_two_hundred_others_as_after_twenty() {
    const MEASURED: usize = 16;
    let Some(world) = (can_run() && has_strace("the calls of a step")).then(World::new) else { return };
    let calls_from = |first: usize| -> u64 {
        (first..first + MEASURED)
            .map(|n| calls_of(&world, &["run", "-q", "--session", "s", "--", "sh", "-c", &format!("echo {n} > f{}", n % 20)]))
            .sum()
    };
    let go_to = |n: usize, from: usize| {
        for n in from..n {
            world.call(["run", "-q", "--session", "s", "--", "sh", "-c", &format!("echo {n} > f{}", n % 20)]).run().ok();
        }
    };
    go_to(20, 0);
    let early = calls_from(20);
    go_to(200, 20 + MEASURED);
    let late = calls_from(200);
    println!("a step: {} calls after 20 others, {} after 200", early / MEASURED as u64, late / MEASURED as u64);
    assert!(late * 10 <= early * 11, "a step: {early} calls for {MEASURED} after 20 others, {late} after 200");
    assert_eq!(world.recant("steps s --json").ok().json()["head"], 200 + MEASURED);
}

/// Each 256 MiB that are read take 2,048 calls.
#[test]
fn holes_are_hashed_without_being_read() {
    let Some(world) = (can_run() && has_strace("the calls of a sparse file")).then(World::new) else { return };
    world.write("sparse", "begin");
    let file = std::fs::File::options().write(true).open(world.path("sparse")).expect("the file");
    file.set_len(256 << 20).expect("a hole");
    drop(file);
    let before = world.manifest();
    world.call(["run", "-q", "--", "sh", "-c", "echo end >>sparse"]).run().ok();
    for verb in ["commit", "rollback"] {
        let made = calls(&world, verb);
        println!("{verb} of a file with a hole of 256 MiB: {made} calls");
        assert!(made < 1_500, "{verb} of a file with a hole of 256 MiB: {made} calls");
    }
    before.assert_same(&world.manifest(), "a sparse file that was taken back");
}

#[test]
fn three_hundred_sessions() {
    many_sessions(300);
}

#[test]
fn a_sparse_file_of_64_mib_stays_sparse() {
    sparse_file(64 << 20);
}

#[test]
fn directories_100_deep_500_names_in_one_and_a_path_of_4_300_bytes() {
    deep_wide_and_long(100, 500, 4_300);
}

#[test]
#[ignore = "long: half an hour for the whole size"]
fn the_whole_load() {
    let parts: [(&str, &dyn Fn()); 4] = [
        ("deep", &|| deep_wide_and_long(2_000, 100_000, 4_300)),
        ("sparse", &|| sparse_file(20 << 30)),
        ("sessions", &|| many_sessions(10_000)),
        ("changes", &|| many_changes(1_000_000)),
    ];
    let wanted = std::env::var("RECANT_LOAD").ok();
    parts.iter().filter(|(name, _)| wanted.as_deref().is_none_or(|wanted| wanted == *name)).for_each(|(_, part)| part());
}
