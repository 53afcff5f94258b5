//! `-H` on a machine without recant: this very binary is put there, or it is said what would do it. Needs the static build of
//! `make static`.
#![allow(clippy::print_stdout, reason = "what is skipped is said")]
#![expect(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests set up real files")]

mod common;
#[path = "common/ssh.rs"]
mod ssh;

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use common::{Said, World};
use ssh::{Host, Net};

/// The release build, where there is one.
fn static_build() -> Option<PathBuf> {
    let built = Path::new(env!("CARGO_BIN_EXE_recant")).ancestors().nth(2).expect("a folder of builds");
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

/// All below the folder of versions there.
fn placed(host: &Host) -> Vec<String> {
    let top = host.home.join(".cache/recant/bin");
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
fn where_recant_is_missing_this_very_binary_is_put_and_older_ones_go() {
    let Some(near) = near() else { return };
    let host = near.net.bare("web1");
    host.write(".cache/recant/bin/0.0.9/recant", "old");
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
    fake(&format!(".cache/recant/bin/{VERSION}/recant"), "echo recant-far 0 0.1.0; cat > /dev/null");
    let said = near.recant("-H web1 list --json").ok();
    assert_eq!(said.json()["sessions"].as_array().unwrap().len(), 1);
    // An empty file, as a power cut may leave one.
    std::fs::write(host.recant(), "").unwrap();
    near.recant("-H web1 list").ok();
    // One in PATH of this protocol will do.
    std::fs::remove_dir_all(host.home.join(".cache")).unwrap();
    std::fs::copy(&near.binary, host.home.join("bin/recant")).unwrap();
    near.recant("-H web1 list").ok();
    assert_eq!(placed(&host), [""; 0]);
}

#[test]
fn what_cannot_be_put_there_is_said_with_what_would_do_it() {
    let Some(near) = near() else { return };
    let host = near.net.bare("web1");
    let refused = |words: &str, why: &str, remedy: &str| {
        let said = near.recant(words);
        assert_eq!(said.status, 1, "{words}: {said}");
        let text = said.stderr().replace('\n', " ");
        assert!(text.contains(why) && text.contains(remedy) && text.contains("nothing was changed"), "{words}: {said}");
        assert_eq!(placed(&host), [""; 0], "{why}");
    };
    refused("-H web1 --no-install status", "there is no recant of protocol 1 there", "--no-install");
    host.write("bin/uname", "#!/bin/sh\n[ \"$1\" = -s ] && echo Linux || echo sparc64\n");
    std::fs::set_permissions(host.home.join("bin/uname"), PermissionsExt::from_mode(0o755)).unwrap();
    host.write(".noise", "PATH=$HOME/bin:$PATH");
    refused("-H web1 status", "it runs Linux on sparc64", "scp recant web1:.cache/recant/bin");
    host.write(".noise", "sha256sum() { echo 00ff x; }; PATH=$HOME/tools:$PATH");
    host.write("tools/sha256sum", "#!/bin/sh\necho 00ff x\n");
    std::fs::set_permissions(host.home.join("tools/sha256sum"), PermissionsExt::from_mode(0o755)).unwrap();
    refused("-H web1 status", "the copy has another SHA-256", "try again");
    host.write(".noise", "ulimit -f 20");
    refused("-H web1 status", "cannot be written below ~/.cache/recant/bin", "make room");
    std::fs::remove_file(host.home.join(".noise")).unwrap();
    std::fs::remove_dir_all(host.home.join(".cache")).unwrap();
    host.write(".cache", "a file where a folder should be");
    refused("-H web1 status", "~/.cache/recant/bin cannot be made", "sudo install /tmp/recant /usr/local/bin/");
    host.write(".noise", "exit 1");
    refused("-H web1 status", "its login shell carries out no commands", "-H USER@HOST");
    // A build that needs libraries.
    std::fs::remove_file(host.home.join(".noise")).unwrap();
    let said = near.world.recant("-H web1 status");
    assert_eq!(said.status, 1, "{said}");
    assert!(said.stderr().contains("is no static build") && said.stderr().contains("make static"), "{said}");
}

#[test]
fn a_read_only_home_of_another_user_is_named() {
    let Some(near) = near() else { return };
    let Some(account) = ssh::ordinary() else { return };
    let host = near.net.bare_of("web1", &account);
    std::fs::set_permissions(&host.home, PermissionsExt::from_mode(0o555)).unwrap();
    let said = near.recant("-H web1 status");
    assert_eq!(said.status, 1, "{said}");
    assert!(said.stderr().contains("~/.cache/recant/bin cannot be made or written to"), "{said}");
    std::fs::set_permissions(&host.home, PermissionsExt::from_mode(0o755)).unwrap();
    near.recant("-H web1 session new").ok();
    assert_eq!(host.store().metadata().unwrap().uid(), account.uid);
}

#[test]
fn doctor_tells_of_both_sides() {
    let Some(near) = near() else { return };
    let _host = near.net.bare("web1");
    let said = near.recant("-H web1 doctor");
    let text = said.stdout();
    for part in ["here: recant ", ", static\n", "ssh: OpenSSH", "web1: answered in ", "recant run "] {
        assert!(text.contains(part), "{part}: {said}");
    }
    let said = near.recant("-H web1 doctor --json").json();
    assert_eq!((&said["host"], &said["near"]["static"]), (&"web1".into(), &true.into()), "{said}");
    assert!(said["far"]["run"]["works"].is_boolean(), "{said}");
    assert!(
        near.world
            .recant("-H web1 doctor")
            .stdout()
            .contains("not static, so that it cannot be put on other machines: make static")
    );
}

/// The commands that a refusal names, as a person would type them.
fn remedy(said: &Said) -> String {
    let text = said.stderr();
    let at = text.find("scp ").unwrap_or_else(|| panic!("no command: {said}"));
    text[at..].lines().next().unwrap().to_owned()
}

#[test]
fn a_home_where_nothing_may_be_run_is_named_and_what_is_said_to_help_does() {
    let Some(near) = near() else { return };
    let host = near.net.bare("web1");
    let Some(home) = Mounted::over(&host, "noexec") else { return };
    let said = near.recant("-H web1 session new").with(1);
    assert!(said.stderr().contains("web1: recant cannot be put there: it does not run below ~/.cache/recant/bin"), "{said}");
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
    host.write(&format!(".cache/recant/bin/{VERSION}/recant"), std::fs::read(&near.binary).unwrap());
    std::fs::set_permissions(host.recant(), PermissionsExt::from_mode(0o755)).unwrap();
    near.recant("-H web1 list").ok();
    home.now("noexec");
    assert!(near.recant("-H web1 list").ok().stdout().contains(&id));
}

#[test]
fn a_home_that_is_mounted_read_only_is_named() {
    let Some(near) = near() else { return };
    let host = near.net.bare("web1");
    let Some(home) = Mounted::over(&host, "rw") else { return };
    home.now("ro");
    let said = near.recant("-H web1 status").with(1);
    assert!(said.stderr().contains("~/.cache/recant/bin cannot be made or written to"), "{said}");
    assert!(remedy(&said).ends_with("ssh web1 sudo install /tmp/recant /usr/local/bin/"), "{said}");
    home.now("rw");
    near.recant("-H web1 status").ok();
}

/// This side's buffers take all of it at once, and the line takes long: that is no silence.
#[test]
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
    std::fs::remove_dir_all(host.home.join(".cache")).unwrap();
    let mut call = near.world.program(&near.binary, ["-H", "web1", "list"]).command();
    let child = call.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let bin = host.home.join(".cache/recant/bin");
    ssh::until("the copy has begun", || std::fs::read_dir(&bin).is_ok_and(|names| names.count() > 0));
    host.plug(false);
    let start = Instant::now();
    let ended = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{text}");
    assert!(text.contains("web1: no answer for 3 s"), "{text}");
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    assert!(!host.recant().exists());
}
