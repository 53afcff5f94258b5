//! `recant doctor`: on machines that have all that a run needs, and on those that have not. Each state is really made.

use std::os::unix::fs::PermissionsExt;

use crate::common::Said;
use crate::desk::{self, Desk, Who, each, has, is_root};
use serde_json::Value;

/// Both users, where these programs are here.
fn each_with(programs: &[&str], test: impl Fn(&Desk)) {
    if programs.iter().all(|program| has(program)) {
        each(test);
    }
}

/// A cell of the table: a way, the result, and parts of the reason and of the remedy.
type Cell = (&'static str, Value, &'static str, &'static str);

/// The ways of a report in JSON are as told; a part that is empty stands for a missing one.
#[track_caller]
fn assert_ways(said: &Said, cells: &[Cell]) {
    let json = said.json();
    for (way, works, why, remedy) in cells {
        let row = json["ways"].as_array().unwrap().iter().find(|row| row["way"] == *way);
        let row = row.unwrap_or_else(|| panic!("no {way}: {said}"));
        let has = |key: &str, part: &str| match row[key].as_str() {
            None => part.is_empty(),
            Some(text) => !part.is_empty() && text.contains(part),
        };
        assert!(row["works"] == *works && has("why", why) && has("remedy", remedy), "{way}: {row}");
    }
}

/// The table fits a terminal of 80 columns and 24 lines.
#[track_caller]
fn assert_fits(said: &Said) {
    let out = said.stdout();
    let long: Vec<_> = out.lines().filter(|line| line.chars().count() > 80 && line.trim().contains(' ')).collect();
    assert!(long.is_empty() && out.lines().count() <= 24, "{long:?}: {said}");
}

/// A run that holds changes does not work, and nothing else.
#[track_caller]
fn assert_run_alone_fails(said: &Said, why: &'static str, remedy: &'static str) {
    assert_ways(said, &[("run", NO, why, remedy), ("run --in", YES, IN_PLACE, ""), ("snapshot", YES, "", "")]);
}

#[track_caller]
fn assert_all_work(said: &Said) {
    assert_ways(said, &[("run", YES, "", ""), ("run --in", YES, IN_PLACE, ""), ("snapshot", YES, "", "")]);
}

const YES: Value = Value::Bool(true);
const NO: Value = Value::Bool(false);
const IN_PLACE: &str = "on the real files, between two snapshots";

/// Runs doctor at the end of a script in namespaces of its own, in which the user is root.
fn within(desk: &Desk, options: &str, script: &str, words: &[&str]) -> Said {
    let script = format!("set -e; {script}\nexec \"$@\"");
    let start: Vec<&str> = options.split_whitespace().chain(["sh", "-c", &script, "sh"]).collect();
    let binary = desk.binary.to_str().unwrap();
    desk.give(desk.world.program("unshare", [&start[..], &[binary, "doctor"], words].concat())).run()
}

/// The end of a script: the calls that are refused to what is run next.
fn refusing(desk: &Desk, rules: &[(i64, i32, i32)]) -> String {
    let script = desk.world.root().join("refuse.pl");
    desk.world.write(&script, include_str!("../fixtures/refuse.pl"));
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o644)).unwrap();
    let rules: Vec<_> = rules.iter().map(|(number, errno, bits)| format!("{number}:{errno}:{bits}")).collect();
    format!("set -- perl {} {} {} \"$@\"", script.display(), libc::SYS_prctl, rules.join(","))
}

/// A /proc/sys/kernel with one switch.
fn switch(name: &str, value: u32) -> String {
    format!("mount -t tmpfs none /proc/sys/kernel; echo {value} > /proc/sys/kernel/{name};")
}

const NO_USER_NAMESPACES: (i64, i32, i32) = (libc::SYS_clone, libc::EPERM, libc::CLONE_NEWUSER);

