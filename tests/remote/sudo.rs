//! `[remotes.NAME] sudo = true` with a real sudo: an ordinary user logs in, and recant is root there; or sudo refuses, asks, or is not there, and
//! that is said with what would help. Needs root, for an ordinary user's account and a rule in /etc/sudoers.d, which goes with the test and
//! names one file of the test's own. How a verb on a terminal ends is told from sudo's own end, with a script in sudo's place, too.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::{self, Said, World, manifest};
use crate::ssh::{self, Account, Host, Net};

/// A rule of sudo's, as long as this lives.
struct Rule(PathBuf);

impl Rule {
    fn new(text: &str) -> Self {
        let path = PathBuf::from(
            format!("/etc/sudoers.d/recant-test-{}-{:?}", std::process::id(), std::thread::current().id())
                .replace(['(', ')'], "-"),
        );
        let whole = path.with_file_name(format!(".{}.new", path.file_name().unwrap().to_string_lossy()));
        // sudo leaves out names with a dot: it sees all of it or nothing.
        std::fs::write(&whole, text).unwrap();
        std::fs::set_permissions(&whole, PermissionsExt::from_mode(0o440)).unwrap();
        std::fs::rename(&whole, &path).unwrap();
        Self(path)
    }
}

impl Drop for Rule {
    fn drop(&mut self) {
        let _gone = std::fs::remove_file(&self.0);
    }
}

/// A machine that an ordinary user logs in to, where what lies in `srv` and the store are root's.
struct Scene {
    world: World,
    host: Host,
    account: Account,
    srv: PathBuf,
    store: PathBuf,
}

impl Scene {
    fn new() -> Option<Self> {
        // Not in /tmp, where what `run --in` starts may write: the store lies here.
        let mut world = World::on(Path::new("/var/tmp"));
        let account = ssh::ordinary()?;
        if !Path::new("/etc/sudoers.d").is_dir() || !Path::new("/usr/bin/sudo").exists() {
            common::skip("recant by sudo on another machine: sudo is not installed");
            return None;
        }
        let net = Net::new(&mut world)?;
        let host = net.host_of("web1", &account);
        let (srv, store) = (world.root().join("srv"), world.root().join("root's store"));
        std::fs::create_dir(&srv).unwrap();
        std::fs::write(srv.join("conf"), "old").unwrap();
        std::fs::set_permissions(srv.join("conf"), PermissionsExt::from_mode(0o600)).unwrap();
        let scene = Self { world, host, account, srv, store };
        scene.settings(&net, "sudo = true");
        Some(scene)
    }

    fn settings(&self, net: &Net, more: &str) {
        let (ssh, store) = (net.settings(), &self.store);
        let text =
            format!("[remote]\nssh = 'ssh -F {}'\n[remotes.web1]\nstore = \"{}\"\n{more}\n", ssh.display(), store.display());
        self.world.config(&text);
    }

