//! Several machines with a tree and a session, for the tests of one commit on all of them.
//!
//! Each machine is a real sshd with a home and a store of its own, and a tree of its own: as root the world's tree is another one in
//! each by a mount of its own; else the session is imported there beforehand, its paths mapped.
//! A file of its own beside `common` and `ssh`: `#[path = "common/machines.rs"] mod machines;`

#![allow(dead_code, reason = "each test binary uses a part of the fixture")]
#![expect(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests set up real files")]

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::common::{self, Manifest, Said, World};
use crate::ssh::{Host, Net};

/// A world with a session, and machines whose trees are as the world's.
pub struct Scene {
    pub world: World,
    pub hosts: Vec<Host>,
    pub id: String,
    pub before: Manifest,
}

impl Scene {
    pub fn new(names: &[&str]) -> Option<Self> {
        let mut world = World::new();
        let net = Net::new(&mut world)?;
        world.write("edited", "old").write("gone", "away").write("full/a", "1");
        for name in ["", "full"] {
            world.set_mtime(name, 1_000_000_000, 7);
        }
        let id = world.begin();
        world.stage_write(&id, "edited", "new").stage_write(&id, "made/deep/new", "new");
        world.recant(&format!("session delete {id} gone")).ok();
        let hosts: Vec<Host> = names.iter().map(|name| net.host(name)).collect();
        let scene = Self { before: world.manifest(), world, hosts, id };
        for host in &scene.hosts {
            let tree = host.home.join("tree");
            let copy = ["-a".into(), scene.world.tree().display().to_string(), tree.display().to_string()];
            scene.world.program("cp", copy).run().ok();
            scene.login(host, "");
            if !bound() {
                let stream = scene.world.call(["session", "export", &scene.id]).run().ok().out;
                let map = format!("{}={}", scene.world.tree().display(), tree.display());
                host.here(&scene.world, ["session", "import", "--map", &map]).stdin(stream).run().ok();
            }
        }
        Some(scene)
    }

    /// What each connection to the machine begins with: a tree of its own, and `more`, shell text.
    pub fn login(&self, host: &Host, more: &str) {
        login(&self.world, host, more);
    }

    pub fn tree(&self, host: usize) -> PathBuf {
        self.hosts[host].home.join("tree")
    }

    pub fn names(&self) -> String {
        self.hosts.iter().map(|host| &*host.name).collect::<Vec<_>>().join(",")
    }

    pub fn verb(&self, verb: &str) -> Said {
        self.world.call(["-H", &self.names(), verb, &self.id]).run()
    }

    pub fn assert_as_before(&self, what: &str) {
        for (n, host) in self.hosts.iter().enumerate() {
            self.before.assert_same(&common::manifest(&self.tree(n)), &format!("{what}: {}", host.name));
        }
    }

    pub fn assert_as_before_but(&self, edited: usize, what: &str) {
        for n in (0..self.hosts.len()).filter(|n| *n != edited) {
            self.before.assert_same(&common::manifest(&self.tree(n)), what);
        }
    }

    pub fn assert_done(&self, what: &str) {
        for n in 0..self.hosts.len() {
            let tree = self.tree(n);
            assert_eq!(std::fs::read_to_string(tree.join("edited")).unwrap(), "new", "{what}");
            assert_eq!(std::fs::read_to_string(tree.join("made/deep/new")).unwrap(), "new", "{what}");
            assert!(!tree.join("gone").exists(), "{what}");
        }
    }

    /// The sessions that a machine has, with their status.
    pub fn listed(&self, host: usize) -> Vec<String> {
        let said = self.hosts[host].here(&self.world, ["list", "--jsonl"]).run();
        said.json_lines().iter().map(|row| row["status"].as_str().unwrap().to_owned()).collect()
    }

    pub fn journals(&self, host: usize) -> usize {
        std::fs::read_dir(self.hosts[host].store().join("journals")).map_or(0, Iterator::count)
    }

    /// The statuses where a session that came with the commit is taken away again, and where it was there before.
    pub fn at_rest(&self) -> Vec<String> {
        if bound() { Vec::new() } else { vec!["pending".into()] }
    }
}

/// Lets each connection to a machine begin with a tree of its own in the place of the world's, and with `more`, shell text.
pub fn login(world: &World, host: &Host, more: &str) {
    let login = world.root().join("hosts").join(&host.name).join("login");
    let (home, tree) = (host.home.display().to_string(), world.tree().display().to_string());
    let become_shell = "exec /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"";
    let text = if bound() {
        format!(
            "#!/bin/sh\nexport HOME={home}\ncd {home}\n{more}\nexec unshare -m --propagation private sh -c 'mount --bind {home}/tree {tree} && {become_shell}'\n"
        )
    } else {
        format!("#!/bin/sh\nexport HOME={home}\ncd {home}\n{more}\n{become_shell}\n")
    };
    std::fs::write(&login, text).unwrap();
    std::fs::set_permissions(&login, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Whether each machine can have a tree of its own at the same path.
pub fn bound() -> bool {
    rustix::process::geteuid().is_root()
}

/// The word of each machine's row.
pub fn rows(said: &Said) -> Vec<(String, i64, String)> {
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    said.json_lines().iter().map(|row| (text(&row["host"]), row["exit"].as_i64().unwrap(), text(&row["result"]))).collect()
}

pub fn row(host: &str, exit: i64, result: &str) -> (String, i64, String) {
    (host.into(), exit, result.into())
}