#[test]
fn where_all_works_the_table_says_so_and_what_would_be_held() {
    each(|desk| {
        let said = desk.recant("doctor").ok();
        let out = said.stdout();
        let who = if desk.who == Who::Root { "root" } else { "user" };
        assert!(out.starts_with(&format!("as {who}")) && out.contains(", on Linux "), "{said}");
        // Columns are parted by spaces of any number.
        let plain = |out: &str| -> Vec<String> {
            out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
        };
        let rows = plain(&out);
        let row = |start: &str| rows.iter().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{start}: {said}"));
        assert_eq!((&**row("run works"), &**row("snapshot")), ("run works", "snapshot works"));
        assert!(row("run --in").contains(IN_PLACE), "{said}");
        // Mounts of others stand beside it.
        let top = if desk.who == Who::Root { row("held /") } else { row("read-only") };
        assert!(desk.who == Who::Root || top.ends_with("everything else"), "{said}");
        assert!(row("hidden").contains("store"), "{said}");
        assert!(!out.contains("the whole tree") && !out.contains("overlayfs"), "{said}");
        assert_fits(&said);
        assert!(desk.ids().is_empty(), "its sessions go again");
        let said = desk.recant("doctor -v").ok();
        let rows = plain(&said.stdout());
        let has = |start: &str| rows.iter().any(|line| line.starts_with(start));
        let top = if desk.who == Who::Root { "held /: the whole tree" } else { "read-only /: everything else" };
        let tree = format!("held {}", desk.world.tree().display());
        assert!(has(top) && (desk.who == Who::Root || has(&tree) || has("held /tmp")), "{said}");
        assert!(has(&format!("hidden {}", desk.world.store().display())), "{said}");
        assert!(has("Linux ") && has("overlayfs "), "{said}");
        let said = desk.recant("doctor --json").ok();
        let json = said.json();
        assert_eq!((&json["run"]["works"], &json["run"]["as"]), (&YES, &who.into()), "{json}");
        assert_eq!((&json["here"]["user_namespace"], &json["here"]["container"]), (&NO, &Value::Null), "{json}");
        assert_all_work(&said);
        desk.world.assert_tidy("doctor");
        let left: Vec<_> = std::fs::read_dir(desk.world.store().join("sessions")).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    });
}

#[test]
fn where_a_run_does_not_work_doctor_and_run_name_the_switch_to_set() {
    each_with(&["unshare", "setpriv"], |desk| {
        // A user namespace has a limit of its own. Without CAP_SYS_ADMIN its root is treated as an ordinary user.
        let none =
            "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --inh-caps=-sys_admin --bounding-set=-sys_admin \"$@\"";
        let without = |words: &[&str]| {
            let binary = desk.binary.to_str().unwrap();
            let words = [&["-Ur", "sh", "-c", none, "sh", binary][..], words].concat();
            desk.give(desk.world.program("unshare", words)).run()
        };
        let said = without(&["doctor"]).with(125);
        let out = said.stdout();
        assert!(out.contains("run             does not work: user.max_user_namespaces is 0\n"), "{said}");
        assert!(out.contains("\n                sysctl user.max_user_namespaces=10000\n"), "{said}");
        assert!(!out.contains("user namespaces  "), "it is told once: {said}");
        assert_fits(&said);
        let said = without(&["doctor", "-v"]).with(125);
        let out = said.stdout();
        assert!(out.lines().any(|line| line.starts_with("user namespaces  ") && line.contains("0: sysctl")), "{said}");
        let said = without(&["doctor", "--json"]).with(125);
        let json = said.json();
        // What is left was tried.
        assert_eq!((&json["run"]["works"], &json["run_in"]["works"]), (&NO, &YES), "{json}");
        assert!(json["run"]["remedy"].as_str().unwrap().contains("max_user_namespaces"), "{json}");
        assert_ways(&said, &[("run --in", YES, IN_PLACE, ""), ("snapshot", YES, "", "")]);
        let said = without(&["run", "--", "touch", "made"]).with(125);
        assert!(said.stderr().contains("max_user_namespaces") && said.stderr().contains("not started"), "{said}");
        assert!(!desk.world.exists("made"));
    });
}

