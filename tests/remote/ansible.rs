//! docs/ansible/rollout.yml, run by real ansible-core against real sshds: what is well stays, what is not is taken back, and who comes
//! behind it is not touched.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::common::{self, Said, World};
use crate::ssh::{Host, Net};

/// ansible-playbook, of a Python environment below the build directory; `None`, said as a skip, where there can be none.
fn playbook() -> Option<PathBuf> {
    // One test alone makes it.
    static MADE: OnceLock<Option<PathBuf>> = OnceLock::new();
    MADE.get_or_init(make_playbook).clone()
}

fn make_playbook() -> Option<PathBuf> {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ansible");
    let program = directory.join("bin/ansible-playbook");
    let quiet = |command: &mut Command| {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    let works = || quiet(Command::new(&program).arg("--version"));
    if !works() {
        let made = quiet(Command::new("python3").args(["-m", "venv"]).arg(&directory));
        let words = ["install", "-q", "--disable-pip-version-check", "--timeout", "20", "ansible-core>=2.16,<2.20"];
        if !made || !quiet(Command::new(directory.join("bin/pip")).args(words)) || !works() {
            println!("skipped: a playbook: ansible-core cannot be had here by pip");
            return None;
        }
    }
    Some(program)
}

struct Scene {
    world: World,
    hosts: Vec<Host>,
    id: String,
    program: PathBuf,
}

impl Scene {
    fn new() -> Option<Self> {
        let program = playbook()?;
        let mut world = World::new();
        let net = Net::new(&mut world)?;
        world.write("app.conf", "old").write("gone", "away");
        world.write("cache/1", "1").write("cache/2", "2").write("cache/3", "3");
        let id = world.begin();
        world.stage_write(&id, "app.conf", "new").stage_write(&id, "more/of.it", "new");
        world.recant(&format!("session delete {id} gone")).ok();
        world.recant(&format!("session delete -r {id} cache")).ok();
        let stream = world.call(["session", "export", &id]).run().ok().out;
        std::fs::write(world.root().join("site.recant"), stream).unwrap();
        let hosts: Vec<Host> = ["a", "b", "c"].iter().map(|name| net.host(name)).collect();
        let python = world.program("sh", ["-c", "command -v python3"]).run().ok().id();
        let mut inventory = String::new();
        for host in &hosts {
            let tree = host.home.join("a tree");
            world.program("cp", ["-a".into(), world.tree(), tree.clone()]).run().ok();
            let map = format!("{}={}", world.tree().display(), tree.display());
            let words = [
                format!("ansible_ssh_common_args='-F {}'", net.settings().display()),
                format!(
                    "ansible_python_interpreter={python} ansible_ssh_transfer_method=piped ansible_remote_tmp={}",
                    host.home.join("tmp").display()
                ),
                format!("recant={} recant_map='[\"{map}\"]'", host.recant().display()),
            ];
            inventory.push_str(&format!("{} {}\n", host.name, words.join(" ")));
        }
        std::fs::write(world.root().join("hosts.ini"), inventory).unwrap();
        Some(Self { world, hosts, id, program })
    }

    /// Runs the playbook; a host is well unless a file `sick` lies in its home.
    fn roll_out(&self) -> Said {
        let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/ansible/rollout.yml");
        let root = self.world.root();
        let (book, inventory, stream) = (book.display(), root.join("hosts.ini"), root.join("site.recant"));
        let script = format!(
            "exec {program} -i {inventory} {book} -e recant_stream={stream} -e recant_id={id} -e recant_retries=1 -e recant_delay=0 \
             -e 'recant_check=\"test ! -e sick\"'",
            program = self.program.display(),
            inventory = inventory.display(),
            stream = stream.display(),
            id = self.id,
        );
        let call = self.world.program("sh", ["-c", &script]);
        // Connections are shared as the settings of ssh have it.
        call.env("ANSIBLE_NOCOLOR", "1")
            .env("ANSIBLE_PIPELINING", "1")
            .env("ANSIBLE_SSH_ARGS", "-C")
            .env("ANSIBLE_HOST_KEY_CHECKING", "True")
            .env("LC_ALL", "C.UTF-8")
            .run()
    }

    fn conf(&self, host: usize) -> String {
        self.hosts[host].read("a tree/app.conf")
    }

    fn statuses(&self, host: usize) -> Vec<String> {
        let said = self.hosts[host].here(&self.world, ["list", "--all", "--json"]).run();
        said.rows().iter().map(|row| row["status"].as_str().unwrap().to_owned()).collect()
    }
}

/// How many changes ansible counts on a host.
fn changed(said: &Said, host: &str) -> u32 {
    let text = said.stdout();
    let line = text.lines().rev().find(|line| line.starts_with(&format!("{host} ")) && line.contains("changed="));
    let line = line.unwrap_or_else(|| panic!("no recap of {host}:\n{said}"));
    line.split("changed=").nth(1).unwrap().split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
#[ignore = "long: a playbook on three machines"]
fn the_playbook_stops_at_the_first_host_that_is_not_well_takes_it_back_and_goes_on_later() {
    let Some(scene) = Scene::new() else { return };
    let before = common::manifest(&scene.hosts[1].home.join("a tree"));
    scene.hosts[1].write("sick", "");
    let said = scene.roll_out();
    assert_ne!(said.status, 0, "{said}");
    assert!(said.stdout().contains("the commit is taken back"), "{said}");
    assert_eq!((scene.conf(0), scene.conf(1), scene.conf(2)), ("new".into(), "old".into(), "old".into()), "{said}");
    before.assert_same(&common::manifest(&scene.hosts[1].home.join("a tree")), "taken back exactly");
    assert_eq!((scene.statuses(0), scene.statuses(1)), (vec!["committed".into()], vec!["rolled_back".into()]));
    assert_eq!(scene.statuses(2), Vec::<String>::new(), "it was not begun there");
    // Nothing waits for a word any more.
    for host in &scene.hosts[..2] {
        let status = host.here(&scene.world, ["status", "--json"]).run().ok().json();
        assert_eq!(status["unconfirmed"], serde_json::json!([]), "{status}");
    }

    std::fs::remove_file(scene.hosts[1].home.join("sick")).unwrap();
    let said = scene.roll_out().ok();
    assert_eq!((scene.conf(0), scene.conf(1), scene.conf(2)), ("new".into(), "new".into(), "new".into()), "{said}");
    assert_eq!((changed(&said, "a"), changed(&said, "b") > 0), (0, true), "{said}");

    let said = scene.roll_out().ok();
    assert_eq!(["a", "b", "c"].map(|host| changed(&said, host)), [0, 0, 0], "{said}");
}

#[test]
fn the_playbook_stops_at_a_conflict_before_anything_is_changed() {
    let Some(scene) = Scene::new() else { return };
    scene.hosts[0].write("a tree/app.conf", "somebody's");
    let said = scene.roll_out();
    assert_ne!(said.status, 0, "{said}");
    assert_eq!((scene.conf(0), scene.conf(1)), ("somebody's".into(), "old".into()), "{said}");
    assert!(said.stdout().contains("app.conf"), "it is named: {said}");
}

#[test]
#[ignore = "long: a playbook on three machines"]
fn a_commit_that_leaves_something_out_is_one_and_is_taken_back_where_it_is_not_well() {
    let Some(scene) = Scene::new() else { return };
    for host in &scene.hosts {
        host.write(".config/recant/config.toml", "[checkpoint]\nmax_files = 1\non_limit = 'partial'\n");
    }
    scene.hosts[1].write("sick", "");
    let said = scene.roll_out();
    assert_ne!(said.status, 0, "{said}");
    assert!(said.stdout().contains("the commit is taken back"), "{said}");
    assert_eq!((scene.conf(0), scene.conf(1), scene.conf(2)), ("new".into(), "old".into(), "old".into()), "{said}");
    let status = scene.hosts[0].here(&scene.world, ["status", "--json"]).run().ok().json();
    assert_eq!(status["unconfirmed"], serde_json::json!([]), "{status}");
    // What was not kept cannot come back.
    assert_eq!((scene.statuses(0), scene.statuses(1)), (vec!["committed".into()], vec!["committed".into()]));
}
