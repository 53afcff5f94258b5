//! Something is mounted below ~ or /tmp: an ordinary user's command does beside it what it does bare, and that is held.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::sh;
use crate::common::{Manifest, manifest};
use crate::desk::{Desk, USER, Who, has, is_root, settled};
use crate::killed;
use crate::mounts::own_mounts;

/// What a place has in it, but for mounts.
const MADE: &str = "echo a > file; echo a > edited; echo g > gone; echo m > moved; echo m > mode; chmod 640 mode; ln -s file link; mkfifo fifo; \
    echo l > linked; ln linked name; setfattr -n user.kept -v 1 file; mkdir -p dir/sub dir/whole/deep closed .deep/dir; echo i > dir/inside; echo g > dir/gone; echo o > dir/old; \
    echo w > dir/whole/deep/w; echo d > .deep/file; echo i > .deep/dir/inside; chmod 555 closed; touch -d 2001-02-03 file timed dir .deep";

/// What a command does beside the mounts.
const DONE: &str = "f=$(mktemp ./XXXXXX); rm $f; echo more >> file; sed -i s/a/b/ edited; rm gone; mv moved renamed; chmod 600 mode; ln -sf edited link; \
    setfattr -n user.new -v 1 edited; touch -d 2005-05-05 timed; mkdir -p new/deep; echo n > new/deep/n; mv new newer; echo x > created; ln created second; \
    rm fifo; echo more >> dir/inside; rm dir/gone; mv dir/old dir/renamed; mkdir dir/made; echo y > dir/sub/y; rm -r dir/whole; \
    cp -p file dir/copied; chmod 700 dir; chmod 755 closed; echo more >> .deep/file; echo n > .deep/new; rm .deep/dir/inside; true";

/// A user's home and /tmp, each of its own, with things in them and mounts below.
struct Places {
    desk: Desk,
    home: PathBuf,
    tmp: PathBuf,
    _own: tempfile::TempDir,
}

impl Places {
    /// `None` where mounts cannot be had.
    fn new() -> Option<Self> {
        if !is_root() || !has("setfattr") {
            println!("skipped: mounts below ~ and /tmp: mounting needs root");
            return None;
        }
        own_mounts();
        let own = tempfile::Builder::new().prefix("recant-below-").tempdir_in("/var/tmp").unwrap();
        sh(&format!(
            "cd {}; chmod 755 .; mkdir tmp mnt; chmod 1777 tmp; mount --bind tmp /tmp; mount --bind mnt /mnt",
            own.path().display()
        ));
        let desk = Desk::on(Who::User, Path::new("/mnt"));
        // So that the home is a place by itself.
        sh(&format!("chown root {0}; chmod 775 {0}", desk.world.root().display()));
        let (home, tmp) = (desk.world.root().join("home"), PathBuf::from("/tmp"));
        let places = Self { desk, home, tmp, _own: own };
        for place in places.all() {
            places.desk.bare(place, &format!("{MADE}; mkdir disk .deep/doc"));
        }
        places.mount();
        Some(places)
    }

    fn all(&self) -> [&Path; 2] {
        [&self.home, &self.tmp]
    }

    /// A tmpfs and a FUSE file system in each place.
    fn mount(&self) {
        for place in self.all() {
            let fuse = if has("bindfs") { "bindfs -o allow_other dir/sub .deep/doc" } else { "mount --bind dir/sub .deep/doc" };
            sh(&format!(
                "cd {}; mount -t tmpfs disk disk; echo on > disk/on; touch -d 2001-01-01 disk/on disk; chown -R {USER} disk; {fuse}",
                place.display()
            ));
        }
    }

    fn umount(&self) {
        for place in self.all() {
            sh(&format!("cd {}; umount disk; umount .deep/doc", place.display()));
        }
    }

