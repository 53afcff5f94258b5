//! `-H` on a machine without recant: this very binary is put there, or it is said what would do it. Needs the static build of
//! `make static`.
#![allow(clippy::print_stdout, reason = "what is skipped is said")]
#![expect(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests set up real files")]

mod common;
#[path = "common/ssh.rs"]
mod ssh;

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

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
