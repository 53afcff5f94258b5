//! An ordinary user: directories of others in which he may work, and directories of his own that are closed to him, now or again after a
//! power cut. As root the tests run recant as another user; what only root can set up is skipped as anybody else.

use crate::common::sweep::{COMMIT, Came, REDO, ROLLBACK, Sweep, Tally, Verb};
use crate::common::{self, Call, Manifest, Said, World};
use crate::{SEAL, on_stderr, step_of, whole};

const USER: u32 = 65534;

/// A world that belongs to an ordinary user, with a session of his: `ID` in words.
struct Desk {
    world: World,
    elsewhere: Option<tempfile::TempDir>,
    id: String,
    /// The tree when the session had been staged.
    before: Manifest,
}

impl Desk {
    /// `make` fills the tree as root, or as who runs the tests; all of it is the user's then, who stages: what is written is "new".
    fn new(make: impl FnOnce(&World), stagings: &[&str]) -> Option<Self> {
        Self::of(World::new(), None, make, stagings)
    }

    /// The same with the store on another file system than the tree.
    fn apart(make: impl FnOnce(&World), stagings: &[&str]) -> Option<Self> {
        let (mut world, elsewhere) = (World::new(), common::elsewhere()?);
        world.set("RECANT_STORE", elsewhere.path().join("store"));
        Self::of(world, Some(elsewhere), make, stagings)
    }

    fn of(world: World, elsewhere: Option<tempfile::TempDir>, make: impl FnOnce(&World), stagings: &[&str]) -> Option<Self> {
        make(&world);
        if is_root() {
            for top in [Some(world.root()), elsewhere.as_ref().map(tempfile::TempDir::path)].into_iter().flatten() {
                let owner = format!("{USER}:{USER}");
                world.program("chown", ["-hR".as_ref(), owner.as_ref(), top.as_os_str()]).run().ok();
            }
            if world.call(["--version"]).user(USER, USER).cwd("/").run().status != 0 {
                common::skip(&format!("an ordinary user: user {USER} cannot run {}", common::recant()));
                return None;
            }
        }
        let mut desk = Self { world, elsewhere, id: String::new(), before: Manifest::default() };
        if !stagings.is_empty() {
            desk.stage(stagings);
        }
        Some(desk)
    }

    /// A session of these stagings.
    fn stage(&mut self, stagings: &[&str]) -> &mut Self {
        self.id = self.recant("session new").ok().id();
        for words in stagings {
            self.call(&format!("session {words}")).stdin("new").run().ok();
        }
        self.before = self.world.manifest();
        self
    }

    fn call(&self, words: &str) -> Call {
        let call = self.world.call(words.replace("ID", &self.id).split(' '));
        if is_root() { call.user(USER, USER) } else { call }
    }

    fn recant(&self, words: &str) -> Said {
        self.call(words).run()
    }

    /// As somebody else would: root, where the tests run as root.
    fn shell(&self, command: &str) -> String {
        self.world.program("sh", ["-c", command]).run().ok().stdout()
    }

    /// Commits, and goes back and forth; `of` takes from what is compared what cannot come back.
    fn round_trip(&self, what: &str, of: fn(Manifest) -> Manifest) {
        let before = of(self.world.manifest());
        self.recant("commit ID").ok();
        let after = of(self.world.manifest());
        assert!(!before.difference(&after).is_empty(), "{what}");
        for (verb, want) in [("rollback", &before), ("redo", &after), ("rollback", &before)] {
            self.recant(&format!("{verb} ID")).ok();
            want.assert_same(&of(self.world.manifest()), &format!("{what}: {verb}"));
            self.world.assert_tidy(what);
        }
    }

    /// A commit that is killed before its first step of that kind.
    fn kill_before(&self, parts: &[&str]) {
        let shell = |command: &str| self.world.program("sh", ["-c", command]).cwd(self.world.root()).run().ok();
        shell("mkdir saved && cp -a tree store saved");
        let n = step_of(|| self.call("commit ID"), parts);
        shell("chmod -R u+w tree store; rm -rf tree store; mv saved/tree saved/store .; rmdir saved");
        self.call("commit ID").env("RECANT_STEPS", format!("kill:{n}")).run().with(137);
    }

    #[track_caller]
    fn assert_undone(&self, what: &str) {
        self.before.assert_same(&self.world.manifest(), what);
        self.world.assert_tidy(what);
    }