    /// /tmp's own time aside: it is root's, and no user can set it back.
    fn manifests(&self) -> [Manifest; 2] {
        self.all().map(|place| {
            let mut found = manifest(place);
            found.0.retain(|name, row| name != b"." || row.owner.0 == USER);
            found
        })
    }

    fn assert_same(&self, wanted: &[Manifest; 2], what: &str) {
        for (now, wanted) in self.manifests().iter().zip(wanted) {
            now.assert_same(wanted, what);
        }
    }

    /// A script for both places, one after the other.
    fn in_both(&self, script: &str) -> String {
        self.all().map(|place| format!("cd {} && {{ {script}; }}", place.display())).join("\n")
    }

    /// The last session's paths, absolute.
    fn changed(&self) -> Vec<String> {
        let ids = self.desk.ids();
        let said = self.desk.recant(&format!("diff {} --name-only", ids.last().unwrap())).ok().stdout();
        said.lines().map(|path| format!("/{}", path.trim_start_matches('/'))).collect()
    }

    fn path(&self, place: &Path, name: &str) -> String {
        place.join(name).display().to_string()
    }
}

/// What serves a FUSE file system lives as long as its mount, and the mounts as long as that.
impl Drop for Places {
    fn drop(&mut self) {
        for place in self.all() {
            sh(&format!("cd {}; umount -l disk || true; umount -l .deep/doc || true", place.display()));
        }
    }
}

#[test]
fn beside_mounts_below_home_and_tmp_a_user_s_command_does_what_it_does_bare() {
    let Some(places) = Places::new() else { return };
    let desk = &places.desk;
    let before = places.manifests();
    let since = SystemTime::now();
    let said = desk.run(&places.in_both(DONE)).ok();
    assert!(!said.stderr().contains("Read-only") && !said.stderr().contains("busy"), "{said}");
    places.assert_same(&before, "held");
    let id = desk.id();
    desk.recant(&format!("commit {id}")).ok();
    let done = places.manifests();
    desk.recant(&format!("rollback {id}")).ok();
    places.assert_same(&before, "rolled back");
    desk.recant(&format!("redo {id}")).ok();
    places.assert_same(&done, "redone");
    desk.recant(&format!("rollback {id}")).ok();
    places.all().into_iter().for_each(|place| desk.bare(place, DONE));
    for (bare, done) in places.manifests().into_iter().zip(done) {
        settled(bare, since).assert_same(&settled(done, since), "as bare");
    }
}

#[test]
fn what_is_mounted_is_seen_and_read_only_and_directories_beside_it_stay_where_they_are() {
    let Some(places) = Places::new() else { return };
    let desk = &places.desk;
    sh(&places.in_both(
        "echo theirs > theirs; chmod 644 theirs; mkdir roots; head -c 17825792 /dev/urandom > large; chown 54321:54321 large",
    ));
    let before = places.manifests();
    let script = "cat disk/on .deep/doc/../file theirs; head -c 1 large > /dev/null; echo x > disk/new || echo mount; echo x > .deep/doc/new || echo fuse; \
        echo x >> theirs || echo theirs; echo x >> large || echo large; mv dir elsewhere || echo dir; rmdir roots || echo roots; rmdir disk || echo disk; \
        mv file dir/file; mv dir/inside .";
    let said = desk.run(&places.in_both(script)).ok();
    let each = "on\nd\ntheirs\nmount\nfuse\ntheirs\nlarge\ndir\nroots\ndisk\n";
    assert_eq!(said.stdout(), format!("{each}{each}"), "{said}");
    places.assert_same(&before, "held");
    for place in places.all() {
        let names = ["file", "dir/inside", "inside", "dir/file"];
        let wanted: Vec<String> = names.iter().map(|name| places.path(place, name)).collect();
        let changed = places.changed();
        assert!(wanted.iter().all(|path| changed.contains(path)) && changed.len() == 8, "{changed:?}");
    }
    // What is read-only for that is told where a command tries to write there, and nowhere else.
    desk.recant(&format!("discard {}", desk.id())).ok();
    let large = places.path(&places.home, "large");
    let said = desk.run(&format!("echo x >> {large}"));
    assert!(
        said.stderr().contains(&format!("{large}: not held, so read-only for the command; --pass {large} leaves it real\n")),
        "{said}"
    );
    assert_eq!(desk.run("true").ok().stderr(), "recant: no file change\n");
    // Asked, doctor tells each time, and of all of it.
    let rows = desk.recant("doctor --json").ok().json()["coverage"].clone();
    let row = |path: String| {
        rows.as_array().unwrap().iter().find(|row| row["path"] == path).map(ToString::to_string).unwrap_or_default()
    };
    for place in places.all() {
        assert!(row(place.display().to_string()).contains("cannot be renamed or removed"), "{rows}");
        assert!(row(places.path(place, "disk")).contains("read_only"), "{rows}");
        assert!(row(places.path(place, ".deep/doc")).contains("read_only"), "{rows}");
        assert!(row(places.path(place, "large")).contains("--pass"), "{rows}");
    }
    // What is named for itself is held, and what is passed is real.
    desk.world.config(&format!("capture.also = [\"{}\"]", places.path(&places.home, "disk")));
    desk.held("", "echo x > ~/disk/new").run().ok();
    assert_eq!(places.changed(), [places.path(&places.home, "disk/new")]);
    desk.held(&format!("--pass {large} --discard"), "echo real >> ~/large").run().ok();
    assert!(std::fs::read(&large).unwrap().ends_with(b"real\n"));
}

