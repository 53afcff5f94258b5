//! Machines with networks of their own, in namespaces (needs root and iproute2): one commit on three of them, and a network that goes away
//! before and in the middle of one.

use crate::common::sweep::steps_of;
use crate::common::{Manifest, Said, World, manifest};
use crate::ssh::{self, Host, Net};

/// A world whose recant gives up a machine that is silent for so long, and machines with networks of their own.
fn scene<const N: usize>(names: [&str; N], timeout: &str) -> Option<(World, [Host; N])> {
    let mut world = World::new();
    let net = Net::new(&mut world)?.apart()?;
    world.config(&format!("[remote]\nssh = 'ssh -F {}'\ntimeout = '{timeout}'\n", net.settings().display()));
    let hosts = names.map(|name| net.host(name));
    for host in &hosts {
        host.write("tree/edited", "old");
        host.write("tree/gone", "away");
    }
    Some((world, hosts))
}

fn tree(host: &Host) -> Manifest {
    manifest(&host.home.join("tree"))
}

/// A session of the same id on each machine, of what lies in its own tree.
fn staged(world: &World, hosts: &[Host]) -> String {
    let [first, others @ ..] = hosts else { panic!("a machine") };
    let on =
        |host: &Host, words: &str| world.call(["-H", &host.name].into_iter().chain(words.split(' '))).stdin("new").run().ok();
    let id = on(first, "session new").stdout().trim().to_owned();
    for words in ["write ID tree/edited", "write -p ID tree/made/new", "delete ID tree/gone"] {
        on(first, &format!("session {}", words.replace("ID", &id)));
    }
    let stream = world.call(["-H", &first.name, "session", "export", &id]).run().ok().out;
    for other in others {
        let map = format!("{}={}", first.home.join("tree").display(), other.home.join("tree").display());
        world.call(["-H", &other.name, "session", "import", "--map", &map]).stdin(&stream).run().ok();
    }
    id
}

#[test]
#[ignore = "long: waits for networks that are gone"]
fn a_commit_on_three_machines_is_on_all_and_on_none_where_the_network_of_one_is_down() {
    let Some((world, hosts)) = scene(["web1", "web2", "web3"], "8s") else { return };
    let id = staged(&world, &hosts);
    let before: Vec<Manifest> = hosts.iter().map(tree).collect();
    let all = |verb: &str| -> Said { world.call(["-H", "web1,web2,web3", verb, &id]).run() };
    hosts[1].plug(false);
    let said = all("commit");
    assert_ne!(said.status, 0, "{said}");
    assert!(said.stdout().contains("web2: no answer for 8 s"), "{said}");
    // Nor was it done there and taken back.
    for name in ["web1", "web3"] {
        assert!(said.stdout().contains(&format!("{name}  not begun")), "{said}");
    }
    for (host, before) in hosts.iter().zip(&before) {
        before.assert_same(&tree(host), &format!("{}, with no way to web2: {said}", host.name));
    }
    hosts[1].plug(true);
    all("commit").ok();
    for host in &hosts {
        assert_eq!((host.read("tree/edited"), host.read("tree/made/new")), ("new".into(), "new".into()), "{}", host.name);
        assert!(!host.home.join("tree/gone").exists(), "{}", host.name);
    }
    all("rollback").ok();
    for (host, before) in hosts.iter().zip(&before) {
        before.assert_same(&tree(host), &host.name);
    }
}

/// The network goes away there, and nobody is told: no connection is closed, no process ended.
#[test]
#[ignore = "long: waits for networks that are gone"]
fn a_network_that_goes_away_in_the_middle_decides_nothing() {
    let Some((world, [host])) = scene(["web1"], "6s") else { return };
    let hosts = [host];
    let id = staged(&world, &hosts);
    let [host] = &hosts;
    let before = tree(host);
    let steps = |verb: &str, steps: &str| world.call(["-H", "web1", verb, &id]).env("RECANT_STEPS", steps).run();
    for verb in ["commit", "rollback"] {
        let count = steps_of(|| world.call(["-H", "web1", verb, &id])).len();
        let after = tree(host).without_directory_times();
        world.call(["-H", "web1", if verb == "commit" { "rollback" } else { "redo" }, &id]).run().ok();
        let worker = world.root().join("worker");
        let script = world.root().join("pull");
        std::fs::write(&script, format!("echo $PPID > {}\nexec ip link set eth0 down\n", worker.display())).unwrap();
        let said = steps(verb, &format!("run:{}:exec sh {}", count / 2, script.display()));
        assert_eq!(said.status, 1, "{verb}: {said}");
        assert!(said.stderr().contains("web1: ") && said.stderr().contains("status tells what was done"), "{verb}: {said}");
        let at_work: i32 = std::fs::read_to_string(&worker).unwrap().trim().parse().unwrap();
        ssh::until("it has ended there", || !std::path::Path::new(&format!("/proc/{at_work}")).exists());
        host.plug(true);
        let status = world.call(["-H", "web1", "status", "--json"]).run().ok().json();
        let ended = if verb == "commit" { "committed" } else { "rolled_back" };
        assert_eq!(status["sessions"][ended], 1, "{verb}: {status}");
        after.assert_same(&tree(host).without_directory_times(), verb);
    }
    before.assert_same(&tree(host), "rolled back");
}