#[test]
fn in_a_container_without_rights_doctor_says_as_whom_and_all_is_tried() {
    each_with(&["unshare", "setpriv"], |desk| {
        let outside = if desk.other() { desk::USER } else { rustix::process::geteuid().as_raw() };
        let said = within(desk, "-Ur", "", &["--json"]).ok();
        let json = said.json();
        assert_eq!((&json["here"]["uid"], &json["here"]["outside"]), (&0.into(), &outside.into()), "{json}");
        let words = json["here"]["words"].as_str().unwrap();
        assert!(words.starts_with(&format!("root of a user namespace (user {outside} outside), on Linux ")), "{json}");
        assert_all_work(&said);
        // With process ids of its own it is a container, by the mark of the engine.
        let podman = "mount -t tmpfs none /run; touch /run/.containerenv;";
        let said = within(desk, "-Urmpf", podman, &["--json"]).ok();
        assert_eq!(said.json()["here"]["container"], "podman", "{said}");
        let refused = format!("{podman} {}", refusing(desk, &[NO_USER_NAMESPACES]));
        if !has("perl") {
            return;
        }
        let said = within(desk, "-Urmpf", &refused, &["--json"]).with(125);
        let why = "a seccomp filter refuses user namespaces";
        assert_run_alone_fails(&said, why, "podman run --security-opt seccomp=unconfined …");
        // Confined otherwise, no engine has an option for it.
        let said = within(desk, "-Ur", &refusing(desk, &[NO_USER_NAMESPACES]), &["--json"]).with(125);
        assert_ways(&said, &[("run", NO, why, "a systemd service: RestrictNamespaces=no")]);
        assert_fits(&within(desk, "-Ur", &refusing(desk, &[NO_USER_NAMESPACES]), &[]).with(125));
        // Root as Docker has it: of the machine's user namespace, and not whole.
        if desk.who == Who::Root {
            let docker = "mount -t tmpfs none /run; set -- setpriv --inh-caps=-sys_admin --bounding-set=-sys_admin \"$@\";";
            let said = within(desk, "-mpf", docker, &["--json"]).ok();
            let words = said.json()["here"]["words"].as_str().unwrap().to_owned();
            assert!(words.starts_with("root without CAP_SYS_ADMIN in a container"), "{said}");
            assert_all_work(&said);
            let said =
                within(desk, "-mpf", &format!("{docker} {}", refusing(desk, &[NO_USER_NAMESPACES])), &["--json"]).with(125);
            assert_run_alone_fails(&said, why, "--security-opt seccomp=unconfined …");
        }
        // Nobody in its user namespace.
        if desk.who == Who::User {
            let said = within(desk, "-U", "", &["--json"]).with(125);
            assert_ways(&said, &[("run", NO, "no id in its user namespace", "unshare --map-current-user")]);
        }
    });
}

#[test]
fn where_a_switch_of_the_kernel_keeps_user_namespaces_from_users_it_is_named() {
    each_with(&["unshare", "perl"], |desk| {
        // As Debian's kernels refuse them.
        let debian = switch("unprivileged_userns_clone", 0) + &refusing(desk, &[NO_USER_NAMESPACES]);
        let said = within(desk, "-Urm", &debian, &["--json"]).with(125);
        assert_run_alone_fails(&said, "kernel.unprivileged_userns_clone is 0", "sysctl kernel.unprivileged_userns_clone=1");
        // As Ubuntu's restriction: the namespace is made, and in it the mounts are refused.
        let mounts = [(libc::SYS_mount, libc::EACCES, 0)];
        let ubuntu = switch("apparmor_restrict_unprivileged_userns", 1) + &refusing(desk, &mounts);
        let said = within(desk, "-Urm", &ubuntu, &["--json"]).with(125);
        let profile = "recant doctor --apparmor | sudo tee /etc/apparmor.d/recant && sudo apparmor_parser -r";
        assert_run_alone_fails(&said, "AppArmor restricts user namespaces", profile);
        let said = within(desk, "-Urm", &ubuntu, &[]).with(125);
        let lines = "recant doctor --apparmor | sudo tee /etc/apparmor.d/recant &&\n                sudo apparmor_parser -r /etc/apparmor.d/recant\n";
        assert!(said.stdout().contains(lines), "{said}");
        assert_fits(&said);
        // With the switch set and a run that works, a profile lets recant pass: nothing is to be done.
        let said = within(desk, "-Urm", &switch("apparmor_restrict_unprivileged_userns", 1), &[]).ok();
        assert!(!said.stdout().contains("AppArmor"), "{said}");
        // Refused by something that has no switch.
        let said = within(desk, "-Ur", &refusing(desk, &mounts), &["--json"]).with(125);
        assert_ways(&said, &[("run", NO, "a seccomp filter refuses mounts", "RestrictNamespaces=no")]);
    });
}

