//! What an ordinary user's run holds: his project's surroundings, and what is his in PATH.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::common::{Said, manifest};
use crate::desk::{Desk, USER, Who, is_root};
use crate::mounts::own_mounts;

fn sh(script: &str) {
    assert!(std::process::Command::new("sh").args(["-ec", script]).status().unwrap().success(), "{script}");
}

/// A directory of root's, below it what a user has outside of his home.
fn surroundings() -> Option<(Desk, tempfile::TempDir)> {
    if !is_root() {
        println!("skipped: a directory outside of the user's places is made by root");
        return None;
    }
    own_mounts();
    let top = tempfile::Builder::new().prefix("recant-own-").tempdir_in("/srv").unwrap();
    std::fs::set_permissions(top.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let made = format!(
        "cd {}; mkdir -p work/app/.git work/app/src work/lib tool/bin tool/lib lone/bin his/bin plain/tools; echo l > work/lib/l; \
         echo s > work/app/src/s; chown -R {USER}:{USER} work tool lone/bin plain",
        top.path().display()
    );
    sh(&made);
    Some((Desk::on(Who::User, Path::new("/var/tmp")), top))
}

/// A script that is run held in the project, with directories of `top` in PATH.
fn run(desk: &Desk, top: &Path, search: &[&str], script: &str) -> Said {
    let search = search.iter().map(|name| format!("{}:", top.join(name).display())).collect::<String>();
    let path = search + &std::env::var("PATH").unwrap();
    let call = desk.call(["run", "--session", "s", "--", "sh", "-ec", script]).cwd(top.join("work/app"));
    call.env("PATH", path).env("TOP", top).run()
}

#[test]
fn what_is_the_users_beside_the_project_and_in_path_is_held() {
    let Some((desk, own)) = surroundings() else { return };
    let top = own.path();
    let before = manifest(top);
    let search = ["tool/bin", "lone/bin", "his/bin", "plain/tools"];
    let script = "mkdir ../tree; echo t > ../tree/t; mv ../lib ../older; mv src ../src; \
                  echo b > $TOP/tool/bin/b; echo p > $TOP/tool/lib/p; echo b > $TOP/lone/bin/b; echo t > $TOP/plain/tools/t; \
                  for closed in plain his lone; do if touch $TOP/$closed/x; then exit 9; fi; done";
    run(&desk, top, &search, script).ok();
    manifest(top).assert_same(&before, "held");
    // What a further command holds does not depend on its PATH.
    let said = run(&desk, top, &[], "cat $TOP/tool/bin/b $TOP/lone/bin/b ../older/l ../src/s; echo more >> $TOP/tool/lib/p").ok();
    assert_eq!(said.stdout(), "b\nb\nl\ns\n", "{said}");
    desk.call(["commit", "s"]).cwd(top.join("work/app")).run().ok();
    let read = |name: &str| std::fs::read_to_string(top.join(name)).unwrap();
    assert_eq!(["work/tree/t", "work/src/s", "work/older/l", "tool/lib/p"].map(read), ["t\n", "s\n", "l\n", "p\nmore\n"]);
    desk.call(["rollback", "s"]).cwd(top.join("work/app")).run().ok();
    manifest(top).assert_same(&before, "rolled back");
}

#[test]
fn a_mount_beside_the_project_takes_nothing_from_it() {
    let Some((desk, own)) = surroundings() else { return };
    let top = own.path();
    sh(&format!("mkdir {0}/work/disk; mount -t tmpfs none {0}/work/disk", top.display()));
    run(&desk, top, &[], "mv src source; mkdir new; echo n > new/n; echo more >> ../lib/l; if touch ../disk/x; then exit 9; fi")
        .ok();
    desk.call(["commit", "s"]).cwd(top.join("work/app")).run().ok();
    assert_eq!(std::fs::read_to_string(top.join("work/app/source/s")).unwrap(), "s\n");
    assert_eq!(std::fs::read_to_string(top.join("work/lib/l")).unwrap(), "l\nmore\n");
}