#[test]
fn of_mounts_below_home_a_run_tells_nothing() {
    let Some(places) = Places::new() else { return };
    let desk = &places.desk;
    let long = "a-directory-with-a-long-name/and-another-one-in-it";
    desk.bare(&places.home, &format!("mkdir -p {long}"));
    sh(&format!("mount -t tmpfs long {}", places.path(&places.home, long)));
    let said = desk.held("", "true").run().ok();
    sh(&format!("umount {}", places.path(&places.home, long)));
    assert_eq!(said.stderr(), "recant: no file change\n");
}

#[test]
fn a_session_goes_on_whether_the_mounts_are_gone_or_came() {
    let Some(places) = Places::new() else { return };
    let desk = &places.desk;
    for mounted_first in [true, false] {
        let (first, then) = if mounted_first { ("mounted", "not") } else { ("not", "mounted") };
        if !mounted_first {
            places.umount();
        }
        let before = places.manifests();
        desk.run(&places.in_both(
            "echo one >> file; echo one >> dir/inside; rm gone; mkdir new; echo n > new/n; rm -r dir/whole; echo d > .deep/dir/d",
        ))
        .ok();
        let id = desk.ids().last().unwrap().clone();
        if mounted_first {
            places.umount()
        } else {
            places.mount()
        }
        let script = "cat file dir/inside new/n .deep/dir/d; test ! -e gone; test ! -e dir/whole; echo two >> file; echo two >> dir/inside; echo two >> new/n; rm edited; echo 2 > .deep/two";
        let said = desk.held(&format!("--session {id}"), &places.in_both(script)).run().ok();
        let lines = said.stdout();
        assert_eq!(lines.matches("a\none\ni\none\nn\nd\n").count(), 2, "{first}, then {then}: {said}");
        // And once more, as it was at first.
        if mounted_first {
            places.mount()
        } else {
            places.umount()
        }
        let said = desk
            .held(&format!("--session {id}"), &places.in_both("tail -qn1 file dir/inside new/n; cat .deep/two; ls edited"))
            .run();
        assert!(said.status != 0 && said.stdout() == "two\ntwo\ntwo\n2\n".repeat(2), "{said}");
        before.iter().zip(places.manifests()).for_each(|(before, now)| before.assert_same(&now, "held"));
        desk.recant(&format!("commit {id}")).ok();
        for place in places.all() {
            let read = |name: &str| std::fs::read_to_string(place.join(name)).unwrap();
            assert_eq!(
                (read("file"), read("dir/inside"), read("new/n")),
                ("a\none\ntwo\n".into(), "i\none\ntwo\n".into(), "n\ntwo\n".into())
            );
            assert!(!place.join("gone").exists() && !place.join("dir/whole").exists() && !place.join("edited").exists());
        }
        desk.recant(&format!("rollback {id}")).ok();
        places.assert_same(&before, "rolled back");
    }
}