    fn mode(&self, name: &str) -> u32 {
        self.world.manifest().0[name.as_bytes()].mode
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether a shell does this in the tree.
fn does(world: &World, command: &str) -> bool {
    world.program("sh", ["-c", command]).run().status == 0
}

/// An order at each step of what words ask for.
fn sweep<T: Ord + std::fmt::Debug>(
    words: &str,
    order: &str,
    scene: &dyn Fn() -> Option<Desk>,
    judge: impl FnMut(&mut Desk, &Said, &str) -> Came<T>,
) -> Tally<T> {
    Sweep { name: words, scene, verb: &|desk: &Desk| desk.call(words), order }.run(judge)
}

/// A verb is killed before each step: after the recovery all of it is done, and can be taken back, or nothing is.
fn killed_at_any_step(verb: Verb, scene: &dyn Fn() -> Option<Desk>, of: fn(Manifest) -> Manifest, is_done: fn(&Desk) -> bool) {
    let scene = || {
        let mut desk = scene()?;
        verb.first.iter().for_each(|verb| drop(desk.recant(&format!("{verb} ID")).ok()));
        desk.before = desk.world.manifest();
        Some(desk)
    };
    let tally = sweep(&format!("{} ID", verb.name), "kill:N", &scene, |desk, _, what| {
        let what = format!("{what}, then {}", desk.recant("recover").ok());
        desk.world.assert_tidy(&what);
        let before = of(desk.before.clone());
        let shown = desk.recant("show ID --json").ok().json();
        if shown["session"]["status"] == verb.from {
            before.assert_same(&of(desk.world.manifest()), &what);
            return Came::Unchanged(verb.from);
        }
        assert!(shown["session"]["status"] == verb.to && is_done(desk), "{what}");
        desk.recant(&format!("{} ID", verb.back)).ok();
        before.assert_same(&of(desk.world.manifest()), &what);
        Came::Used(verb.to)
    });
    tally.saw(verb.from, 5).saw(verb.to, 2);
}

#[test]
fn where_others_let_a_user_work_his_sessions_go_there_and_back() {
    let make = |world: &World| {
        for name in ["mine", "edited", "sub/in", "theirs"] {
            ["open", "sticky", "group"].iter().for_each(|directory| _ = world.write(format!("{directory}/{name}"), "old"));
        }
    };
    let Some(mut desk) = Desk::new(make, &[]).filter(|_| common::is_root("directories of others")) else { return };
    // Their owners have other rights than the user: the one of `group` has fewer.
    desk.shell("chown 0:0 open */theirs sticky; chown 0:65534 group; chmod 0777 open; chmod 1777 sticky; chmod 0570 group");
    for (directory, more) in [("open", ",delete ID open/theirs"), ("sticky", ""), ("group", "")] {
        let stagings = "delete ID F/mine,write ID F/edited,write ID F/made,delete ID F/sub -r,chmod ID 0600 F/edited";
        let stagings = stagings.replace('F', directory) + more;
        let stagings: Vec<&str> = stagings.split(',').collect();
        // The time of a directory is its owner's alone to set.
        desk.stage(&stagings).round_trip(directory, Manifest::without_directory_times);
    }
}

#[test]
fn a_users_own_directory_without_w_is_no_obstacle() {
    let make = |world: &World| {
        for name in ["closed/edited", "closed/gone", "closed/sub/in", "dark/in"] {
            world.write(name, "old");
        }
        world.chmod("closed/sub", 0o500).chmod("closed", 0o555);
        if is_root() {
            // Whoever may not list it cannot compare it either.
            world.chmod("dark", 0o311);
        }
    };
    let closed = ["write ID closed/edited", "write ID closed/made", "delete ID closed/gone", "delete ID closed/sub -r"];
    let Some(mut desk) = Desk::new(make, &[&closed[..], &["write ID dark/in"]].concat()) else { return };
    desk.round_trip("closed", whole);
    // And one that comes with the session and is closed at last.
    desk.stage(&["mkdir ID new --mode 0500", "write ID new/in"]).round_trip("a new one", whole);
    desk.recant("redo ID").ok();
    assert_eq!((desk.mode("new"), desk.mode("closed")), (0o500, 0o555));
}

#[test]
fn a_user_may_close_a_directory_of_his_own_where_nothing_more_is_done_in_it() {
    let make = |world: &World| _ = world.mkdir("a").write("shut/in", "old").write("z", "old");
    let Some(mut desk) = Desk::new(make, &["chmod ID 0300 shut", "write ID z"]) else { return };
    desk.recant("commit ID").ok();
    desk.recant("rollback ID").ok();
    assert_eq!((desk.mode("shut"), desk.world.read("z")), (0o755, "old".into()));
    // What lies in it could not be taken back any more.
    let said = desk.stage(&["chmod ID 0300 shut", "write ID shut/in"]).recant("commit ID").with(1);
    assert!(said.stderr().contains("it needs u+rx"), "{said}");
}

#[test]
fn a_directory_that_is_closed_as_it_is_to_be_stays_closed_whatever_is_done_in_it() {
    let make = |world: &World| _ = world.write("shut/in", "old");
    let Some(desk) = Desk::new(make, &["chmod ID 0500 shut", "write ID shut/in"]) else { return };
    for verb in ["commit", "rollback"] {
        desk.recant(&format!("{verb} ID")).ok();
    }
    // He does the one half of it himself.
    desk.world.chmod("shut", 0o500);
    desk.recant("redo ID").ok();
    assert_eq!((desk.mode("shut"), desk.world.read("shut/in")), (0o500, "new".into()));
}

/// That a directory was opened up for the work may be lost with the power, and what was done in it not.
#[test]
fn a_directory_that_a_power_cut_has_closed_again_hinders_no_recovery() {
    // All is on the tree and nothing sealed; or a directory that goes is empty and still there.
    for (shut, step) in [(0o500, SEAL), (0o555, SEAL), (0o500, ["renameat2 ", "tree/shut/sub /"])] {
        let make = |world: &World| {
            for name in ["shut/edited", "shut/gone", "shut/sub/in"] {
                world.write(name, "old").chmod(name, 0o644);
            }
            world.chmod("shut/sub", shut).chmod("shut", shut);
        };
        let stagings = ["write ID shut/edited", "write ID shut/made", "delete ID shut/gone", "delete ID shut/sub -r"];
        let Some(desk) = Desk::new(make, &stagings) else { return };
        desk.kill_before(&step);
        // Closed as they were before the commit.
        desk.shell(&format!(
            "chmod {shut:o} shut; find shut/sub ../store -path '*sub' -o -path '*objects/*' -type d | xargs -r chmod u-w"
        ));
        desk.recant("recover").ok();
        desk.assert_undone(&format!("killed before {step:?}, in a directory of {shut:o}"));
    }
}

/// Its mode is that of before the opening, which the step that sets another one takes for somebody's.
#[test]
fn a_kill_before_a_closed_directory_is_opened_hinders_no_recovery() {
    let make = |world: &World| _ = world.write("shut/edited", "old").chmod("shut", 0o555);
    let Some(desk) = Desk::new(make, &["chmod ID 0755 shut", "write ID shut/edited"]) else { return };
    desk.kill_before(&["fchmodat ", "tree/shut"]);
    desk.recant("recover").ok();
    desk.assert_undone("undone");
}

/// Its ACL has an entry for the owner, which chmod(2) changes along.
#[test]
fn a_closed_directory_with_an_acl_is_opened_up_for_the_work() {
    let mut has_acls = true;
    let make = |world: &World| {
        for name in ["shut", "gone"] {
            world.write(format!("{name}/in"), "old").write(format!("{name}/edited"), "old");
            has_acls &= does(world, &format!("setfacl -m u:1:rwx {name}"));
            world.chmod(name, 0o575);
        }
    };
    let stagings = ["delete ID gone -r", "delete ID shut/in", "write ID shut/edited", "chmod ID 0755 shut"];
    let Some(desk) = Desk::new(make, &stagings) else { return };
    if !has_acls {
        return common::skip("a closed directory with an ACL: no ACLs here");
    }
    desk.round_trip("with an ACL", whole);
}

/// The kernel lets an owner set no `user.*` attribute on a file that he may not write to; an ACL takes the right back that a mode gives.
#[test]
fn attributes_of_a_file_that_its_owner_may_not_write_to_go_there_and_back() {
    if !common::can_run() {
        return common::skip("attributes that a command sets: recant run does not work here");
    }
    let acl = "setfacl -m u:1:r f";
    for (change, acl) in [("-n user.a -v 2", "true"), ("-n user.a -v 2", acl), ("-x user.a", acl), ("-n user.b -v 2", acl)] {
        let scene = || {
            let mut able = true;
            let make = |world: &World| {
                world.write("f", "old").write("change", format!("chmod u+w f && setfattr {change} f && chmod u-w f"));
                able = does(world, &format!("setfattr -n user.a -v 1 f && {acl} && chmod 400 f"));
            };
            let mut desk = Desk::new(make, &[])?;
            if !able {
                common::skip("attributes of a file with an ACL: none here");
                return None;
            }
            desk.recant("run -- sh change").ok();
            desk.id = desk.recant("show --json").ok().json()["session"]["id"].as_str().expect("an id").to_owned();
            Some(desk)
        };
        let Some(desk) = scene() else { return };
        desk.round_trip(change, whole);
        for verb in [ROLLBACK, REDO] {
            killed_at_any_step(verb, &scene, whole, |_| true);
        }
    }
}

#[test]
fn what_its_owner_has_closed_before_a_recovery_is_kept_and_what_he_has_closed_since_gives_way_by_force() {
    for is_killed in [true, false] {
        let Some(desk) = Desk::new(|world| _ = world.write("edited", "old"), &["write ID edited"]) else { return };
        if is_killed {
            desk.kill_before(&SEAL);
            desk.world.write("edited", "theirs").chmod("edited", 0);
            desk.recant("recover").with(4);
        } else {
            desk.recant("commit ID").ok();
            desk.world.chmod("edited", 0);
            desk.recant("rollback ID").with(3);
        }
        desk.recant("rollback ID --force").ok();
        desk.assert_undone("by force");
    }
}

/// Between two file systems a copy of a directory is kept, closed as the directory was.
#[test]
fn a_closed_directory_comes_back_from_a_store_that_was_copied_onto_its_file_system() {
    let make = |world: &World| _ = world.write("shut/in", "old").chmod("shut", 0o500);
    let Some(mut desk) = Desk::apart(make, &["delete ID shut -r"]) else { return };
    desk.recant("commit ID").ok();
    let from = desk.elsewhere.as_ref().expect("it").path().join("store").display().to_string();
    desk.shell(&format!("cp -a {from} ../store"));
    desk.world.set("RECANT_STORE", desk.world.store());
    desk.recant("rollback ID").ok();
    desk.assert_undone("back");
}

/// Another parent is written into a directory that is moved: its own rights count.
#[test]
fn a_directory_that_was_filled_and_closed_before_it_is_let_go_is_kept() {
    let scene = || {
        let desk = Desk::new(|world| _ = world.mkdir("d"), &["delete ID d"])?;
        desk.recant("commit ID").ok();
        desk.shell(&format!("mkdir d && chown {USER}:{USER} d || true"));
        Some(desk)
    };
    let fill = "ls -d ../store/sessions/*/checkpoint/objects/*/ 2>&- | xargs -I% sh -c 'touch %late && chmod 500 %'";
    let tally = sweep("rollback ID", &format!("run:N:{fill}"), &scene, |desk, said, what| {
        let is_filled = !desk.shell("find ../store -name late").is_empty();
        assert!(said.status == 0 || is_filled && said.status == 3, "{what}");
        Came::Used(match (is_filled, said.status) {
            (true, 0) if said.stderr().contains("-kept-") => "kept",
            (true, _) => "filled",
            (false, _) => "too late",
        })
    });
    tally.saw("kept", 4);
}

/// A session that leaves copies in a directory between two file systems, and gives it that mode.
fn something_on_the_way(mode: &str) -> Option<Desk> {
    let make = |world: &World| _ = world.write("shut/in", "old").write("shut/gone", "old");
    Desk::apart(make, &["write ID shut/in", "delete ID shut/gone", &format!("chmod ID {mode} shut")])
}

#[test]
fn what_was_on_the_way_goes_from_a_directory_that_the_operation_has_closed() {
    killed_at_any_step(COMMIT, &|| something_on_the_way("0555"), whole, |desk| {
        (desk.mode("shut"), &*desk.world.read("shut/in"), desk.world.exists("shut/gone")) == (0o555, "new", false)
    });
}

/// The directories that a command made have the modes that it gave them, in the store too.
#[test]
fn what_a_run_has_left_in_directories_that_it_closed_is_committed_onto_another_file_system() {
    if !common::can_run() {
        return;
    }
    let make =
        |world: &World| _ = world.write("change", "mkdir -p shut/below; echo x > shut/f; chmod 500 shut/below; chmod 555 shut");
    let (Some(mut desk), Some(elsewhere)) = (Desk::new(make, &[]), common::elsewhere()) else { return };
    let said = desk.recant("run -q -- sh change");
    if said.status == 125 {
        return common::skip(&format!("a run of an ordinary user: {said}"));
    }
    desk.before = desk.world.manifest();
    let to = elsewhere.path().display();
    desk.shell(&format!("cp -a ../store {to}/store; chmod 755 {to}; chown --reference=../store {to}"));
    desk.world.set("RECANT_STORE", elsewhere.path().join("store"));
    desk.recant("commit last").ok();
    assert_eq!((desk.mode("shut"), desk.mode("shut/below")), (0o555, 0o500));
    desk.world.assert_tidy("committed");
    desk.recant("rollback last").ok();
    desk.assert_undone("back");
}

/// What is made ready is not made in a directory that is opened only once all is ready.
#[test]
fn what_lies_in_a_closed_directory_goes_back_and_forth_between_two_file_systems() {
    let make = |world: &World| {
        world.write("shut/in/f", "old").write("shut/in/gone", "old").write("shut/in/d/f", "old");
        world.chmod("shut/in", 0o500).chmod("shut", 0o555);
    };
    let stagings = ["write ID shut/in/f", "delete ID shut/in/gone", "delete ID shut/in/d -r", "write ID shut/in/new"];
    let scene = || Desk::apart(make, &stagings);
    let Some(desk) = scene() else { return };
    desk.round_trip("closed", whole);
    killed_at_any_step(COMMIT, &scene, whole, |desk| {
        !desk.world.exists("shut/in/gone") && desk.world.read("shut/in/new") == "new"
    });
}

/// As in /tmp. Whom the closed directory keeps out, the one above it would not.
#[test]
fn what_lies_in_a_closed_directory_is_made_ready_in_one_of_others_unless_more_people_could_read_it_there() {
    let scene = || {
        let make = |world: &World| {
            world.write("shut/f", "old").write("shut/gone", "old").write("shut/d/f", "old").write("secret/f", "old");
            world.chmod("shut", 0o555).chmod("secret", 0o500);
        };
        let mut desk = Desk::apart(make, &[]).filter(|_| common::is_root("directories of others"))?;
        desk.shell("chown root . && chmod 1777 .");
        desk.stage(&["write ID shut/f", "delete ID shut/gone", "delete ID shut/d -r", "write ID shut/new"]);
        Some(desk)
    };
    // Nobody but its owner gives it its time back.
    let of = |mut manifest: Manifest| {
        manifest.0.remove(&b"."[..]);
        manifest
    };
    let Some(mut desk) = scene() else { return };
    desk.round_trip("closed", of);
    desk.stage(&["write ID secret/f"]);
    // An ACL may keep out whom the mode lets in.
    for opened in ["true", "chmod 555 secret && setfacl -m u:1:--- secret"] {
        if !does(&desk.world, opened) {
            common::skip("a closed directory with an ACL: no ACLs here");
            continue;
        }
        let refused = desk.recant("commit ID --force").with(1);
        let says = |words: &str| refused.stderr().contains(words);
        assert!(says(", and in ") && says("others could see it") && says("secret helps"), "{opened}: {refused}");
    }
    desk.shell("chmod 755 .");
    let refused = desk.stage(&["write ID shut/f"]).recant("commit ID").with(1);
    assert!(refused.stderr().contains("shut helps"), "{refused}");
    killed_at_any_step(COMMIT, &scene, of, |desk| !desk.world.exists("shut/gone") && desk.world.read("shut/new") == "new");
}

#[test]
fn a_directory_that_its_owner_closes_after_a_kill_keeps_the_mode_that_he_gave_it() {
    let tally = sweep("commit ID", "kill:N", &|| something_on_the_way("0750"), |desk, said, what| {
        if said.status == 0 {
            return Came::Used(0);
        }
        desk.shell("chmod 511 shut");
        let recovered = desk.recant("recover");
        let what = format!("{what}, then {recovered}");
        assert!([0, 4].contains(&recovered.status), "{what}");
        assert_eq!(desk.mode("shut"), 0o511, "{what}");
        desk.world.assert_tidy(&what);
        Came::Used(recovered.status)
    });
    assert!(tally.steps == 0 || tally.steps > 30, "{}", tally.steps);
}

/// Opened for the work it would be 0755: what the owner has given it is his.
#[test]
fn a_directory_that_its_owner_opens_after_a_kill_is_not_taken_for_one_that_was_opened_for_the_work() {
    for acl in ["true", "setfacl -m u:1:rx shut"] {
        let mut able = true;
        let make = |world: &World| {
            world.write("shut/edited", "old");
            able = does(world, acl);
            world.chmod("shut", 0o555);
        };
        let Some(desk) = Desk::new(make, &["write ID shut/edited"]) else { return };
        if !able {
            return common::skip("a directory with an ACL that its owner opens: no ACLs here");
        }
        desk.kill_before(&["renameat2 ", "shut/edited"]);
        assert_eq!(desk.mode("shut"), 0o755, "killed while it is open");
        desk.shell("chmod 700 shut");
        let recovered = desk.recant("recover").with(4);
        assert_eq!(recovered.stderr().matches("tree/shut: another process changed its mode or owner").count(), 1, "{recovered}");
        assert!(!recovered.to_string().contains("--force"), "no verb goes on with a mode: {recovered}");
        assert_eq!((desk.mode("shut"), desk.world.read("shut/edited").as_str()), (0o700, "old"), "{recovered}");
        let listed = desk.recant("list --all --json").ok().json();
        assert_eq!(listed["sessions"][0]["status"], "pending", "a mode alone seals nothing: {recovered}");
        let log = desk.recant("log --json").ok().json();
        assert!(log["entries"].to_string().contains("tree/shut: another process changed its mode or owner"), "{log}");
        desk.world.assert_tidy("its mode stays");
    }
}

/// What goes back into a directory that its owner has closed is closed itself: both are opened for that, and closed again whatever fails.
#[test]
fn what_was_opened_for_one_step_is_closed_again_where_that_fails() {
    let scene = || {
        let make = |world: &World| _ = world.write("shut/sub/in", "old").chmod("shut/sub", 0o500).chmod("shut", 0o500);
        let desk = Desk::new(make, &["delete ID shut/sub -r"])?;
        desk.kill_before(&SEAL);
        desk.shell("chmod 511 shut; find ../store -path '*objects/*' -type d | xargs -r chmod 500");
        Some(desk)
    };
    let order = "log:../failed;fail:N:5";
    let tally = sweep("recover", order, &scene, |desk, _, what| {
        let log = std::fs::read_to_string(desk.world.root().join("failed")).unwrap_or_default();
        let failed =
            what.split_once("fail:").and_then(|(_, rest)| rest.split(':').next()?.parse::<usize>().ok()).expect("a step");
        let step = log.lines().nth(failed - 1).unwrap_or("behind the last");
        let is_shut = ["tree/shut", "tree/shut/."].iter().any(|at| step.contains("fchmodat ") && step.ends_with(at));
        let mode = desk.mode("shut");
        assert!(mode == 0o511 || is_shut && mode == 0o711, "{step}: {mode:o}: {what}");
        Came::Used(if step.contains("fchmodat ") { "opened or closed" } else { "else" })
    });
    assert!(tally.steps == 0 || tally.steps > 10, "{}", tally.steps);
    tally.saw("opened or closed", 4);
}

/// Whether something is in it cannot be told then; that it was closed since can.
#[test]
fn a_kept_directory_that_who_works_in_it_has_filled_and_closed_is_a_conflict() {
    let Some(desk) = Desk::new(|world| _ = world.mkdir("d"), &["delete ID d"]) else { return };
    desk.recant("commit ID").ok();
    let kept = desk.world.session(&desk.id).join("checkpoint/objects");
    desk.shell(&format!("cd {}/*/ && touch late && chmod 0 .", kept.display()));
    let verified = desk.recant("checkpoint verify ID").with(3);
    assert!(verified.stderr().contains("something was put into the kept directory"), "{verified}");
    desk.recant("session export --checkpoint ID").with(1);
    desk.recant("rollback ID").with(3);
    let said = desk.recant("rollback ID --force").ok();
    assert!(said.stderr().contains("/d: something was put into it since") && desk.world.exists("d/late"), "{said}");
}

/// Copies are made ready in it, for a directory below that is closed; else nothing comes or goes.
#[test]
fn the_time_that_somebody_gives_the_directory_above_a_closed_one_stays() {
    let make = |world: &World| {
        world.write("above/shut/f", "old").write("above/g", "old").chmod("above/shut", 0o555);
        world.set_mtime("above", 1_000_000_000, 0);
    };
    let Some(mut desk) = Desk::apart(make, &["write ID above/shut/f", "write ID above/new"]) else { return };
    desk.recant("commit ID").ok();
    desk.shell("touch -d @1300000000 above");
    let time = |desk: &Desk| desk.world.manifest().0[&b"above"[..]].mtime.0;
    desk.recant("rollback ID above/shut/f").ok();
    assert_eq!(time(&desk), 1_300_000_000);
    // What goes from it now gives it a new one. That of before the commit was not the last.
    desk.recant("rollback ID").ok();
    assert!(time(&desk) > 1_300_000_000, "{}", time(&desk));
    // Nor is it after one of several.
    desk.stage(&["write ID above/g", "write ID above/newer", "write ID above/newest"]).recant("commit ID").ok();
    desk.shell("touch -d @1300000000 above");
    for part in [" above/newest", " above/newer", ""] {
        desk.recant(&format!("rollback ID{part}")).ok();
        assert!(time(&desk) > 1_300_000_000, "{part}: {}", time(&desk));
    }
}

#[test]
fn a_capability_opens_a_closed_directory_where_its_owner_cannot_work_above_it() {
    let make = |world: &World| _ = world.write("shut/f", "old").chmod("shut", 0o555);
    let desk = Desk::apart(make, &["write ID shut/f"]).filter(|_| common::is_root("a capability of an ordinary user"));
    let Some(desk) = desk else { return };
    desk.shell("chown root . && chmod 755 .");
    let refused = desk.recant("commit ID").with(1);
    assert!(refused.stderr().contains("shut helps"), "{refused}");
    let ids = [format!("--reuid={USER}"), format!("--regid={USER}")];
    let rights = ["--clear-groups", "--inh-caps=+dac_override", "--ambient-caps=+dac_override", common::recant()];
    let words = ids.iter().map(String::as_str).chain(rights).chain(["commit", &desk.id]);
    desk.world.program("setpriv", words.collect::<Vec<_>>()).cwd("/").run().ok();
    assert_eq!((desk.world.read("shut/f"), desk.mode("shut")), ("new".into(), 0o555));
}

/// chmod(2) clears the setgid bit of what has a group that its owner is not in, and he could not set it again: where a directory is opened for
/// the work, and where the mode itself is changed. A group that he is not in takes nothing from him, there or back.
#[test]
fn what_an_owner_could_not_set_again_for_want_of_a_group_is_refused() {
    let desk = Desk::new(|world| _ = world.write("shut/in", "old").write("set", "old").write("given", "old"), &[]);
    let Some(mut desk) = desk.filter(|_| common::is_root("a group that an owner is not in")) else { return };
    let given = desk.world.path("given").display().to_string();
    desk.recant(&format!("snapshot create {given}")).ok();
    desk.shell("chgrp 0 shut set given && chmod 2555 shut && chmod 2755 set");
    let closed = "shut: you are not in its group, so opening it for the work would clear its setgid bit";
    for (staging, why) in
        [("write ID shut/in", closed), ("chmod ID 0755 set", "set: you are not in group 0, so its setgid bit would be lost")]
    {
        let refused = desk.stage(&[staging]).recant("commit ID").with(1);
        assert!(refused.stderr().contains(why), "{refused}");
    }
    let refused = desk.recant(&format!("snapshot restore 0 --dir {given}")).with(1);
    assert!(refused.stderr().contains("given: you are not in group 0, so you cannot set or restore that group"), "{refused}");
    desk.assert_undone("refused");
}

/// What was edited after the kill lies in a directory that is closed again by the first recovery. Or a closed directory lies in the way: it
/// gets another parent only where its owner may write to it.
#[test]
fn what_somebody_edits_in_a_closed_directory_or_puts_in_the_way_and_closes_gives_way_by_force() {
    let edits = "cd shut && echo mine >> edited && echo mine >> made";
    let directories = "cd open && for f in edited gone made; do rm -f $f; mkdir $f; echo mine > $f/mine; chmod 555 $f; chown -R 65534:65534 $f; done";
    for (directory, mode, disturb) in [("shut", 0o555, edits), ("open", 0o755, directories)] {
        let make = |world: &World| {
            ["edited", "gone"].iter().for_each(|name| _ = world.write(format!("{directory}/{name}"), "old"));
            world.chmod(directory, mode);
        };
        let stagings = ["write ID F/edited", "delete ID F/gone", "write ID F/made"].map(|words| words.replace('F', directory));
        let Some(desk) = Desk::new(make, &stagings.each_ref().map(String::as_str)) else { return };
        desk.kill_before(&SEAL);
        desk.shell(disturb);
        desk.recant("recover").with(4);
        assert_eq!(desk.mode(directory), mode);
        desk.recant("rollback ID --force").ok();
        let calm = Manifest::without_directory_times;
        calm(desk.before.clone()).assert_same(&calm(desk.world.manifest()), disturb);
        desk.world.assert_tidy(disturb);
    }
}

/// Its copy in the session is closed as it was.
#[test]
fn the_copy_of_a_closed_directory_is_kept_where_its_directory_has_been_moved_away() {
    let make = |world: &World| _ = world.write("d/shut/in", "old").chmod("d/shut", 0o555);
    let tally = sweep("commit ID", "kill:N", &|| Desk::apart(make, &["delete ID d/shut -r"]), |desk, _, what| {
        desk.shell("mv d away");
        let said = desk.recant("recover");
        assert!([0, 4].contains(&said.status), "{what}, then {said}");
        desk.recant("recover").ok();
        Came::Used(said.status)
    });
    tally.saw(4, 6);
}

/// What is kept in it cannot be listed.
#[test]
fn a_directory_that_may_not_be_listed_hinders_no_undo() {
    let scene = || {
        let make = |world: &World| _ = world.write("shut/edited", "old").write("shut/gone", "old");
        let desk = Desk::apart(make, &["write ID shut/edited", "delete ID shut/gone", "write ID shut/made"])?;
        desk.shell("chmod 311 shut");
        Some(desk)
    };
    for order in ["kill:N", "fail:N:5"] {
        let tally = sweep("commit ID", order, &scene, |desk, said, what| {
            assert!(!said.stderr().contains("the undo failed"), "{what}");
            desk.recant("recover").ok();
            desk.shell("chmod 755 shut");
            let what = format!("{what}, then {}", desk.world.manifest());
            desk.world.assert_tidy(&what);
            let is_done = desk.world.exists("shut/made");
            assert_eq!(desk.world.read("shut/edited"), if is_done { "new" } else { "old" }, "{what}");
            desk.shell("chmod 311 shut");
            if is_done { Came::Used("done") } else { Came::Unchanged("undone") }
        });
        assert!(tally.steps == 0 || tally.steps > 20, "{}", tally.steps);
        tally.saw("undone", 10);
    }
}

#[test]
fn who_has_another_user_id_now_is_told_the_way_and_so_is_root() {
    const NEW: u32 = 65533;
    let desk = Desk::new(|world| _ = world.write("f", "old"), &["write ID f"]);
    let Some(desk) = desk.filter(|_| common::is_root("a user ID that changes")) else { return };
    let id = &desk.id;
    let (store, tree) = (desk.world.store().display().to_string(), desk.world.tree().display().to_string());
    // usermod -u does so in the home directory; the store lies elsewhere.
    desk.shell(&format!("chown -R {NEW}:{NEW} {tree}"));
    let commit = |user: u32| desk.world.call(["commit", "--force", id]).user(user, user).run();
    let (take, own) = (format!("chown -R {NEW} {store}"), format!("chown -R 0 {store}"));
    let said = commit(NEW).with(1);
    assert!(said.stderr().contains(&format!("(your user ID changed): sudo {take}")), "{said}");
    desk.shell(&take);
    // What it holds belongs to the user that was.
    let said = commit(NEW).with(1);
    assert!(said.stderr().contains("root can, once the store is its own: chown -R 0 STORE, and back afterwards"), "{said}");
    let said = commit(0).with(1);
    assert!(said.stderr().contains(&own) && said.stderr().contains(&take), "{said}");
    desk.shell(&own);
    commit(0).ok();
    assert_eq!(desk.world.read("f"), "new");
    desk.shell(&take);
    desk.world.call(["show", id]).user(NEW, NEW).run().ok();
}

#[test]
fn a_working_directory_that_a_user_may_not_enter_is_told_from_one_that_is_gone() {
    let desk = Desk::new(|world| _ = world.mkdir("private/open").mkdir("gone"), &[]);
    let Some(desk) = desk.filter(|_| common::is_root("a directory that a user may not enter")) else { return };
    desk.shell("chown -R 0:0 private && chmod 700 private");
    let within = |directory: &str, words: &str| {
        let user = format!("setpriv --reuid={USER} --regid={USER} --clear-groups");
        let before = if directory == "gone" { "rmdir ../gone" } else { "true" };
        let script = format!("cd {directory} && {before} && exec {user} \"$0\" {words}");
        desk.world.program("sh", ["-c", &script, common::recant()]).run()
    };
    for directory in ["private", "private/open"] {
        let said = within(directory, "run -- true").with(125);
        let closed = format!("{}: you may not enter the working directory", desk.world.path(directory).display());
        assert!(said.stderr().contains(&closed) && !said.stderr().contains("no longer has a path"), "{directory}: {said}");
        let said = within(directory, "rollback last").with(1);
        let closed = "cannot tell which project this is: you may not enter the working directory";
        assert!(said.stderr().contains(closed), "{directory}: {said}");
    }
    let said = within("gone", "run -- true").with(125);
    assert!(said.stderr().contains("the working directory no longer has a path"), "{said}");
}

#[test]
fn a_directory_that_its_owner_has_closed_is_opened_for_the_work_and_that_is_said() {
    let make = |world: &World| _ = world.write("d/f", "old").write("e/f", "old").write("own/f", "old");
    let stagings = ["write ID d/f", "write ID e/f", "write ID own/f", "chmod ID 0555 own"];
    let Some(desk) = Desk::new(make, &stagings) else { return };
    desk.shell("chmod 555 d; chmod 500 e");
    let line = "/world/tree/d: closed (mode 0555), but yours: it is opened for the work, and closed again (likewise 1 more)\n";
    // Also by a rollback; one that the session itself has closed is as it is to be.
    for verb in ["commit --dry-run", "commit", "rollback"] {
        let said = desk.recant(&format!("{verb} ID")).ok();
        assert!(said.masked_err().contains(&format!("recant: {line}")), "{verb}: {said}");
        assert_eq!(said.stderr().matches("is opened").count(), 1, "{verb}: {said}");
        assert_eq!((desk.mode("d"), desk.mode("e")), (0o555, 0o500), "{verb}");
    }
    desk.shell("chmod 755 d e");
    for verb in ["redo", "rollback"] {
        let said = desk.recant(&format!("{verb} ID")).ok();
        assert!(!said.stderr().contains("is opened"), "{verb}: {said}");
    }
}

#[test]
fn diff_conflicts_names_what_a_commit_is_refused_for() {
    let make = |world: &World| _ = world.write("d/f", "old").write("d/g", "old").write("e/f", "old");
    let desk = Desk::new(make, &["write ID d/f", "write ID d/g", "write ID e/f"]);
    let Some(desk) = desk.filter(|_| common::is_root("a directory of somebody else")) else { return };
    insta::assert_snapshot!(on_stderr(&desk.recant("diff ID --conflicts"), 0), @r"
    recant: session <id1>: no conflicts
    ");
    desk.shell("chown 0:0 d && chmod 755 d");
    let why = "the directory is read-only for you (owner 0, mode 0755)";
    let said = desk.recant("commit ID").with(1);
    assert!(said.masked_err().contains(&format!("/world/tree/d: {why}")), "{said}");
    insta::assert_snapshot!(desk.recant("diff ID --conflicts"), @r"
    status 0
    --- stdout
    # /world/tree/d: refused: the directory is read-only for you (owner 0, mode 0755)
    --- stderr
    recant: a commit would be refused for 1 path
    ");
    let named = |words: &str| desk.recant(&format!("diff ID --conflicts --name-only{words}")).ok().stderr();
    assert!(named(" d/g").contains("refused for 1 path") && named(" e").contains("no conflicts"));
    let told = desk.recant("diff ID --conflicts --json").ok().json();
    assert_eq!((&told["refused"][0]["why"], &told["refused"][0]["verb"]), (&why.into(), &"commit".into()), "{told}");
    // Rights are looked at when all else is out of the way, by the commit as well.
    desk.shell("rm e/f");
    let told = desk.recant("diff ID --conflicts --json").ok().json();
    assert_eq!(["conflicts", "refused"].map(|key| told[key].as_array().unwrap().len()), [1, 1], "{told}");
}

/// As his shell would: the command that the message names opens it.
#[test]
fn a_directory_that_its_owner_has_closed_is_named_with_the_command_that_opens_it() {
    for (shut, name) in [("d it", "d it/edited"), ("d it", "d it/sub/edited"), ("d it/sub", "d it/sub/edited")] {
        let Some(mut desk) = Desk::new(|world| _ = world.write(name, "old"), &[]) else { return };
        desk.id = desk.recant("session new").ok().id();
        let staged = desk.world.call(["session", "write", &desk.id, name]);
        if is_root() { staged.user(USER, USER) } else { staged }.stdin("new").run().ok();
        desk.before = desk.world.manifest();
        desk.kill_before(&SEAL);
        let chmod = format!("chmod u+rwx '{}'", desk.world.path(shut).display());
        let closed = || _ = desk.world.chmod(shut, 0);
        let opened = || {
            desk.shell(&chmod);
            desk.world.chmod(shut, 0o755);
        };
        closed();
        let said = desk.recant("recover").with(7);
        assert!(said.stdout().contains(&format!("\n{chmod}, then recant recover tries again\n")), "{said}");
        opened();
        desk.recant("recover").ok();
        desk.before.assert_same(&desk.world.manifest(), "undone");
        desk.recant("commit ID").ok();
        closed();
        let said = desk.recant("rollback ID").with(1);
        assert!(said.stderr().contains(&format!("the directory that it lies in ({chmod} helps)")), "{said}");
        opened();
        desk.recant("rollback ID").ok();
        desk.before.assert_same(&desk.world.manifest(), "rolled back");
    }
}

/// In a run the kernel makes of a capability one that counts in the user's namespace alone. A user can set neither on the tree.
#[test]
fn a_program_keeps_its_capability_when_its_owner_changes_its_mode_or_time_in_a_run() {
    if !is_root() || !common::can_run() {
        return common::skip("a user's program with a capability: only root can set it up");
    }
    let make = |world: &World| {
        world.write("program", "x").write("other", "x");
    };
    let Some(desk) = Desk::new(make, &[]) else { return };
    desk.world.program("setcap", ["cap_net_raw+ep", "program"]).run().ok();
    let before = desk.world.manifest();
    let call = |words: &[&str]| desk.world.call(words).user(USER, USER).run();
    let capability = || before.0[&b"program"[..]].xattrs == desk.world.manifest().0[&b"program"[..]].xattrs;
    let all: [(&str, &[&str]); 3] = [
        ("mode", &["chmod 700 program"]),
        ("time", &["touch program"]),
        ("steps", &["chmod 700 program; echo y > other", "touch program"]),
    ];
    for (name, commands) in all {
        for command in commands {
            call(&["run", "-q", "--session", name, "--", "sh", "-c", command]).ok();
        }
        before.assert_same(&desk.world.manifest(), "held");
        call(&["commit", name]).ok();
        assert!(capability(), "{commands:?}: {}", desk.world.manifest());
        assert!(!before.difference(&desk.world.manifest()).is_empty(), "{commands:?}");
        call(&["rollback", name]).ok();
        before.assert_same(&desk.world.manifest(), "rolled back");
    }
}

/// Programs with capabilities, of an ordinary user's. `None` where only root could set them up.
fn programs() -> Option<Desk> {
    if !is_root() || !common::can_run() {
        common::skip("a user's program with a capability: only root can set it up");
        return None;
    }
    let make = |world: &World| {
        world.write("program", "x").write("second", "y").write("other", "x").write("d/inner", "z");
    };
    let mut desk = Desk::new(make, &[])?;
    for (capability, name) in [("cap_net_raw+ep", "program"), ("cap_chown+p", "second"), ("cap_net_raw+ep", "d/inner")] {
        desk.world.program("setcap", [capability, name]).run().ok();
    }
    desk.before = desk.world.manifest();
    Some(desk)
}

/// The objects with their names of one file, but without times, and without the name that a checkpoint keeps.
fn names(manifest: Manifest) -> Manifest {
    let mut manifest = manifest.without_times();
    let groups: Vec<_> = manifest.0.values().filter_map(|row| row.group.clone()).collect();
    for row in manifest.0.values_mut() {
        row.group.take_if(|group| groups.iter().filter(|other| *other == group).count() < 2);
    }
    manifest
}

#[test]
fn a_program_that_its_owner_renames_or_links_in_a_run_has_its_capability_as_without_recant() {
    let all: [&[&str]; 11] = [
        &["mv program moved"],
        &["ln program linked"],
        &["mv program second"],
        &["mv d e"],
        &["mv program x; mv second program; mv x second"],
        &["ln program l1; ln program l2; rm program"],
        &["mv program d/p", "mv d/p moved; echo n > n", "echo z > n"],
        &["ln program l1", "ln l1 l2", "rm program"],
        &["mv program moved; cp other program"],
        &["mv program moved", "cp other program"],
        &["cat program > program.new; mv program.new program"],
    ];
    for commands in all {
        let Some(bare) = programs() else { return };
        commands.iter().for_each(|command| drop(bare.world.program("sh", ["-c", command]).user(USER, USER).run().ok()));
        let Some(desk) = programs() else { return };
        for command in commands {
            let said = desk.world.call(["run", "-q", "--session", "s", "--", "sh", "-c", command]).user(USER, USER).run().ok();
            assert!(!said.stderr().contains("capability"), "{commands:?}: {said}");
        }
        desk.before.assert_same(&desk.world.manifest(), "held");
        desk.recant("commit s").ok();
        let after = desk.world.manifest();
        names(bare.world.manifest()).assert_same(&names(after.clone()), &format!("{commands:?}"));
        for (verb, want) in [("rollback", &desk.before), ("redo", &after), ("rollback", &desk.before)] {
            desk.recant(&format!("{verb} s")).ok();
            want.assert_same(&desk.world.manifest(), &format!("{commands:?}: {verb}"));
            desk.world.assert_tidy(&format!("{commands:?}: {verb}"));
        }
    }
}

#[test]
fn a_program_that_was_renamed_and_got_another_mode_in_one_run_is_named_as_it_loses_its_capability() {
    let Some(mut desk) = programs() else { return };
    let said = desk.call("run -q -- sh").stdin("mv program moved; chmod 700 moved").run().ok();
    assert!(said.stderr().contains("tree/moved: its capability counts in namespaces of yours alone"), "{said}");
    desk.id = "last".into();
    desk.round_trip("renamed and changed", whole);
}

#[test]
fn a_program_that_somebody_changed_after_a_run_had_linked_it_is_a_conflict() {
    for change in ["echo y > program", "rm program", "chmod 700 program"] {
        let Some(desk) = programs() else { return };
        desk.recant("run -q -- ln program linked").ok();
        desk.world.program("sh", ["-c", change]).user(USER, USER).run().ok();
        let said = desk.recant("commit last").with(3);
        assert!(said.stderr().contains("tree/linked: it is a hard link to"), "{change}: {said}");
        assert!(!desk.world.exists("linked"), "{change}");
    }
}

#[test]
fn a_name_that_a_run_gave_a_program_is_committed_alone_and_the_old_one_goes_later() {
    let Some(desk) = programs() else { return };
    desk.recant("run -q -n s -- mv program moved").ok();
    desk.recant("commit s moved").ok();
    let both = desk.world.manifest();
    assert_eq!(both.0[&b"moved"[..]].group, both.0[&b"program"[..]].group, "{both}");
    desk.recant("commit s program").ok();
    assert!(!desk.world.exists("program"));
    assert_eq!(desk.world.manifest().0[&b"moved"[..]].xattrs, both.0[&b"moved"[..]].xattrs);
}

#[test]
fn a_program_with_a_capability_of_which_its_owner_could_keep_only_a_copy_stays() {
    let Some(mut desk) = Desk::apart(|world| _ = world.write("program", "x"), &[]).filter(|_| is_root()) else { return };
    desk.world.program("setcap", ["cap_net_raw+ep", "program"]).run().ok();
    let said = desk.stage(&["delete ID program"]).recant("commit ID").with(1);
    assert!(
        said.stderr().contains("tree/program: the object there, of which the store can keep only a copy, has a capability"),
        "{said}"
    );
    desk.assert_undone("refused");
}

#[test]
fn a_commit_and_its_way_back_that_are_killed_while_a_program_gets_a_further_name_are_all_done_or_not_begun() {
    let scene = || {
        let mut desk = programs()?;
        desk.id = "s".into();
        desk.call("run -q -n s -- sh").stdin("mv program moved; ln d/inner linked; cat second > s; mv s second").run().ok();
        Some(desk)
    };
    for verb in [COMMIT, ROLLBACK, REDO] {
        killed_at_any_step(verb, &scene, whole, |desk| desk.world.exists("moved") != desk.world.exists("program"));
    }
}
