//! What an agent pays for: `--brief` prints at most 2 KiB, and its cursor leads through all of the list.

use crate::agent;
use crate::common::{self, Said, World};
use serde_json::{Value, json};

/// The most bytes of a page.
const MOST: usize = 2_048;

/// The pages of a call, one after another. `between` is called after each.
#[track_caller]
fn pages(world: &World, words: &str, mut between: impl FnMut()) -> Vec<Value> {
    let mut pages = Vec::new();
    let mut after = String::new();
    loop {
        let said = world.recant(&format!("{words} --brief{after}"));
        assert!(said.out.len() <= MOST, "{} bytes: {said}", said.out.len());
        let page = said.json();
        after = page["next"].as_str().map(|next| format!(" --after {next}")).unwrap_or_default();
        pages.push(page);
        if after.is_empty() {
            return pages;
        }
        assert!(pages.len() < 100, "it has an end");
        between();
    }
}

/// The items of pages under a key, each by the values of these keys.
fn items(pages: &[Value], list: &str, keys: &[&str]) -> Vec<String> {
    let of = |item: &Value| keys.iter().map(|key| item[*key].to_string()).collect::<Vec<_>>().join(" ");
    pages.iter().flat_map(|page| page[list].as_array().expect("a list").iter().map(of).collect::<Vec<_>>()).collect()
}

/// The items of the one page in which all fits.
#[track_caller]
fn all_at_once(world: &World, words: &str, list: &str, count: usize) -> Value {
    let pages = pages(world, words, || {});
    let [page] = &pages[..] else { panic!("{} pages: {pages:?}", pages.len()) };
    assert_eq!((page["total"].as_u64(), page[list].as_array().map(Vec::len)), (Some(count as u64), Some(count)), "{page}");
    page.clone()
}

/// A session with so many changed files.
fn changed(world: &World, name: &str, files: impl Iterator<Item = String>) -> String {
    let id = world.recant(&format!("session new -n {name}")).ok().id();
    files.for_each(|file| _ = world.stage_write(&id, file, "1\n2\n3\n"));
    id
}

/// A pending session with which nothing was done for days.
fn aged(world: &World, name: &str, days: i64) -> String {
    let id = world.edited(name);
    let file = world.session(&id).join("session.json");
    let mut header: Value = serde_json::from_str(&std::fs::read_to_string(&file).expect("a header")).expect("JSON");
    let then = chrono::Utc::now() - chrono::Duration::days(days);
    header["changed"] = then.format("%Y-%m-%dT%H:%M:%S.000000000Z").to_string().into();
    world.write(file, format!("{header}\n"));
    id
}

/// A pending session with so many steps.
fn stepped(world: &World, steps: std::ops::RangeInclusive<usize>) {
    for n in steps {
        let script = format!("echo {n} >> log; touch made-{n}; exit {}", n % 2);
        world.call(["run", "-q", "--session", "s", "--", "sh", "-c", &script]).run();
    }
}

#[test]
fn the_status_of_fifty_sessions_fits() {
    let world = World::new();
    for project in ["a", "b", "c"] {
        world.write(format!("{project}/.git/HEAD"), "").mkdir(format!("{project}/src"));
    }
    for n in 0..50 {
        let project = world.path(["a", "b", "c"][n % 3]);
        let id = world.call(["session", "new"]).cwd(&project).run().ok().id();
        world.call(["session", "write", &id, &format!("src/f{n}")]).cwd(&project).stdin("x").run().ok();
        if n > 1 {
            world.call(["commit", &id]).run().ok();
        }
    }
    let page = all_at_once(&world, "status", "matters", 0);
    assert_eq!((&page["sessions"]["pending"], &page["sessions"]["committed"]), (&2.into(), &48.into()));
    let whole = world.recant("status --json").ok();
    assert!(whole.out.len() <= MOST, "{whole}");
    for key in ["store", "sessions", "steps", "prunable"] {
        assert_eq!(page[key], whole.json()[key]);
    }
}