    fn without_sudo(&self) {
        let path = self.world.root().join("config/recant/config.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(path, text.replace("sudo = true", "")).unwrap();
    }

    /// What lets the user do it without a password, or with one.
    fn rule(&self, tag: &str) -> Rule {
        Rule::new(&self.line(tag))
    }

    fn line(&self, tag: &str) -> String {
        let command = self.host.recant().display().to_string();
        format!("{} ALL=(root) {tag}: {command} far, {command} far --request *\n", self.account.name)
    }

    fn far(&self, words: &[&str]) -> Said {
        self.world.call(["-H", "web1"].iter().chain(words)).stdin("new").run()
    }

    fn conf(&self) -> String {
        self.srv.join("conf").display().to_string()
    }
}

#[test]
fn an_ordinary_user_s_login_commits_and_rolls_back_what_is_root_s() {
    let Some(scene) = Scene::new() else { return };
    let _rule = scene.rule("NOPASSWD");
    let before = manifest(&scene.srv);
    let id = scene.far(&["session", "new"]).ok().stdout().trim().to_owned();
    let made = scene.srv.join("made/new").display().to_string();
    scene.far(&["session", "write", &id, &scene.conf()]).ok();
    scene.far(&["session", "write", "-p", &id, &made]).ok();
    assert_eq!(scene.store.metadata().unwrap().uid(), 0);
    scene.far(&["commit", &id]).ok();
    let conf = scene.srv.join("conf");
    let meta = conf.metadata().unwrap();
    assert_eq!((std::fs::read_to_string(&conf).unwrap().as_str(), meta.uid(), meta.mode() & 0o7777), ("new", 0, 0o600));
    assert_eq!(Path::new(&made).metadata().unwrap().uid(), 0);
    // Without sudo neither the store nor the file can be had: that is refused, and nothing is done.
    scene.without_sudo();
    let committed = manifest(&scene.srv);
    let said = scene.far(&["rollback", &id]).with(1);
    assert!(said.stderr().contains(&scene.store.display().to_string()), "{said}");
    committed.assert_same(&manifest(&scene.srv), "as the user himself");
    let path = scene.world.root().join("config/recant/config.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(path, text + "sudo = true\n").unwrap();
    scene.far(&["rollback", &id]).ok();
    before.assert_same(&manifest(&scene.srv), "rolled back");
}

#[test]
fn a_run_by_sudo_is_root_s_and_ends_by_a_signal_sent_here() {
    let Some(scene) = Scene::new() else { return };
    let _rule = scene.rule("NOPASSWD");
    let said = scene
        .far(&["run", "--in", &scene.srv.display().to_string(), "--", "sh", "-c", "id -u; echo new > \"$0\"", &scene.conf()])
        .ok();
    assert_eq!(said.stdout(), "0\n");
    assert_eq!(std::fs::read_to_string(scene.conf()).unwrap(), "new\n");
    scene.far(&["rollback", "last"]).ok();
    assert_eq!(std::fs::read_to_string(scene.conf()).unwrap(), "old");
    if !common::can_run() {
        return common::skip("a signal to a run by sudo: recant run does not work here");
    }
    let mut command = scene.world.call(["-H", "web1", "run", "--", "sh", "-c", "echo begun; exec sleep 600"]).command();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut first = [0; 6];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
    let worker = scene.host.writer();
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    common::until("the run has ended there", || !Path::new(&format!("/proc/{worker}")).exists());
}

#[test]
fn sudo_that_wants_a_password_or_lets_nobody_is_named_with_what_would_allow_it() {
    let Some(scene) = Scene::new() else { return };
    for tag in [Some("PASSWD"), None] {
        let _rule = tag.map(|tag| scene.rule(tag));
        let start = Instant::now();
        let said = scene.far(&["session", "new"]).with(1);
        assert!(said.stderr().contains("sudo: a password is required"), "{tag:?}: {said}");
        assert!(said.stderr().contains("web1: sudo -n refused to run recant there"), "{tag:?}: {said}");
        assert!(said.stderr().contains("nothing was changed"), "{tag:?}: {said}");
        assert!(said.stderr().contains("allow it without a password in sudoers on web1"), "{tag:?}: {said}");
        let said = scene.far(&["session", "new", "--json"]).with(1).stderr();
        let json: serde_json::Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
        assert!(json["remedy"].as_str().is_some_and(|remedy| remedy.contains("sudoers")), "{json}");
        // On a terminal it could ask, and does not.
        let recant = common::recant();
        let shown = scene.world.root().join("shown");
        let script = format!("script -qec '{recant} -H web1 run -- true' /dev/null > {}; :", shown.display());
        scene.world.program("sh", ["-c", &script]).run().ok();
        let text = std::fs::read_to_string(&shown).unwrap();
        assert!(text.contains("a password is required") && text.contains("allow it without a password"), "{tag:?}: {text}");
        assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
        assert!(!scene.store.exists());
    }
}

#[test]
fn where_there_is_no_sudo_that_is_said_and_recant_is_not_put_there_once_more() {
    let Some(scene) = Scene::new() else { return };
    // A PATH with a shell and no sudo.
    let tools = scene.host.home.join("tools");
    std::fs::create_dir(&tools).unwrap();
    symlink("/bin/sh", tools.join("sh")).unwrap();
    scene.host.write(".noise", "PATH=$HOME/tools");
    let said = scene.far(&["session", "new"]).with(1);
    assert!(said.stderr().contains("web1: sudo is not installed there"), "{said}");
    assert!(said.stderr().contains("install it on web1, or take sudo out of [remotes]"), "{said}");
    assert!(!said.stderr().contains("cannot be installed there"), "{said}");
    // Nor one that may be run.
    std::fs::write(tools.join("sudo"), "").unwrap();
    let said = scene.far(&["session", "new"]).with(1);
    assert!(said.stderr().contains("web1: sudo is not installed there"), "{said}");
}

/// A machine whose sudo is a script in its PATH, and an ssh that counts its connections.
struct StandIn {
    world: World,
    host: Host,
}

impl StandIn {
    fn new(sudo: &str) -> Option<Self> {
        let mut world = World::new();
        let net = Net::new(&mut world)?;
        let host = net.host("web1");
        host.write("bin/sudo", format!("#!/bin/sh\n{sudo}\n"));
        std::fs::set_permissions(host.home.join("bin/sudo"), PermissionsExt::from_mode(0o755)).unwrap();
        host.write(".noise", "PATH=$HOME/bin:$PATH");
        let (ssh, shown) = (world.root().join("an-ssh"), world.root().display());
        std::fs::write(&ssh, format!("#!/bin/sh\necho one >> {shown}/calls\nexec ssh -F {shown}/ssh/config \"$@\"\n")).unwrap();
        std::fs::set_permissions(&ssh, PermissionsExt::from_mode(0o755)).unwrap();
        world.config(&format!("[remote]\nssh = '{}'\n[remotes.web1]\nsudo = true\n", ssh.display()));
        Some(Self { world, host })
    }

    /// A verb on a terminal: its status, what is shown, and the connections that it took.
    fn on_terminal(&self, words: &str) -> (i32, String, usize) {
        let at = |name: &str| self.world.root().join(name);
        let _none = std::fs::remove_file(at("calls"));
        let call = format!("{} -H web1 {words}", common::recant());
        std::fs::write(at("call"), format!("{call}\n")).unwrap();
        let script = format!("script -qec 'sh {}' /dev/null > {}", at("call").display(), at("shown").display());
        let said = self.world.program("sh", ["-c", &script]).run();
        let read = |name| std::fs::read_to_string(at(name)).unwrap();
        (said.status, read("shown"), read("calls").lines().count())
    }
}

/// As one with `requiretty` in its sudoers; Ctrl-C is its command's.
const WANTS_A_TERMINAL: &str = "[ -t 0 ] || { echo sudo: sorry, you must have a tty to run sudo >&2; exit 1; }\n[ \"$1\" = -n ] && shift\ntrap : INT\n\"$@\"; exit $?";

#[test]
fn how_a_verb_on_a_terminal_ended_is_told_from_what_sudo_refuses_on_that_very_connection() {
    let Some(far) = StandIn::new(WANTS_A_TERMINAL) else { return };
    if !common::can_run() {
        return common::skip("a run by sudo on a terminal: recant run does not work here");
    }
    let (status, shown, calls) = far.on_terminal("run -- sh -c 'echo changed > f; exit 1'");
    assert!(shown.contains("1 change (1 created) held") && !shown.contains("nothing was changed"), "{shown}");
    assert_eq!((status, calls), (1, 1), "{shown}");
    for wanted in [0, 1, 2, 126, 127, 214, 254] {
        let (status, shown, calls) = far.on_terminal(&format!("run -- sh -c 'exit {wanted}'"));
        assert_eq!((status, calls), (wanted, 1), "{shown}");
        assert!(!shown.contains("sudo"), "{shown}");
    }
    let (status, shown, calls) = far.on_terminal("run -- no-such-command");
    assert_eq!((status, calls), (127, 1), "{shown}");
    assert!(!shown.contains("sudo"), "{shown}");
    let (status, shown, calls) = far.on_terminal("run -- sh -c 'kill -INT $$'");
    assert_eq!((status, calls), (130, 1), "{shown}");
    // Those two say of ssh, or of recant there, something else: that is asked for without sudo.
    for wanted in [213, 255] {
        let (status, shown, calls) = far.on_terminal(&format!("run -- sh -c 'exit {wanted}'"));
        assert_eq!((status, calls), (wanted, 2), "{shown}");
        assert!(!shown.contains("sudo") && !shown.contains("nothing was changed"), "{shown}");
    }
}

/// The shell that waits there for sudo gets it, too.
#[test]
fn ctrl_c_on_a_terminal_by_sudo_is_the_command_s_and_its_end_is_waited_for() {
    let Some(far) = StandIn::new(WANTS_A_TERMINAL) else { return };
    if !common::can_run() {
        return common::skip("Ctrl-C in a run by sudo: recant run does not work here");
    }
    let root = far.world.root().display().to_string();
    let command = "trap \"sleep 0.5; echo cleaned; exit 5\" INT; echo begun; while :; do sleep 0.1; done";
    let call = format!("{} -H web1 run -- sh -c '{command}'\n", common::recant());
    std::fs::write(format!("{root}/call"), call).unwrap();
    let typed = format!(
        "cd {root}; : > shown; (until grep -q begun shown; do sleep 0.05; done; printf '\\003'; until [ -e over ]; do sleep 0.05; done) | \
         {{ script -qefc 'sh call' /dev/null > shown; status=$?; : > over; exit $status; }}"
    );
    let said = far.world.program("sh", ["-c", &typed]).run();
    let shown = std::fs::read_to_string(format!("{root}/shown")).unwrap();
    assert!(shown.contains("cleaned") && !shown.contains("sudo"), "{shown}");
    assert_eq!(said.status, 5, "{shown}{said}");
}

#[test]
fn what_sudo_refuses_on_a_terminal_is_told_there_and_nothing_is_asked_again() {
    for (sudo, status, words) in [
        ("echo sudo: a password is required >&2; exit 1", 1, "sudo -n refused to run recant there"),
        ("exit 127", 1, "sudo is not installed there"),
        ("kill -TERM $$", 143, ""),
    ] {
        let Some(far) = StandIn::new(sudo) else { return };
        let (ended, shown, calls) = far.on_terminal("run -- true");
        assert_eq!((ended, calls), (status, 1), "{sudo}: {shown}");
        assert!(shown.contains(words), "{sudo}: {shown}");
        assert_eq!(shown.contains("nothing was changed"), status == 1, "{sudo}: {shown}");
        assert!(!far.host.store().exists(), "{sudo}");
    }
}

#[test]
fn a_recant_that_cannot_tell_that_it_was_started_does_nothing() {
    let world = World::new();
    // A shell without a trap, which the signal would end.
    let call = format!("{} far --request e30 --tells $$; echo ended $?", common::recant());
    let said = world.program("sh", ["-c", &call]).run().ok();
    assert_eq!(said.stdout(), "ended 1\n", "{said}");
    assert!(said.stderr().contains("that recant was started"), "{said}");
    assert!(said.stderr().contains("nothing was changed"), "{said}");
}

#[test]
fn a_sudo_that_wants_a_terminal_runs_on_one() {
    let Some(scene) = Scene::new() else { return };
    if !common::can_run() {
        return common::skip("a run by sudo on a terminal: recant run does not work here");
    }
    // Of this machine's recant alone: other tests have the same account.
    let wants = format!("Defaults!{} requiretty\n", scene.host.recant().display());
    let _rule = Rule::new(&(wants + &scene.line("NOPASSWD")));
    let said = scene.far(&["session", "new"]).with(1);
    assert!(said.stderr().contains("sudo -n refused to run recant there"), "{said}");
    let shown = scene.world.root().join("shown");
    let call = scene.world.root().join("call");
    let (recant, srv, conf) = (common::recant(), scene.srv.display(), scene.conf());
    std::fs::write(&call, format!("{recant} -H web1 run --in {srv} -- sh -c 'echo new > {conf}; exit 1'\n")).unwrap();
    let script = format!("script -qec 'sh {}' /dev/null > {}", call.display(), shown.display());
    let said = scene.world.program("sh", ["-c", &script]).run();
    let text = std::fs::read_to_string(&shown).unwrap();
    assert_eq!(said.status, 1, "{text}{said}");
    assert!(text.contains("1 change") && !text.contains("refused") && !text.contains("nothing was changed"), "{text}{said}");
    assert_eq!(std::fs::read_to_string(scene.conf()).unwrap(), "new\n", "{text}");
}

#[test]
fn a_run_by_sudo_on_a_terminal_ends_with_its_connection() {
    let Some(scene) = Scene::new() else { return };
    if !common::can_run() {
        return common::skip("a run by sudo on a terminal that is cut: recant run does not work here");
    }
    let _rule = scene.rule("NOPASSWD");
    let at = |name: &str| scene.world.root().join(name);
    let call = format!("{} -H web1 run -- sh -c 'echo begun; exec sleep 600'\n", common::recant());
    std::fs::write(at("call"), call).unwrap();
    let script = format!("exec script -qefc 'sh {}' /dev/null > {}", at("call").display(), at("shown").display());
    let mut near = scene.world.program("sh", ["-c", &script]).command().stdin(Stdio::null()).spawn().unwrap();
    common::until("it has begun", || std::fs::read_to_string(at("shown")).is_ok_and(|shown| shown.contains("begun")));
    let worker = scene.host.writer();
    scene.host.cut();
    assert!(!near.wait().unwrap().success());
    common::until("the run has ended there", || !Path::new(&format!("/proc/{worker}")).exists());
}
