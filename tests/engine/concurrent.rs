//! Many recants at once over sessions that overlap, some of them killed on the way (F41, I23): the store stays sound, nobody waits
//! forever, and once all is taken back the tree is what it was.

use std::thread;

use crate::common::{Dice, World, recant};

const WORKERS: u64 = 8;
const FILES: u64 = 12;

fn file(n: u64) -> String {
    format!("d{}/f{n}", n % 3)
}

fn new_world() -> World {
    let world = World::new();
    for n in 0..FILES {
        world.write(file(n), format!("original {n}")).set_mtime(file(n), 1_000_000_000, 7 + i64::try_from(n).unwrap());
    }
    world.symlink("d0/f0", "link");
    world
}

/// A session over some of the files: written, deleted, another mode, new ones in a new directory.
fn stage(world: &World, dice: &mut Dice, what: u64) -> Option<String> {
    let begun = world.call(["session", "new"]).run();
    if begun.status != 0 {
        assert_eq!(begun.status, 6, "{begun}");
        return None;
    }
    let id = begun.id();
    for _ in 0..=dice.roll(4) {
        let n = dice.roll(FILES);
        let path = world.path(file(n)).display().to_string();
        let fresh = world.path(format!("new{}/n{}", dice.roll(3), dice.roll(4))).display().to_string();
        let call = match dice.roll(6) {
            0 => world.call(["session", "delete", &id, &path]),
            1 => world.call(["session", "chmod", &id, "0600", &path]),
            2 => world.call(["session", "write", "-p", &id, &fresh]).stdin(format!("new of {what}")),
            _ => world.call(["session", "write", &id, &path]).stdin(format!("{what} wrote {n}")),
        };
        let said = call.run();
        // Somebody else's commit may have taken the file, or a session under way may hold it.
        assert!([0, 1, 3, 6].contains(&said.status), "{said}");
    }
    Some(id)
}

/// One worker: verbs at random, one in six killed before some step.
fn work(world: &World, seed: u64, rounds: u64, ids: &[String]) -> Vec<String> {
    let mut dice = Dice(seed);
    let mut own = Vec::new();
    for round in 0..rounds {
        let id = dice.of(&[ids, &own].concat());
        let verb = dice.of(&["commit", "commit", "rollback", "rollback", "redo", "new", "list"]);
        if verb == "new" {
            own.extend(stage(world, &mut dice, seed * 1000 + round));
            continue;
        }
        if verb == "list" {
            // A killed recant is no damage to a reader.
            world.call(["list", "--json"]).run().ok().json();
            continue;
        }
        // 124 is timeout(1): somebody would have waited forever.
        let mut call = world.program("timeout", ["60", recant(), verb, &id]);
        let killed = dice.roll(6) == 0;
        if killed {
            call = call.env("RECANT_STEPS", format!("kill:{}", 1 + dice.roll(60)));
        }
        let said = call.run();
        let fits = [0, 1, 3, 4, 6].contains(&said.status) || killed && said.status == 137;
        assert!(fits, "seed {seed}, round {round}: {verb} {id}: {said}");
    }
    own
}

fn many_at_once(rounds: u64) {
    let world = new_world();
    let before = world.manifest().without_directory_times();
    // Other numbers, to look further.
    let base: u64 = std::env::var("RECANT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    let mut dice = Dice(base + 7);
    let mut ids: Vec<String> = (0..10).filter_map(|n| stage(&world, &mut dice, n)).collect();
    let more: Vec<Vec<String>> = thread::scope(|scope| {
        let (world, ids) = (&world, &ids);
        let workers: Vec<_> = (0..WORKERS).map(|n| scope.spawn(move || work(world, base + n + 1, rounds, ids))).collect();
        workers.into_iter().map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    ids.extend(more.into_iter().flatten());
    world.recant("recover").ok();
    world.recant("checkpoint verify").ok();
    world.assert_tidy("after all");
    // Who was committed over whom tells the order: what conflicts now goes once the other is gone.
    let mut known = Vec::new();
    loop {
        let is_in = |id: &&String| world.status(id) == "committed";
        let mut still: Vec<&String> = ids.iter().filter(is_in).collect();
        if still == known {
            break;
        }
        let changed = |id: &&String| world.session(id).join("session.json").metadata().unwrap().modified().unwrap();
        still.sort_by_key(|id| std::cmp::Reverse(changed(id)));
        for id in &still {
            let said = world.recant(&format!("rollback {id}"));
            assert!([0, 3, 4].contains(&said.status), "{said}");
        }
        known = ids.iter().filter(|id| still.contains(id)).collect();
    }
    // A file that was deleted twice, and made in between, comes back by either: then the other ones conflict for good.
    if known.is_empty() {
        before.assert_same(&world.manifest().without_directory_times(), "all taken back");
    }
    println!("{} sessions, of which {} stay in", ids.len(), known.len());
    world.recant("checkpoint verify").ok();
    for n in (0..FILES).filter(|n| world.exists(file(*n))) {
        let content = world.read(file(n));
        assert!(content == format!("original {n}") || content.ends_with(&format!(" wrote {n}")), "{}: {content}", file(n));
    }
    world.assert_tidy("at last");
}

#[test]
fn eight_at_once_over_overlapping_sessions_some_killed_leave_a_sound_store() {
    many_at_once(20);
}

#[test]
#[ignore = "long: takes minutes"]
fn eight_at_once_five_hundred_times() {
    many_at_once(500);
}
