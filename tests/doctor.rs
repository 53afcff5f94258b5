//! `recant doctor`: on a machine that has all that a run needs, and on one that has not.
#![allow(clippy::print_stdout, reason = "what is skipped is said")]
#![expect(clippy::disallowed_methods, reason = "tests set up real files")]

mod common;
#[path = "common/desk.rs"]
mod desk;

use desk::{Who, each, has, is_root};

#[test]
fn where_a_run_works_doctor_says_so_and_what_would_be_held() {
    each(|desk| {
        let said = desk.recant("doctor").ok();
        let who = if desk.who == Who::Root { "root" } else { "user" };
        assert!(said.stdout().starts_with(&format!("recant run works here, as {who}\n")), "{said}");
        assert!(said.stdout().contains("recant run --in DIR works here, too: "), "{said}");
        let rows = said.stdout();
        // Columns are parted by spaces of any number.
        let rows: Vec<String> = rows.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        let row = |start: &str| rows.iter().any(|line| line.starts_with(start));
        let top = if desk.who == Who::Root { "held /: the whole tree" } else { "read-only /: everything else" };
        let tree = format!("held {}", desk.world.tree().display());
        assert!(row(top) && (desk.who == Who::Root || row(&tree) || row("held /tmp")), "{said}");
        assert!(row(&format!("hidden {}", desk.world.store().display())), "{said}");
        assert!(row("Linux ") && row("overlayfs "), "{said}");
        assert!(desk.ids().is_empty(), "its session goes again");
        let json = desk.recant("doctor --json").ok().json();
        assert_eq!((&json["run"]["works"], &json["run"]["as"]), (&true.into(), &who.into()), "{json}");
        desk.world.assert_tidy("doctor");
    });
}

#[test]
fn where_a_run_does_not_work_doctor_and_run_name_the_switch_to_set() {
    if !has("unshare") || !has("setpriv") {
        return;
    }
    each(|desk| {
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
        assert!(
            out.starts_with("recant run does not work here, as user: ") && out.contains("user.max_user_namespaces"),
            "{said}"
        );
        assert!(out.lines().any(|line| line.starts_with("user namespaces  ") && line.contains("0: sysctl")), "{said}");
        // What is left was tried.
        assert!(out.contains("recant run --in DIR works here instead: "), "{said}");
        let json = without(&["doctor", "--json"]).with(125).json();
        assert_eq!((&json["run"]["works"], &json["run_in"]["works"]), (&false.into(), &true.into()), "{json}");
        assert!(json["run"]["remedy"].as_str().unwrap().contains("max_user_namespaces"), "{json}");
        let said = without(&["run", "--", "touch", "made"]).with(125);
        assert!(said.stderr().contains("max_user_namespaces") && said.stderr().contains("not started"), "{said}");
        assert!(!desk.world.exists("made"));
    });
}

#[test]
fn the_apparmor_profile_is_for_this_binary_and_can_be_parsed() {
    each(|desk| {
        let profile = desk.recant("doctor --apparmor").ok().stdout();
        assert!(profile.contains(&format!("profile recant \"{}\"", desk.binary.display())), "{profile}");
        assert!(profile.contains("userns,") && profile.contains("abi <abi/4.0>"), "{profile}");
        if !is_root() || !std::path::Path::new("/etc/apparmor.d/abi/4.0").exists() {
            return eprintln!("skipped: the profile is not parsed: there is no apparmor_parser with abi 4.0 here");
        }
        std::fs::write(desk.world.root().join("profile"), &profile).unwrap();
        let file = desk.world.root().join("profile");
        desk.world.program("apparmor_parser", ["-Q", "-K", file.to_str().unwrap()]).run().ok();
    });
}