#[test]
fn of_an_old_kernel_doctor_says_what_still_works() {
    each_with(&["perl", "setarch"], |desk| {
        let refused = |start: &[&str], rules: &[(i64, i32, i32)], words: &[&str]| {
            let script = format!("{}\nexec {} \"$@\"", refusing(desk, rules), start.join(" "));
            let binary = desk.binary.to_str().unwrap();
            let start = ["-c", &script, "sh", binary, "doctor"];
            desk.give(desk.world.program("sh", [&start[..], words].concat())).run()
        };
        let old = ["setarch", "--uname-2.6"];
        let mounts = (libc::SYS_mount_setattr, libc::ENOSYS, 0);
        let landlock = (libc::SYS_landlock_create_ruleset, libc::ENOSYS, 0);
        let said = refused(&old, &[mounts, landlock], &["--json"]).with(125);
        assert!(said.json()["here"]["words"].as_str().unwrap().ends_with(": older than 5.15"), "{said}");
        assert_ways(
            &said,
            &[
                ("run", NO, " is older than 5.15", "boot Linux 5.15 or newer"),
                ("run --in", NO, "this kernel has no Landlock", "boot Linux 5.13 or newer"),
                ("snapshot", YES, "", ""),
            ],
        );
        assert_fits(&refused(&old, &[mounts, landlock], &[]).with(125));
        // Old by its name alone: what was tried has the last word.
        let said = refused(&old, &[(-1, 1, 0)], &["--json"]).ok();
        assert_ways(&said, &[("run", YES, "", ""), ("run --in", YES, IN_PLACE, "")]);
        // A newer one that was built without Landlock, or started without it.
        let built = "boot a kernel built with CONFIG_SECURITY_LANDLOCK";
        for (errno, why, remedy) in [
            (libc::ENOSYS, "this kernel has no Landlock", built),
            (libc::EOPNOTSUPP, "not among the security modules", "boot the kernel with lsm=landlock,"),
        ] {
            let said = refused(&[], &[(libc::SYS_landlock_create_ruleset, errno, 0)], &["--json"]).ok();
            assert_ways(&said, &[("run", YES, "abstract sockets stay open", ""), ("run --in", NO, why, remedy)]);
        }
    });
}

/// A script that lays an overlay over the directories for temporary files, on each of which no upper can lie then. What a test needs lies
/// below, copied: of a directory that others have mounted something below there can be no overlay in a user namespace.
fn overlaid(desk: &Desk) -> String {
    let mut script = "mount -t tmpfs none /mnt; mkdir /mnt/lower;".to_owned();
    for path in [desk.world.root(), &desk.binary] {
        script += &format!("cp -R --parents {} /mnt/lower;", path.display());
    }
    for directory in ["/var/tmp", "/tmp"] {
        let name = directory.replace('/', "-");
        script += &format!(
            "mkdir -p /mnt/lower{directory} /mnt/upper{name} /mnt/work{name};
             mount -t overlay -o userxattr,lowerdir=/mnt/lower{directory},upperdir=/mnt/upper{name},workdir=/mnt/work{name} none {directory};"
        );
    }
    script + "cd \"$PWD\";"
}

#[test]
fn where_the_store_can_hold_no_run_doctor_names_one_that_can() {
    each_with(&["unshare"], |desk| {
        // All that outlasts the machine is on the container's own disk.
        let tmpfs = overlaid(desk) + "mkdir /mnt/run;";
        let call = |script: &str, words: &[&str]| {
            let script = format!("set -e; {script}\nexec \"$@\"");
            let start = ["-Urm", "sh", "-c", &script, "sh", desk.binary.to_str().unwrap()];
            desk.give(desk.world.program("unshare", [&start[..], words].concat())).env("XDG_RUNTIME_DIR", "/mnt/run").run()
        };
        let said = call(&tmpfs, &["doctor", "--json"]).with(125);
        let export = "export RECANT_STORE=/mnt/run/recant";
        assert_ways(
            &said,
            &[("run", NO, "the store's file system can't hold an overlay's upper", export), ("snapshot", YES, "", "")],
        );
        // What it says helps.
        call(&format!("{tmpfs} {export};"), &["run", "--", "touch", "made"]).ok();
        assert_fits(&call(&tmpfs, &["doctor"]).with(125));
        let said = call(&format!("{tmpfs} rmdir /mnt/run;"), &["doctor", "--json"]).with(125);
        assert_ways(&said, &[("run", NO, "can't hold an overlay's upper", "-v recant:/recant -e RECANT_STORE=/recant")]);
        // Root's run is held in memory there.
        if desk.who == Who::Root {
            let script = format!("set -e; {tmpfs}\nexec \"$@\"");
            let words = ["-m", "sh", "-c", &script, "sh", desk.binary.to_str().unwrap(), "doctor", "--json"];
            let said = desk.world.program("unshare", words).env("XDG_RUNTIME_DIR", "/mnt/run").run().ok();
            assert_ways(&said, &[("run", YES, "in memory until the command ends", export)]);
        }
        // With the store on a tmpfs all works.
        let script = format!("{tmpfs} mkdir /mnt/store; export RECANT_STORE=/mnt/store;");
        let said = call(&script, &["doctor", "--json"]).ok();
        assert_ways(&said, &[("run", YES, "", ""), ("snapshot", YES, "", "")]);
    });
}