#[test]
fn the_counts_of_26_files_fit() {
    let world = World::new();
    for n in 0..20 {
        world.write(format!("src/module/file{n:02}.rs"), "1\nold\n");
    }
    world.write("src/binary", "\0old").write("src/gone.rs", "1\n2\n");
    let id = changed(&world, "s", (0..23).map(|n| format!("src/module/file{n:02}.rs")));
    world.stage_write(&id, "src/binary", "\0new").recant("session delete s src/gone.rs").ok();
    world.recant("session mkdir s src/made").ok();
    world.write("src/module/file07.rs", "somebody else's\n");
    let page = all_at_once(&world, "diff s", "changes", 26);
    assert_eq!(page["base"], world.path("src").to_str().expect("a path"));
    let row = |path: &str| {
        let changes = page["changes"].as_array().expect("a list");
        changes.iter().find(|change| change["path"] == path).expect("a row").clone()
    };
    assert_eq!(row("module/file00.rs"), json!({"path":"module/file00.rs","insertions":2,"deletions":1}));
    assert_eq!(row("module/file07.rs"), json!({"path":"module/file07.rs","uncounted":true,"conflict":true}));
    assert_eq!(row("module/file22.rs"), json!({"path":"module/file22.rs","change":"created","insertions":3}));
    assert_eq!(row("gone.rs"), json!({"path":"gone.rs","change":"deleted","deletions":2}));
    assert_eq!(row("made"), json!({"path":"made","change":"created","kind":"directory"}));
    assert_eq!(row("binary"), json!({"path":"binary","uncounted":true}));
    // It counts the same as the whole document.
    let whole = world.recant("diff s --stat --json").ok();
    assert!(whole.out.len() > 4 * MOST && whole.json()["changes"].as_array().map(Vec::len) == Some(26), "{whole}");
}

#[test]
fn the_steps_of_a_session_of_fifteen_fit_and_later_ones_do_not_move_them() {
    if !common::can_run() {
        return;
    }
    let world = World::new();
    stepped(&world, 1..=15);
    let page = all_at_once(&world, "steps s", "steps", 15);
    assert_eq!(
        page["steps"][0],
        json!({"n": 15, "command": "sh -c echo 15 >> log; touch made-15; exit 1", "exited": 1, "created": 1, "modified": 1})
    );
    assert_eq!(
        page["steps"][1],
        json!({"n": 14, "command": "sh -c echo 14 >> log; touch made-14; exit 0", "created": 1, "modified": 1})
    );
    stepped(&world, 16..=40);
    let mut next = 41;
    let pages = pages(&world, "steps s", || {
        stepped(&world, next..=next);
        next += 1;
    });
    assert!(pages.len() > 1);
    let numbers: Vec<String> = (1..=40).rev().map(|n| n.to_string()).collect();
    assert_eq!(items(&pages, "steps", &["n"]), numbers);
}

#[test]
fn a_cursor_leads_through_all_changes_once_also_where_others_are_added() {
    let world = World::new();
    let file = |n: usize| format!("directory/with a name/file-{n:03}.txt");
    world.mkdir("directory/with a name");
    let id = changed(&world, "s", (0..150).map(|n| file(n * 2)));
    let mut added = 0;
    let pages = pages(&world, &format!("diff {id}"), || {
        // Before what was shown, and after it.
        world.stage_write(&id, file(1 + added * 2), "x").stage_write(&id, file(299 - added * 2), "x");
        added += 1;
    });
    let mut seen = items(&pages, "changes", &["path"]);
    assert!(pages.len() > 3);
    let count = seen.len();
    assert!(seen.is_sorted());
    seen.dedup();
    assert_eq!(seen.len(), count, "one comes twice");
    let is_old = |path: &&String| (0..150).any(|n| **path == format!("\"file-{:03}.txt\"", n * 2));
    assert_eq!(seen.iter().filter(is_old).count(), 150, "one is missing: {seen:?}");
    assert_eq!(pages[0]["total"], 150);
}

#[test]
fn a_cursor_leads_through_all_that_matters_once() {
    let world = World::new();
    let mut want: Vec<String> = (0..60).map(|n| aged(&world, &format!("f{n}"), 90 - n)).collect();
    let broken = world.begin();
    world.write(world.session(&broken).join("session.json"), "");
    let mut n = 0;
    let pages = pages(&world, "status", || {
        world.edited(&format!("new{n}"));
        aged(&world, &format!("old{n}"), 200);
        n += 1;
    });
    assert!(pages.len() > 2);
    want.insert(0, broken);
    let want: Vec<String> = want.iter().map(|id| format!("\"{id}\"")).collect();
    assert_eq!(items(&pages, "matters", &["session"]), want);
    assert_eq!((&pages[0]["matters"][0]["what"], &pages[0]["total"]), (&"damaged".into(), &61.into()));
}

#[test]
fn an_item_that_is_larger_alone_has_a_page_of_its_own() {
    let world = World::new();
    let long = vec!["n".repeat(200); 15].join("/");
    world.mkdir(&long);
    let id = changed(&world, "s", ["a".into(), format!("{long}/x"), "z".into()].into_iter());
    let mut paths = Vec::new();
    let mut after = String::new();
    for _ in 0..3 {
        let page = world.recant(&format!("diff {id} --brief{after}")).ok().json();
        paths.extend(items(std::slice::from_ref(&page), "changes", &["path"]));
        after = page["next"].as_str().map(|next| format!(" --after {next}")).unwrap_or_default();
    }
    assert_eq!(after, "");
    assert_eq!((paths.len(), &*paths[0], &*paths[2]), (3, "\"a\"", "\"z\""));
    assert!(paths[1].len() > MOST);
}