/// The session holds a change where something is mounted by now.
#[test]
fn a_mount_over_what_a_session_holds_ends_the_next_run_before_it_starts() {
    let Some(places) = Places::new() else { return };
    let desk = &places.desk;
    desk.run("echo x > ~/dir/sub/x; echo y > ~/file").ok();
    let id = desk.id();
    let sub = places.path(&places.home, "dir/sub");
    sh(&format!("mount -t tmpfs over {sub}"));
    let said = desk.held(&format!("--session {id}"), "true").run().with(125);
    assert!(said.stderr().contains(&format!("umount {sub}")), "{said}");
    sh(&format!("umount {sub}"));
    let said = desk.held(&format!("--session {id}"), "cat ~/dir/sub/x ~/file").run().ok();
    assert_eq!(said.stdout(), "x\ny\n");
}

#[test]
fn what_somebody_else_does_meanwhile_is_a_conflict_where_the_command_did_something_and_else_nothing() {
    let Some(places) = Places::new() else { return };
    let desk = &places.desk;
    let theirs = "echo theirs >> file; echo theirs >> edited; rm gone; mkdir later; rmdir closed; chmod 700 dir/sub; chmod 711 dir; rm -r .deep/dir; echo t > timed";
    for (mine, wanted) in [("true", &[][..]), ("echo mine >> file; rm edited", &["edited", "file"])] {
        for place in places.all() {
            desk.bare(place, &format!("chmod -R u+rwx .deep dir; rm -rf dir/* .deep/dir later closed file edited gone name linked link fifo moved mode timed; {MADE}", ));
        }
        let waiting = desk.start("", &format!("{}; echo ready; read go", places.in_both(mine)));
        places.all().into_iter().for_each(|place| desk.bare(place, theirs));
        let before = places.manifests();
        waiting.go();
        places.assert_same(&before, "held");
        if wanted.is_empty() {
            assert_eq!(desk.ids(), Vec::<String>::new());
            continue;
        }
        let wanted: Vec<String> =
            places.all().into_iter().flat_map(|place| wanted.iter().map(|name| places.path(place, name))).collect();
        assert_eq!(places.changed(), wanted);
        let said = desk.recant(&format!("commit {}", desk.id())).with(3);
        let named = |name: &str| said.stderr().lines().filter(|line| line.contains(&format!("/{name}:"))).count();
        assert_eq!((named("file"), named("edited")), (2, 2), "{said}");
        places.assert_same(&before, "not committed");
    }
}

#[test]
fn a_directory_that_a_run_left_alone_is_no_change_of_the_next_one_in_the_session() {
    let Some(places) = Places::new() else { return };
    let desk = &places.desk;
    desk.run("echo one >> ~/file").ok();
    let id = desk.id();
    // Nothing is in the upper but what is held.
    let upper = desk.world.session(&id).join("held/upper");
    let below: Vec<PathBuf> =
        walkdir::WalkDir::new(&upper).min_depth(2).into_iter().map(|found| found.unwrap().into_path()).collect();
    assert!(below.len() == 1 && below[0].ends_with("file"), "{below:?}");
    desk.bare(&places.home, "rmdir closed dir/sub 2>/dev/null; chmod 711 dir; touch dir/theirs");
    desk.held(&format!("--session {id}"), "test ! -e ~/closed && test -e ~/dir/theirs && echo two >> ~/file").run().ok();
    assert_eq!(places.changed(), [places.path(&places.home, "file")]);
    desk.recant(&format!("commit {id}")).ok();
    assert_eq!(std::fs::metadata(places.home.join("dir")).unwrap().mode() & 0o777, 0o711);
}

