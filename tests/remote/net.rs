//! A machine with a network of its own, in a namespace (needs root and iproute2), which goes away in the middle of a commit and of a rollback.

use crate::common::sweep::steps_of;
use crate::common::{Manifest, World, manifest};
use crate::ssh::{Host, Net};

/// A world whose recant gives up a machine that is silent for so long, and one with a network of its own.
fn scene(timeout: &str) -> Option<(World, Host)> {
    let mut world = World::new();
    let net = Net::new(&mut world)?.apart()?;
    world.config(&format!("[remote]\nssh = 'ssh -F {}'\ntimeout = '{timeout}'\n", net.settings().display()));
    let host = net.host("web1");
    host.write("tree/edited", "old");
    host.write("tree/gone", "away");
    Some((world, host))
}

fn tree(host: &Host) -> Manifest {
    manifest(&host.home.join("tree"))
}

/// A session there.
fn staged(world: &World) -> String {
    let far = |words: &str| world.call(["-H", "web1"].into_iter().chain(words.split(' '))).stdin("new").run().ok();
    let id = far("session new").stdout().trim().to_owned();
    for words in ["write ID tree/edited", "write -p ID tree/made/new", "delete ID tree/gone"] {
        far(&format!("session {}", words.replace("ID", &id)));
    }
    id
}

/// The network goes away there, and nobody is told: no connection is closed, no process ended.
#[test]
#[ignore = "long: waits for networks that are gone"]
fn a_network_that_goes_away_in_the_middle_decides_nothing() {
    let Some((world, host)) = scene("6s") else { return };
    let id = staged(&world);
    let before = tree(&host);
    let steps = |verb: &str, steps: &str| world.call(["-H", "web1", verb, &id]).env("RECANT_STEPS", steps).run();
    for verb in ["commit", "rollback"] {
        let count = steps_of(|| world.call(["-H", "web1", verb, &id])).len();
        let after = tree(&host).without_directory_times();
        world.call(["-H", "web1", if verb == "commit" { "rollback" } else { "redo" }, &id]).run().ok();
        let worker = world.root().join("worker");
        let script = world.root().join("pull");
        std::fs::write(&script, format!("echo $PPID > {}\nexec ip link set eth0 down\n", worker.display())).unwrap();
        let said = steps(verb, &format!("run:{}:exec sh {}", count / 2, script.display()));
        assert_eq!(said.status, 1, "{verb}: {said}");
        assert!(said.stderr().contains("web1: ") && said.stderr().contains("status shows what was done"), "{verb}: {said}");
        let at_work: i32 = std::fs::read_to_string(&worker).unwrap().trim().parse().unwrap();
        crate::common::until("it has ended there", || !std::path::Path::new(&format!("/proc/{at_work}")).exists());
        host.plug(true);
        let status = world.call(["-H", "web1", "status", "--json"]).run().ok().json();
        let ended = if verb == "commit" { "committed" } else { "rolled_back" };
        assert_eq!(status["sessions"][ended], 1, "{verb}: {status}");
        after.assert_same(&tree(&host).without_directory_times(), verb);
    }
    before.assert_same(&tree(&host), "rolled back");
}
