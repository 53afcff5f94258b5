//! `-H` on a machine without recant: this very binary is put there, or it is said what would do it. Needs the static build of
//! `make static`.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime};

use crate::common::{self, Said, World};
use crate::ssh::{self, Host, Net};

/// The release build, where there is one.
fn static_build() -> Option<PathBuf> {
    let built = Path::new(env!("CARGO_BIN_EXE_recant")).ancestors().nth(2).expect("a directory of builds");
    let libraries = ["musl", "gnu"].map(|library| format!("{}-unknown-linux-{library}/release/recant", std::env::consts::ARCH));
    let found = libraries.into_iter().map(|name| built.join(name)).find(|path| path.exists());
    if found.is_none() {
        println!("skipped: recant put on another machine: there is no static build (make static)");
    }
    found
}

struct Near {
    world: World,
    net: Net,
    binary: PathBuf,
}

/// A file system of the test's own over the home of a machine, as long as this lives.
struct Mounted(PathBuf);

impl Mounted {
    fn over(host: &Host, options: &str) -> Option<Self> {
        if !common::is_root(&format!("a home that is mounted {options}")) {
            return None;
        }
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("mode=755,{options}"), "tmpfs"]).arg(&host.home);
        assert!(mount.status().unwrap().success(), "{mount:?}");
        Some(Self(host.home.clone()))
    }

    fn now(&self, options: &str) {
        let mut mount = Command::new("mount");
        mount.args(["-o", &format!("remount,{options}")]).arg(&self.0);
        assert!(mount.status().unwrap().success(), "{mount:?}");
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Lazily: a store's process may still be in it.
        let _gone = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn near() -> Option<Near> {
    let binary = static_build()?;
    let mut world = World::new();
    let net = Net::new(&mut world)?;
    Some(Near { world, net, binary })
}

impl Near {
    fn recant(&self, words: &str) -> Said {
        self.world.program(&self.binary, words.split_whitespace()).run()
    }
}

/// All below the directory of versions there.
fn placed(host: &Host) -> Vec<String> {
    let top = host.home.join(".local/lib/recant/bin");
    let below = |dir: &Path| -> Vec<PathBuf> {
        std::fs::read_dir(dir).map_or(vec![], |names| names.map(|name| name.unwrap().path()).collect())
    };
    let mut found = below(&top);
    found.extend(found.clone().iter().flat_map(|path| below(path)));
    let mut names: Vec<String> = found.iter().map(|path| path.strip_prefix(&top).unwrap().display().to_string()).collect();
    names.sort();
    names
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[test]
#[ignore = "long: needs the static build (make static)"]
fn where_recant_is_missing_this_very_binary_is_put_and_older_ones_go() {
    let Some(near) = near() else { return };
    let host = near.net.bare("web1");
    host.write(".local/lib/recant/bin/0.0.9/recant", "old");
    let id = near.recant("-H web1 session new").ok();
    assert_eq!(id.stderr(), "");
    assert_eq!(placed(&host), [VERSION.to_owned(), format!("{VERSION}/recant")]);
    assert!(std::fs::read(host.recant()).unwrap() == std::fs::read(&near.binary).unwrap());
    let meta = host.recant().metadata().unwrap();
    assert_eq!(meta.permissions().mode() & 0o777, 0o755);
    assert_eq!(host.recant().parent().unwrap().metadata().unwrap().permissions().mode() & 0o077, 0);
    near.recant("-H web1 list").ok();
    assert_eq!(host.recant().metadata().unwrap().ino(), meta.ino(), "it was put there twice");
}

#[test]
#[ignore = "long: needs the static build (make static)"]
fn one_of_another_protocol_is_replaced_and_an_old_one_in_path_is_not_used() {
    let Some(near) = near() else { return };
    let host = near.net.bare("web1");
    let fake = |place: &str, script: &str| {
        host.write(place, format!("#!/bin/sh\n{script}\n"));
        std::fs::set_permissions(host.home.join(place), PermissionsExt::from_mode(0o755)).unwrap();
    };
    // One that does not know the verb, as clap says it.
    fake("bin/recant", "echo \"error: unrecognized subcommand '$1'\" >&2; exit 2");
    host.write(".noise", "PATH=$HOME/bin:$PATH");
    let said = near.recant("-H web1 session new").ok();
    assert_eq!(said.stderr(), "");
    assert!(host.recant().exists());
    // In the place, with another protocol.
    std::fs::remove_file(host.recant()).unwrap();
    fake(&format!(".local/lib/recant/bin/{VERSION}/recant"), "echo recant-far 0 0.1.0; cat > /dev/null");
    let said = near.recant("-H web1 list --json").ok();
    assert_eq!(said.json()["sessions"].as_array().unwrap().len(), 1);
    // An empty file, as a power cut may leave one.
    std::fs::write(host.recant(), "").unwrap();
    near.recant("-H web1 list").ok();
    // One in PATH of this protocol will do.
    std::fs::remove_dir_all(host.home.join(".local")).unwrap();
    std::fs::copy(&near.binary, host.home.join("bin/recant")).unwrap();
    near.recant("-H web1 list").ok();
    assert_eq!(placed(&host), [""; 0]);
}

#[test]
#[ignore = "long: needs the static build (make static)"]
fn what_cannot_be_put_there_is_said_with_what_would_do_it() {
    let Some(near) = near() else { return };
    let host = near.net.bare("web1");
    let refused = |words: &str, why: &str, remedy: &str| {
        let said = near.recant(words);
        assert_eq!(said.status, 1, "{words}: {said}");
        let text = said.stderr().replace('\n', " ");
        assert!(text.contains(why) && text.contains(remedy) && text.contains("nothing was changed"), "{words}: {said}");
        assert!(!text.contains("cat: "), "noise of the shell there: {words}: {said}");
        assert_eq!(placed(&host), [""; 0], "{why}");
    };
    refused("-H web1 --no-install status", "no recant of protocol 3 is installed there", "--no-install");
    host.write("bin/uname", "#!/bin/sh\n[ \"$1\" = -s ] && echo Linux || echo sparc64\n");
    std::fs::set_permissions(host.home.join("bin/uname"), PermissionsExt::from_mode(0o755)).unwrap();
    host.write(".noise", "PATH=$HOME/bin:$PATH");
    refused("-H web1 status", "it runs Linux on sparc64", "scp recant web1:.local/lib/recant/bin");
    host.write(".noise", "sha256sum() { echo 00ff x; }; PATH=$HOME/tools:$PATH");
    host.write("tools/sha256sum", "#!/bin/sh\necho 00ff x\n");
    std::fs::set_permissions(host.home.join("tools/sha256sum"), PermissionsExt::from_mode(0o755)).unwrap();
    refused("-H web1 status", "the copy has another SHA-256", "try again");
    host.write(".noise", "ulimit -f 20");
    refused("-H web1 status", "cannot be written below ~/.local/lib/recant/bin", "make room");
    std::fs::remove_file(host.home.join(".noise")).unwrap();
    std::fs::remove_dir_all(host.home.join(".local")).unwrap();
    host.write(".local", "a file where a directory should be");
    refused("-H web1 status", "~/.local/lib/recant/bin cannot be made", "sudo install /tmp/recant /usr/local/bin/");
    host.write(".noise", "exit 1");
    refused("-H web1 status", "its login shell runs no commands", "-H USER@HOST");
    // A build that needs libraries.
    std::fs::remove_file(host.home.join(".noise")).unwrap();
    let said = near.world.recant("-H web1 status").with(1);
    assert!(said.stderr().contains("is not a static build") && said.stderr().contains("make static"), "{said}");
}

#[test]
#[ignore = "long: needs the static build (make static)"]
fn a_read_only_home_of_another_user_is_named() {
    let Some(near) = near() else { return };
    let Some(account) = ssh::ordinary() else { return };
    let host = near.net.bare_of("web1", &account);
    std::fs::set_permissions(&host.home, PermissionsExt::from_mode(0o555)).unwrap();
    let said = near.recant("-H web1 status").with(1);
    assert!(said.stderr().contains("~/.local/lib/recant/bin cannot be made or written to"), "{said}");
    std::fs::set_permissions(&host.home, PermissionsExt::from_mode(0o755)).unwrap();
    near.recant("-H web1 session new").ok();
    assert_eq!(host.store().metadata().unwrap().uid(), account.uid);
}

#[test]
#[ignore = "long: needs the static build (make static)"]
fn doctor_tells_of_both_sides() {
    let Some(near) = near() else { return };
    let _host = near.net.bare("web1");
    let said = near.recant("-H web1 doctor");
    let text = said.stdout();
    for part in ["here: recant ", ", static\n", "ssh: OpenSSH", "web1: answered in ", "\nas ", "\nrun             "] {
        assert!(text.contains(part), "{part}: {said}");
    }
    let said = near.recant("-H web1 doctor --json").json();
    assert_eq!((&said["host"], &said["near"]["static"]), (&"web1".into(), &true.into()), "{said}");
    assert!(said["far"]["run"]["works"].is_boolean(), "{said}");
    assert!(
        near.world
            .recant("-H web1 doctor")
            .stdout()
            .contains("not static, so it cannot be installed on other machines: make static")
    );
}

/// The commands that a refusal names, as a person would type them.
fn remedy(said: &Said) -> String {
    let text = said.stderr();
    let at = text.find("scp ").unwrap_or_else(|| panic!("no command: {said}"));
    text[at..].lines().next().unwrap().to_owned()
}

#[test]
#[ignore = "long: needs the static build (make static)"]
fn a_home_where_nothing_may_be_run_is_named_and_what_is_said_to_help_does() {
    let Some(near) = near() else { return };
    let host = near.net.bare("web1");
    let Some(home) = Mounted::over(&host, "noexec") else { return };
    let said = near.recant("-H web1 session new").with(1);
    assert!(
        said.stderr().contains("web1: recant cannot be installed there: it does not run below ~/.local/lib/recant/bin"),
        "{said}"
    );
    assert!(said.stderr().contains("mounted noexec") && said.stderr().contains("nothing was changed"), "{said}");
    assert_eq!(placed(&host), [""; 0]);
    let wanted = format!("scp {} web1:/tmp/recant && ssh web1 sudo install /tmp/recant /usr/local/bin/", near.binary.display());
    assert_eq!(remedy(&said), wanted);
    // Into PATH, as it says; this one is the machine's own.
    let bin = near.world.root().join("hosts/web1/bin");
    std::fs::create_dir(&bin).unwrap();
    std::fs::copy(&near.binary, bin.join("recant")).unwrap();
    host.write(".noise", format!("PATH={}:$PATH", bin.display()));
    let id = near.recant("-H web1 session new").ok().stdout().trim().to_owned();
    // One that was put there before it was mounted so is passed by.
    home.now("exec");
    host.write(&format!(".local/lib/recant/bin/{VERSION}/recant"), std::fs::read(&near.binary).unwrap());
    std::fs::set_permissions(host.recant(), PermissionsExt::from_mode(0o755)).unwrap();
    near.recant("-H web1 list").ok();
    home.now("noexec");
    assert!(near.recant("-H web1 list").ok().stdout().contains(&id[16..]));
}

#[test]
#[ignore = "long: needs the static build (make static)"]
fn a_home_that_is_mounted_read_only_is_named() {
    let Some(near) = near() else { return };
    let host = near.net.bare("web1");
    let Some(home) = Mounted::over(&host, "rw") else { return };
    home.now("ro");
    let said = near.recant("-H web1 status").with(1);
    assert!(said.stderr().contains("~/.local/lib/recant/bin cannot be made or written to"), "{said}");
    assert!(remedy(&said).ends_with("ssh web1 sudo install /tmp/recant /usr/local/bin/"), "{said}");
    home.now("rw");
    near.recant("-H web1 status").ok();
}

/// This side's buffers take all of it at once, and the line takes long: that is no silence.
#[test]
#[ignore = "long: needs the static build (make static)"]
fn a_slow_line_is_no_far_side_that_is_silent() {
    let Some(near) = near() else { return };
    let Some(net) = near.net.apart() else { return };
    let settings = |timeout: &str| {
        near.world.config(&format!("[remote]\nssh = 'ssh -F {}'\ntimeout = '{timeout}'\n", net.settings().display()));
    };
    settings("3s");
    let host = net.bare("web1");
    let length = std::fs::metadata(&near.binary).unwrap().len();
    // About nine seconds.
    if !host.slow(&format!("{}bit", length * 8 / 9)) {
        return;
    }
    let start = Instant::now();
    near.world.program(&near.binary, ["-H", "web1", "session", "new"]).run().ok();
    assert!(start.elapsed() > Duration::from_secs(6), "the line was not slow: {:?}", start.elapsed());
    assert!(std::fs::read(host.recant()).unwrap() == std::fs::read(&near.binary).unwrap());
    assert_eq!(placed(&host), [VERSION.to_owned(), format!("{VERSION}/recant")]);
    // One that goes away meanwhile is.
    std::fs::remove_dir_all(host.home.join(".local")).unwrap();
    let mut call = near.world.program(&near.binary, ["-H", "web1", "list"]).command();
    let child = call.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let bin = host.home.join(".local/lib/recant/bin");
    common::until("the copy has begun", || std::fs::read_dir(&bin).is_ok_and(|names| names.count() > 0));
    host.plug(false);
    let start = Instant::now();
    let ended = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{text}");
    assert!(text.contains("web1: no answer for 3 s"), "{text}");
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    assert!(!host.recant().exists());
}

/// A machine that a script stands for: it is given this binary, and what becomes of that is the script's.
struct StandIn {
    world: World,
    binary: PathBuf,
}

/// In the place of the far side's text: says what it is asked for, and then again and again that it is there.
const ONLY_THERE: &str =
    "echo recant-install $(uname -s) $(uname -m); while echo recant-there; do echo recant-has 5; sleep 0.1; done";
/// The far side's text, which gets the beginning of the copy, and nothing more as long as the test goes on.
const STALLS: &str = "{ head -c 1000003; while [ -d $ROOT ]; do sleep 0.1; done; } | sh -c \"$text\"";
/// The same, which gets all of it by and by.
const SLOW: &str = "{ for n in 1 2 3 4 5 6 7 8 9 10 11 12; do head -c 600000; sleep 0.5; done; cat; } | sh -c \"$text\"";

impl StandIn {
    fn new(takes: &str, timeout: &str) -> Option<Self> {
        let binary = static_build()?;
        let world = World::new();
        let (script, root) = (world.root().join("an-ssh"), world.root().display());
        let text = format!(
            "#!/bin/sh\nfor text; do :; done\nROOT={root}; export HOME=$ROOT/far\nmkdir -p $HOME\n\
             case $text in *recant-install*) ;; *) PATH=/usr/bin:/bin exec sh -c \"$text\";; esac\n{takes}\n"
        );
        std::fs::write(&script, text).unwrap();
        std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
        world.config(&format!("[remote]\nssh = '{}'\ntimeout = '{timeout}'\n", script.display()));
        Some(Self { world, binary })
    }

    fn begin(&self) -> Child {
        let mut call = self.world.program(&self.binary, ["-H", "web1", "session", "new"]).command();
        call.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Its end, where it comes by itself.
    fn end(&self, mut child: Child, what: &str) -> Output {
        let end = Instant::now() + Duration::from_secs(30);
        while child.try_wait().unwrap().is_none() {
            if Instant::now() > end {
                child.kill().unwrap();
                panic!("it goes on for ever: {what}");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        child.wait_with_output().unwrap()
    }

    fn bin(&self) -> PathBuf {
        self.world.root().join("far/.local/lib/recant/bin")
    }

    /// The directory of the copy, which has the number of its shell, once there is some of it.
    fn copy(&self) -> (PathBuf, i32) {
        let found = || {
            let mut names = std::fs::read_dir(self.bin()).ok()?.map(|name| name.unwrap().path());
            names.find(|path| path.join("recant").metadata().is_ok_and(|meta| meta.len() > 0))
        };
        common::until("the copy has begun", || found().is_some());
        let path = found().unwrap();
        let shell = path.to_string_lossy().rsplit_once(".new-").unwrap().1.parse().unwrap();
        (path, shell)
    }
}

#[test]
#[ignore = "long: needs the static build (make static)"]
fn a_signal_while_it_is_put_there_gives_it_up() {
    use rustix::process::{Pid, Signal, kill_process};
    let held = format!("{ONLY_THERE} & touch $ROOT/begun; trap \"\" TERM INT; cat > /dev/null; wait");
    for (takes, signal) in [(STALLS, Signal::TERM), (&held, Signal::INT)] {
        let Some(far) = StandIn::new(takes, "0s") else { return };
        let child = far.begin();
        if takes == STALLS {
            far.copy();
        } else {
            common::until("it is under way", || far.world.root().join("begun").exists());
        }
        kill_process(Pid::from_child(&child), signal).unwrap();
        let ended = far.end(child, takes);
        let text = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(128 + signal.as_raw()), "{takes}: {text}");
        assert!(text.contains("web1: ended by a signal before the far side had answered"), "{takes}: {text}");
    }
}

#[test]
#[ignore = "long: needs the static build (make static)"]
fn a_far_side_that_is_there_and_takes_nothing_more_is_given_up() {
    for takes in [ONLY_THERE, STALLS] {
        let Some(far) = StandIn::new(takes, "3s") else { return };
        let ended = far.end(far.begin(), takes);
        let text = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{takes}: {text}");
        assert!(text.contains("it answers, but the copy has not advanced for 3 s"), "{takes}: {text}");
        assert!(text.contains("nothing was changed") && text.contains("remote.timeout"), "{takes}: {text}");
    }
    // However long it takes: what counts is that it comes further.
    let Some(far) = StandIn::new(SLOW, "3s") else { return };
    let start = Instant::now();
    let ended = far.end(far.begin(), SLOW);
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    assert!(start.elapsed() > Duration::from_secs(6), "it was not slow: {:?}", start.elapsed());
    assert!(std::fs::read(far.bin().join(VERSION).join("recant")).unwrap() == std::fs::read(&far.binary).unwrap());
}

#[test]
#[ignore = "long: needs the static build (make static)"]
fn what_tells_of_a_copy_ends_with_its_shell_and_keeps_it_from_being_taken_for_left() {
    let Some(far) = StandIn::new(STALLS, "4s") else { return };
    let child = far.begin();
    let (copy, shell) = far.copy();
    // As old as what another call removes.
    let long_ago = SystemTime::now() - Duration::from_secs(2 * 3600);
    std::fs::File::open(&copy).unwrap().set_modified(long_ago).unwrap();
    let is_young = || copy.metadata().is_ok_and(|meta| meta.modified().unwrap() > long_ago + Duration::from_secs(3600));
    common::until("it is looked after", is_young);
    ssh::kill(shell);
    common::until("what it leaves is taken away", || !copy.exists());
    let ended = far.end(child, "its shell is gone");
    let text = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{text}");
    assert!(!far.bin().join(VERSION).exists());
}