#[test]
fn what_was_written_beside_a_mount_when_recant_was_killed_is_kept() {
    let Some(places) = Places::new() else { return };
    let desk = &places.desk;
    let before = places.manifests();
    let waiting =
        desk.start("", &format!("{}; echo ready; sleep 1000", places.in_both("echo mine >> file; echo mine >> dir/inside")));
    killed(desk, waiting);
    let id = desk.id();
    assert_eq!(places.changed().len(), 4);
    places.assert_same(&before, "held");
    desk.recant(&format!("commit {id} -y")).ok();
    desk.recant(&format!("rollback {id}")).ok();
    places.assert_same(&before, "rolled back");
}

/// A project is one overlay where no mount lies in it, whatever is mounted beside it; each directory costs one mount.
#[test]
fn a_project_beside_a_mount_is_one_overlay_and_each_directory_costs_one_mount() {
    let Some(places) = Places::new() else { return };
    let desk = &places.desk;
    desk.bare(&places.home, "mkdir -p src/app/.git src/app/lib src/other; for i in $(seq 100); do mkdir d$i; done");
    let app = places.home.join("src/app");
    let script = "mkdir a; echo x > a/x; mv a lib/b; ln lib/b/x x; mv lib/b ../other/c; mv ../other/c .; stat -c %m .; grep -c \" $HOME/\" /proc/self/mountinfo";
    let said = desk.held("", script).cwd(&app).run().ok();
    let out = said.stdout();
    let (point, count) = out.trim().split_once('\n').unwrap();
    assert_eq!(point, places.path(&places.home, "src"), "{said}");
    // d1 to d100, src, dir, closed, .deep, .deep/dir, and two mounts twice: what they cover is there, too.
    assert!(count.parse::<u32>().unwrap() <= 109, "{said}");
    desk.recant(&format!("commit {}", desk.id())).ok();
    assert_eq!(std::fs::read_to_string(app.join("c/x")).unwrap(), "x\n");
}

#[test]
fn the_files_beside_mounts_that_are_copied_are_limited_for_the_run_and_not_for_each_directory() {
    let Some(places) = Places::new() else { return };
    let desk = &places.desk;
    for place in places.all() {
        desk.bare(place, "for i in 1 2 3; do head -c 14M /dev/zero > large$i; done");
    }
    let script = "for f in large*; do echo x >> $f && echo held; done";
    let said = desk.run(&places.in_both(script));
    // Four of them are 56 MiB, one more would be 70.
    assert_eq!(said.stdout().matches("held").count(), 4, "{said}");
    assert!(said.stderr().contains("/large2: not held, so read-only for the command; --pass "), "{said}");
}

/// Of more directories than a run can mount the rest is read-only, and named.
#[test]
fn of_very_many_directories_those_changed_last_and_the_project_s_are_held() {
    let Some(places) = Places::new() else { return };
    let desk = &places.desk;
    desk.bare(&places.tmp, "for i in $(seq 430); do mkdir d$i; done; mkdir -p old/project; touch -d 2001-01-01 d1 d2 d3 old");
    let script = "echo x > /tmp/d430/x; echo x > made; echo x > /tmp/new; echo x > /tmp/d1/x || echo read-only";
    let said = desk.held("", script).cwd("/tmp/old/project").run().ok();
    assert_eq!(said.stdout(), "read-only\n", "{said}");
    assert!(
        said.stderr().contains("/tmp/d1/x: not held, so read-only for the command; capture.also = ['/tmp/d1'] holds it\n"),
        "{said}"
    );
    assert_eq!(places.changed(), ["/tmp/d430/x", "/tmp/new", "/tmp/old/project/made"]);
}