#[test]
fn a_cursor_of_another_list_is_refused() {
    let world = World::new();
    let id = changed(&world, "s", (0..60).map(|n| format!("a long name of a file {n:03}")));
    let page = world.recant("diff s --brief").ok().json();
    let next = page["next"].as_str().expect("a cursor");
    let other = changed(&world, "other", (0..60).map(|n| format!("a long name of a file {n:03}")));
    let refused = |words: &str, what: &str| {
        let said: Said = world.recant(&format!("{words} --brief --after {next}")).with(1);
        assert!(said.out.is_empty() && said.stderr().contains(what), "{said}");
    };
    refused("diff", "no place in this list");
    refused(&format!("diff {other}"), "no place in this list");
    refused("status", "no place in this list");
    world.recant(&format!("diff {id} --brief --after {next}")).ok();
    let last = page["changes"].as_array().and_then(|rows| rows.last()?["path"].as_str()).expect("a row");
    world.call(["discard", "-y", &id, last]).run().ok();
    refused(&format!("diff {id}"), "the list has changed");
    world.recant("status --after x").with(2);
}

#[test]
fn an_agent_drops_only_sessions_in_which_a_person_made_nothing() {
    let world = World::new();
    let by_agent = |words: &str| world.call(words.split(' ')).env("CLAUDECODE", "1").run();
    let persons = world.edited("mine");
    for words in [format!("discard {persons}"), format!("discard {persons} mine"), format!("discard -y {persons}")] {
        let said = by_agent(&words).with(1);
        assert!(said.stderr().contains("a person made some of session"), "{said}");
        assert!(said.stderr().contains(&format!("in a terminal of your own: recant discard {}", &persons[16..])), "{said}");
    }
    assert_eq!(world.status(&persons), "pending");
    let own = by_agent("session new").ok().id();
    by_agent(&format!("session delete {own} mine"));
    by_agent(&format!("discard {own}")).ok();
    if !common::can_run() {
        return;
    }
    // What a person goes on in is not the agent's alone any more; what he chose of it stays so.
    by_agent("run --session s -- sh -c echo>a;echo>b").ok();
    world.call(["discard", "-y", "s", "a"]).run().ok();
    by_agent("discard s").ok();
    by_agent("run --session s -- touch a").ok();
    world.call(["run", "--session", "s", "--", "touch", "b"]).run().ok();
    by_agent("discard s").with(1);
    world.call(["discard", "-y", "s"]).run().ok();
}

#[test]
fn without_brief_all_is_there_and_an_agent_is_told_of_it() {
    let world = World::new();
    changed(&world, "s", (0..60).map(|n| format!("f{n}")));
    let call = || world.call(["diff", "s", "--json"]);
    let whole = call().run().ok();
    let agents = call().env("CLAUDECODE", "1").run().ok();
    assert_eq!((whole.json(), whole.stderr()), (agents.json(), String::new()));
    assert!(agents.json_err()["note"].as_str().is_some_and(|note| note.contains("diff --brief")), "{agents}");
    assert_eq!(whole.json()["changes"].as_array().map(Vec::len), Some(60));
    for words in [&["diff", "s", "--brief"][..], &["status", "--json"], &["diff", "s", "--stat"]] {
        assert_eq!(world.call(words).env("CLAUDECODE", "1").run().ok().stderr(), "", "{words:?}");
    }
}

#[test]
fn the_turns_of_a_day_fit_on_pages_and_each_comes_once_while_others_come() {
    let world = World::new();
    agent::repository(&world);
    let claude = agent::Agent::begin(&world, "claude", "s");
    let turn = |n: usize| {
        claude.prompt(&format!("{n}: rename the option and adapt what uses it"));
        claude.edit("file", &format!("{n}\n"));
        claude.stop();
    };
    (1..=20).for_each(turn);
    all_at_once(&world, "agent turns", "turns", 20);
    (21..=40).for_each(turn);
    let next = std::cell::Cell::new(41);
    let pages = pages(&world, "agent turns", || {
        turn(next.get());
        next.set(next.get() + 1);
    });
    let expected: Vec<String> = (1..=40).rev().map(|n| n.to_string()).collect();
    assert!(pages.len() > 1);
    assert_eq!(items(&pages, "turns", &["n"]), expected);
}