#[test]
fn the_ways_that_need_other_programs_tell_what_to_install() {
    each(|desk| {
        let bin = desk.world.root().join("bin");
        std::fs::create_dir(&bin).unwrap();
        let program = |name: &str, text: &str| {
            desk.world.write(bin.join(name), text);
            std::fs::set_permissions(bin.join(name), PermissionsExt::from_mode(0o755)).unwrap();
        };
        let doctor = |path: &str| desk.call(["doctor", "--json"]).env("PATH", path).run().ok();
        let only = bin.to_str().unwrap();
        program("apt-get", "#!/bin/sh\n");
        let none = "no agent in PATH: claude, codex, gemini, copilot, opencode, pi";
        assert_ways(
            &doctor(only),
            &[("remote", NO, "ssh cannot be started: ", "apt-get install openssh-client"), ("agent run", Value::Null, none, "")],
        );
        program("ssh", "#!/bin/sh\necho 'OpenSSH_9.9, of a test' >&2\n");
        program("claude", "#!/bin/sh\n");
        assert_ways(
            &doctor(only),
            &[
                if cfg!(target_feature = "crt-static") {
                    ("remote", YES, "OpenSSH_9.9", "")
                } else {
                    ("remote", YES, "to hosts that have recant; this build is not static", "make static")
                },
                ("agent run", YES, "claude", ""),
                ("agent claude", Value::Null, "its hooks are not installed", "recant agent install claude"),
            ],
        );
        program("ssh", "#!/bin/sh\necho 'No user exists for uid 7' >&2; exit 255\n");
        let said = doctor(only);
        let remedy = if said.json()["here"]["name"].is_null() { "useradd --uid" } else { "" };
        assert_ways(&said, &[("remote", NO, "No user exists for uid 7", remedy)]);
        let installed = desk.call(["agent", "install", "claude", "-y"]).env("PATH", only).run();
        assert_eq!(installed.status, 0, "{installed}");
        assert_ways(
            &doctor(only),
            &[("agent claude", Value::Null, "no event has come yet", "start Claude Code, then run this again")],
        );
        let event = r#"{"session_id": "s", "hook_event_name": "SessionStart"}"#;
        desk.call(["hook", "claude"]).stdin(event).run().ok();
        assert_ways(&doctor(only), &[("agent claude", YES, "its hooks fire", "")]);
        // Hooks that call a recant that is not there.
        let settings = desk.world.root().join("home/.claude/settings.json");
        let text = std::fs::read_to_string(&settings).unwrap();
        desk.world.write(&settings, text.replace(desk.binary.to_str().unwrap(), "/nowhere/recant"));
        assert_ways(&doctor(only), &[("agent claude", NO, "/nowhere/recant cannot be started", "recant agent install claude")]);
    });
}

#[test]
fn a_store_that_cannot_be_made_is_told_of_each_way_that_needs_it() {
    each(|desk| {
        let said = desk.call(["doctor", "--json", "--store", "/proc/nowhere"]).run().with(125);
        assert_ways(
            &said,
            &[("run", NO, "/proc/nowhere", ""), ("run --in", YES, IN_PLACE, ""), ("snapshot", NO, "/proc/nowhere", "")],
        );
    });
}

#[test]
fn the_apparmor_profile_is_for_this_binary_and_can_be_parsed() {
    each(|desk| {
        let profile = desk.recant("doctor --apparmor").ok().stdout();
        assert!(profile.contains(&format!("profile recant \"{}\"", desk.binary.display())), "{profile}");
        assert!(profile.contains("userns,") && profile.contains("abi <abi/4.0>"), "{profile}");
        assert!(!profile.contains("/usr/bin/recant"), "{profile}");
        if !is_root() || !std::path::Path::new("/etc/apparmor.d/abi/4.0").exists() {
            return eprintln!("skipped: the profile is not parsed: there is no apparmor_parser with abi 4.0 here");
        }
        std::fs::write(desk.world.root().join("profile"), &profile).unwrap();
        let file = desk.world.root().join("profile");
        desk.world.program("apparmor_parser", ["-Q", "-K", file.to_str().unwrap()]).run().ok();
    });
}