#[test]
fn a_mount_below_a_place_can_be_taken_away_by_nothing_inside_and_no_upper_is_reached_past_an_overlay() {
    let Some(places) = Places::new() else { return };
    let desk = &places.desk;
    let before = places.manifests();
    let script = "for point in . dir .deep .deep/dir disk .deep/doc; do umount $point && echo ESCAPED umount; umount -l $point && echo ESCAPED lazy; \
        unshare -Urm sh -c \"umount $point || mount --move $point /mnt \" && echo ESCAPED $point; done; for point in . .deep; do unshare -Urm mount --bind $point /mnt && echo ESCAPED uncovered; done; \
        for point in disk .deep/doc; do unshare -Urm mount -o remount,bind,rw $point && echo ESCAPED rw; done; echo x > disk/x && echo ESCAPED disk; true";
    let said = desk.run(&places.in_both(&format!("exec 2>/dev/null; {script}"))).ok();
    assert!(!said.stdout().contains("ESCAPED"), "{said}");
    places.assert_same(&before, "held");
}

/// A user namespace copies up no directory of a group that it has not mapped: such a project is a place by itself, also beside a mount.
#[test]
fn a_project_of_another_group_beside_a_mount_is_a_place_by_itself_in_each_run_of_a_session() {
    let Some(places) = Places::new() else { return };
    let (desk, home) = (&places.desk, &places.home);
    let site = home.join("site");
    desk.bare(home, "mkdir -p site/.git site/sub; echo old > site/f");
    sh(&format!("chgrp 33 {0} {0}/f && chmod 755 {0}", site.display()));
    let run = |script: &str| desk.call(["run", "--session", "s", "--", "sh", "-c", script]).cwd(&site).run().ok();
    run("echo new > made; echo more > sub/x");
    run("cat made; echo second > later");
    // Nothing needs that place any more once the group is the user's: what the first run held is still seen, and gone on with.
    sh(&format!("chgrp -R {USER} {}", site.display()));
    let said = run("cat made later; echo third > made");
    assert_eq!(said.stdout(), "new\nsecond\n", "{said}");
    places.umount();
    let said = run("cat made; echo fourth > last");
    assert_eq!(said.stdout(), "third\n", "{said}");
    desk.call(["commit", "s"]).cwd(&site).run().ok();
    let all = ["made", "later", "last", "sub/x"].map(|name| std::fs::read_to_string(site.join(name)).unwrap());
    assert_eq!(all, ["third\n", "second\n", "fourth\n", "more\n"]);
    desk.call(["rollback", "s"]).cwd(&site).run().ok();
    assert!(!site.join("made").exists() && site.join("f").exists());
}

/// A place that is the user's later, above the one that an earlier run held, takes nothing over from it.
#[test]
fn what_an_earlier_run_held_stays_where_it_was_whatever_is_captured_above_it_by_now() {
    if !is_root() {
        return println!("skipped: a directory outside of the user's places is made by root");
    }
    let desk = Desk::on(Who::User, Path::new("/var/tmp"));
    let top = tempfile::Builder::new().prefix("recant-srv-").tempdir_in("/srv").unwrap();
    sh(&format!("cd {} && chmod 755 . && mkdir -p w/app/.git w/lib && chown -R {USER}:{USER} w/*", top.path().display()));
    let app = top.path().join("w/app");
    let run = |script: &str| desk.call(["run", "--session", "u", "--", "sh", "-c", script]).cwd(&app).run();
    run("echo first > t").ok();
    sh(&format!("chown {USER}:{USER} {}/w", top.path().display()));
    let said = run("cat t; echo second > s; echo l > ../lib/l").ok();
    assert_eq!(said.stdout(), "first\n", "{said}");
    desk.call(["commit", "u"]).cwd(&app).run().ok();
    let read = |name: &str| std::fs::read_to_string(top.path().join("w").join(name)).unwrap();
    assert_eq!([read("app/t"), read("app/s"), read("lib/l")], ["first\n", "second\n", "l\n"]);
}
