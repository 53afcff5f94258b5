//! The capture room, driven through `tests/capture/program.rs` as a process of its own: it forks, which a test's process with
//! its threads must not. Each test runs as root and as an ordinary user; without root the user's half alone.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use recant::internals::{Change, DirectoryTime, Sort};

use crate::common::until;

/// An ordinary user that needs no line in /etc/passwd.
const USER: u32 = 54_321;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Who {
    Root,
    User,
}

/// A home, a project in it, and a store, of one user.
struct World {
    directory: tempfile::TempDir,
    who: Who,
    program: PathBuf,
    /// Runs in a mount namespace of its own, after this line of sh: for mounts. Root alone.
    mounts: Option<String>,
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Both users where there can be two; what is left out is said.
fn each(test: impl Fn(&World)) {
    if is_root() {
        test(&World::new(Who::Root));
    } else {
        eprintln!("skipped for root: the tests do not run as root");
    }
    test(&World::new(Who::User));
}

impl World {
    fn new(who: Who) -> Self {
        Self::on(who, &std::env::temp_dir())
    }

    fn on(who: Who, directory: &Path) -> Self {
        let directory = tempfile::Builder::new().prefix("recant-capture-").tempdir_in(directory).unwrap();
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(directory.path(), mode.clone()).unwrap();
        // Copied: the build directory may not be open to the other user.
        let built = std::env::current_exe().unwrap();
        let built = built.parent().unwrap().parent().unwrap().join("examples/capture");
        let program = directory.path().join("capture");
        // By a program of its own: a copy that is open here for writing while another thread forks is 'text file busy'.
        let copied = std::process::Command::new("cp").arg(built).arg(&program).status().unwrap().success();
        assert!(copied, "tests/capture/program.rs is not built: cargo build --examples --features crash-points");
        std::fs::set_permissions(&program, mode).unwrap();
        let world = Self { directory, who, program, mounts: None };
        for name in ["home", "home/project", "home/store"] {
            std::fs::create_dir(world.path(name)).unwrap();
        }
        world.give("home");
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn project(&self, name: &str) -> PathBuf {
        self.path("home/project").join(name)
    }

    fn store(&self, name: &str) -> PathBuf {
        self.path("home/store").join(name)
    }

    /// Gives all below to the world's user.
    fn give(&self, name: &str) {
        if self.who == Who::User && is_root() {
            let owner = format!("{USER}:{USER}");
            assert!(Command::new("chown").args(["-hR", &owner]).arg(self.path(name)).status().unwrap().success());
        }
    }

    /// Lets sh make the project's files, as the world's user.
    fn made(self: &World, script: &str) {
        let mut command = self.as_user("sh", &["-c", script]);
        assert!(command.status().unwrap().success(), "{script}");
        // What is made in the same tick as the run's start is not told from a change during the run.
        std::thread::sleep(Duration::from_millis(25));
    }

    fn as_user(&self, program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Command {
        let setpriv = self.who == Who::User && is_root();
        let ids = [format!("--reuid={USER}"), format!("--regid={USER}"), "--clear-groups".into()];
        let mut command = match (&self.mounts, setpriv) {
            (Some(mounts), _) => {
                let mut command = Command::new("unshare");
                command.args(["-m", "sh", "-c", &format!("{mounts}\nexec \"$@\""), "sh"]);
                if setpriv {
                    command.arg("setpriv").args(&ids);
                }
                command.arg(program);
                command
            }
            (None, true) => {
                let mut command = Command::new("setpriv");
                command.args(&ids).arg(program);
                command
            }
            (None, false) => Command::new(program),
        };
        command.args(arguments).current_dir(self.path("home/project"));
        command.env_clear().env("HOME", self.path("home")).env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
        command
    }

    fn capture(&self, arguments: &[&str]) -> Command {
        let store = self.path("home/store");
        self.as_user(&self.program, &[&[store.to_str().unwrap()], arguments].concat())
    }

    fn run(&self, script: &str) -> Output {
        self.capture(&["--", "sh", "-c", script]).output().unwrap()
    }

    /// Runs and asserts that the command ended well.
    fn ran(&self, script: &str) -> String {
        let output = self.run(script);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{:?}: {script}\n{said}{}", self.who, String::from_utf8_lossy(&output.stdout));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn start(&self, script: &str) -> Child {
        let mut command = self.capture(&["--", "sh", "-c", script]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn changes(&self) -> Vec<Change> {
        lines(&self.store("changes")).iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn times(&self) -> Vec<DirectoryTime> {
        lines(&self.store("times")).iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The changes below the project, name and sort.
    fn sorts(&self) -> BTreeMap<String, Sort> {
        let project = self.path("home/project");
        let below = |change: Change| {
            let sort = change.sort();
            let path = change.path.as_path().strip_prefix(&project).ok()?.to_string_lossy().into_owned();
            Some((path, sort))
        };
        self.changes().into_iter().filter_map(below).collect()
    }

    /// All changes, by whole path.
    fn all_sorts(&self) -> BTreeMap<PathBuf, Sort> {
        self.changes().into_iter().map(|change| (change.path.as_path().to_owned(), change.sort())).collect()
    }

    fn change(&self, name: &str) -> Change {
        let path = self.project(name);
        self.changes().into_iter().find(|change| change.path.as_path() == path).unwrap_or_else(|| panic!("no change of {name}"))
    }
}

fn lines(file: &Path) -> Vec<String> {
    std::fs::read_to_string(file).unwrap_or_default().lines().map(ToOwned::to_owned).collect()
}

fn sorts(of: &[(&str, Sort)]) -> BTreeMap<String, Sort> {
    of.iter().map(|(name, sort)| ((*name).to_owned(), *sort)).collect()
}

#[test]
fn what_a_command_changes_is_held_and_the_tree_stays() {
    each(|world| {
        world.made(
            "echo a > edited; echo b > deleted; mkdir -p full/deep empty; echo c > full/deep/file; echo d > full/one; \
             ln -s edited link; mkfifo pipe; echo e > moded; mkdir kept; echo f > renamed; touch was-empty",
        );
        let list = "find . -printf '%p %y %m %s %T@ %i %l\\n' | sort";
        let before = world.as_user("sh", &["-c", list]).output().unwrap().stdout;
        world.ran(
            "echo more >> edited; rm deleted; rm -r full; mkdir made made/empty; echo n > made/file; ln -sf other link; \
             rm pipe; mkfifo pipe2; chmod 600 moded; mv renamed kept/renamed; rmdir empty; echo file > empty; echo x > was-empty",
        );
        assert_eq!(world.as_user("sh", &["-c", list]).output().unwrap().stdout, before, "{:?}", world.who);
        use Sort::{Created, Deleted, Metadata, Modified};
        assert_eq!(
            world.sorts(),
            sorts(&[
                ("deleted", Deleted),
                ("edited", Modified),
                ("empty", Modified),
                ("full", Deleted),
                ("full/deep", Deleted),
                ("full/deep/file", Deleted),
                ("full/one", Deleted),
                ("kept/renamed", Created),
                ("link", Modified),
                ("made", Created),
                ("made/empty", Created),
                ("made/file", Created),
                ("moded", Metadata),
                ("pipe", Deleted),
                ("pipe2", Created),
                ("renamed", Deleted),
                ("was-empty", Modified),
            ]),
            "{:?}",
            world.who
        );
        // Path order, and no marks: nobody else was there.
        let changes = world.changes();
        assert!(changes.is_sorted_by(|a, b| a.path < b.path));
        assert!(changes.iter().all(|change| !change.marks.foreign && !change.marks.link_broken), "{changes:#?}");
        assert!(changes.iter().zip(1..).all(|(change, n)| change.n == n));
        let times = world.times();
        assert!(times.iter().any(|time| time.path.as_path() == world.project("kept")), "{times:?}");
    });
}

#[test]
fn only_net_changes_are_changes() {
    each(|world| {
        world.made("echo a > chmodded; echo b > opened; echo c > rewritten; echo d > touched; echo e > copied; mkdir directory");
        world.ran(
            "touch made; rm made; chmod 600 chmodded; chmod 644 chmodded; : <> opened; echo c > rewritten; touch touched; \
             cp -p copied x; mv x copied; touch directory/x; rm directory/x",
        );
        use Sort::Times;
        assert_eq!(world.sorts(), sorts(&[("rewritten", Times), ("touched", Times)]), "{:?}", world.who);
        assert!(world.times().iter().any(|time| time.path.as_path() == world.project("directory")));
    });
}

#[test]
fn a_directory_removed_and_made_again_holds_only_what_is_new() {
    each(|world| {
        world.made("mkdir -p f/old f/sub; echo a > f/same; echo b > f/gone; echo c > f/sub/x; touch -d 2001-01-01 f/same");
        world.ran("cp -p f/same s; rm -r f; mkdir -p f/sub; mv s f/same; echo n > f/new; echo y > f/sub/y");
        use Sort::{Created, Deleted};
        assert_eq!(
            world.sorts(),
            sorts(&[("f/gone", Deleted), ("f/new", Created), ("f/old", Deleted), ("f/sub/x", Deleted), ("f/sub/y", Created),]),
            "{:?}",
            world.who
        );
    });
}

#[test]
fn what_somebody_else_changed_during_the_run_is_marked() {
    each(|world| {
        world.made("for f in edited mine deleted copied untouched; do echo $f > $f; done; mkdir directory");
        let mut run = world.start("echo up > up; read go; echo x >> mine; echo x >> edited; rm deleted; echo x > made; echo x > directory/in; echo x >> copied; chmod 600 untouched");
        until("the command", || find(&world.store("upper"), "up"));
        std::fs::write(world.project("edited"), "theirs").unwrap();
        std::fs::write(world.project("deleted"), "theirs").unwrap();
        std::fs::write(world.project("made"), "theirs").unwrap();
        std::fs::write(world.project("directory/other"), "theirs").unwrap();
        world.give("home/project");
        use std::io::Write;
        run.stdin.take().unwrap().write_all(b"\n").unwrap();
        assert!(run.wait().unwrap().success());
        for (name, foreign) in [("edited", true), ("deleted", true), ("made", true), ("directory/in", false)] {
            assert_eq!(world.change(name).marks.foreign, foreign, "{name}, {:?}", world.who);
        }
        if world.who == Who::Root {
            // As the user, `give` changed every ctime.
            assert!(!world.change("mine").marks.foreign && !world.change("untouched").marks.foreign);
        }
    });
}

fn find(top: &Path, name: &str) -> bool {
    walkdir::WalkDir::new(top).into_iter().filter_map(Result::ok).any(|entry| entry.file_name() == name)
}

#[test]
fn a_root_s_whole_tree_is_captured_and_of_a_user_s_nothing_else_can_be_written() {
    each(|world| {
        let script = "for d in /etc /usr/lib /opt /srv /var/log /boot /run; do echo x > $d/recant-test && mv $d/recant-test $d/recant-moved || exit 9; done";
        let (status, held) = (world.run(script).status.code(), world.all_sorts());
        let made = |directory: &str| Path::new(directory).join("recant-moved");
        for directory in ["/etc", "/usr/lib", "/opt", "/srv", "/var/log", "/boot", "/run"] {
            assert!(!made(directory).exists() && !Path::new(directory).join("recant-test").exists(), "{directory}");
            // The path as the kernel has it: /run may be a link, say.
            let is_held = held.contains_key(&Path::new(directory).canonicalize().unwrap().join("recant-moved"));
            assert_eq!(is_held, world.who == Who::Root, "{directory}: {held:?}");
        }
        assert_eq!(status, Some(if world.who == Who::Root { 0 } else { 9 }), "{:?}", world.who);
        let script = "for f in /sys/kernel/mm/recant /proc/sys/recant /dev/recant /sys/fs/cgroup/recant; do mkdir $f && exit 9; done; true";
        assert_eq!(world.run(script).status.code(), Some(0), "{:?}", world.who);
    });
}

/// Root renames between places that are one file system bare, and gets EXDEV nowhere else than there.
#[test]
fn a_rename_across_the_tree_works_in_a_run_of_root_as_bare() {
    if !is_root() {
        return eprintln!("skipped: an ordinary user's places are apart");
    }
    if rustix::fs::stat("/etc").unwrap().st_dev != rustix::fs::stat("/opt").unwrap().st_dev
        || !find(Path::new("/usr/bin"), "perl")
    {
        return eprintln!("skipped: a rename across the tree: /etc and /opt lie apart, or there is no perl");
    }
    // Where /etc lies, too.
    let world = World::on(Who::Root, Path::new("/var/tmp"));
    world.made("mkdir old; echo old > old/file");
    let home = world.path("home/project");
    world.ran(&format!(
        "perl -e 'rename(\"{0}/old\", \"/opt/recant-a\") && rename(\"/opt/recant-a\", \"/etc/recant-b\") or die $!'",
        home.display()
    ));
    assert!(home.join("old/file").exists() && !Path::new("/etc/recant-b").exists());
    let sorts = world.all_sorts();
    let of = |path: &str| sorts.iter().find(|(name, _)| name.ends_with(path)).map(|(_, sort)| *sort);
    assert_eq!((of("project/old"), of("project/old/file")), (Some(Sort::Deleted), Some(Sort::Deleted)), "{sorts:?}");
    assert_eq!((of("etc/recant-b"), of("etc/recant-b/file")), (Some(Sort::Created), Some(Sort::Created)), "{sorts:?}");
}

#[test]
fn background_children_are_waited_for_or_killed() {
    each(|world| {
        let output = world.run("(sleep 2.5; echo late > late) & exit 4");
        assert_eq!(output.status.code(), Some(4));
        assert!(String::from_utf8_lossy(&output.stderr).contains("still running: sh"), "{output:?}");
        assert_eq!(world.sorts(), sorts(&[("late", Sort::Created)]), "{:?}", world.who);
        let start = Instant::now();
        let output = world.capture(&["--kill", "--", "sh", "-c", "(sleep 60; echo late > later) & exit 5"]).output().unwrap();
        assert_eq!(output.status.code(), Some(5));
        assert!(start.elapsed() < Duration::from_secs(20));
    });
}

#[test]
fn a_signal_for_recant_alone_reaches_the_command() {
    each(|world| {
        let run = world.start("trap 'echo got it; exit 7' TERM; echo ready > ready; while :; do sleep 0.05; done");
        until("the command", || find(&world.store("upper"), "ready"));
        rustix::process::kill_process(rustix::process::Pid::from_child(&run), rustix::process::Signal::TERM).unwrap();
        let output = run.wait_with_output().unwrap();
        assert_eq!((output.status.code(), &*output.stdout), (Some(7), &b"got it\n"[..]), "{:?}", world.who);
    });
}

/// A place with a mount below it is put together from what is in it: each of that may be removed, and be made again as something else,
/// while that is under way.
#[test]
fn directories_that_come_and_go_beside_a_mount_stop_no_run_of_a_user() {
    if !is_root() {
        return eprintln!("skipped: mounting needs root");
    }
    let outer = World::new(Who::User);
    let home = outer.path("home");
    std::fs::create_dir(home.join("disk")).unwrap();
    outer.give("home");
    let mounts = Some(format!("mount -t tmpfs disk {} || exit 99", home.join("disk").display()));
    let world = World { mounts, directory: tempfile::TempDir::new().unwrap(), program: outer.program.clone(), ..outer };
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let names: Vec<_> = (0..40).map(|n| home.join(format!("coming-{n}"))).collect();
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                for name in &names {
                    std::fs::create_dir(name).and_then(|()| std::os::unix::fs::chown(name, Some(USER), Some(USER))).unwrap();
                }
                names.iter().for_each(|name| std::fs::remove_dir(name).unwrap());
                // Something else may take the place of each.
                names.iter().for_each(|name| std::fs::write(name, "a file").unwrap());
                names.iter().for_each(|name| std::fs::remove_file(name).unwrap());
            }
        });
        let run = |n: usize| {
            let store = home.join(format!("store{n}"));
            std::fs::create_dir(&store).and_then(|()| std::os::unix::fs::chown(&store, Some(USER), Some(USER))).unwrap();
            let mut command = world.as_user(&world.program, &[store.to_str().unwrap(), "--", "true"]);
            command.env("HOME", &home).current_dir(home.join("project")).output().unwrap()
        };
        let refused: Vec<_> = (0..10).map(run).filter(|output| !output.status.success()).collect();
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(refused.is_empty(), "{} of 10: {:?}", refused.len(), refused[0]);
    });
}

#[test]
fn a_user_without_a_proc_of_its_own_runs_without_pids_of_its_own() {
    if !is_root() {
        return eprintln!("skipped: covering a part of /proc needs root");
    }
    let mut world = World::new(Who::User);
    world.mounts = Some("mount --bind /dev/null /proc/version".into());
    let output = world.run("echo x > file; (sleep 0.3; echo y > late) & echo done");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("without own PIDs"), "{said}");
    assert_eq!(world.sorts(), sorts(&[("file", Sort::Created), ("late", Sort::Created)]));
    let mark = format!("8{}", std::process::id());
    let script = format!("(setsid sleep {mark} &); (setsid sleep {mark} &); sleep 0.2");
    let output = world.capture(&["--kill", "--", "sh", "-c", &script]).output().unwrap();
    assert!(output.status.success());
    assert!(!Command::new("pgrep").args(["-f", &format!("sleep {mark}")]).status().unwrap().success());
}

#[test]
fn a_tree_deeper_than_any_path_is_read_whole() {
    each(|world| {
        // 14 bytes each: more than PATH_MAX.
        let levels = 350;
        let dug = Command::new("python3").arg("--version").output().is_ok();
        if !dug {
            return eprintln!("skipped: python3 makes the deep tree");
        }
        let python = |what: &str| {
            format!(
                "python3 -c \"
import os
{what}
for i in range({levels}):
    os.mkdir('sub-directory'); os.chdir('sub-directory')
open('bottom','w').write('x')
\""
            )
        };
        world.made(&python("os.mkdir('old'); os.chdir('old')"));
        world.ran(&format!("rm -r old; {}", python("os.mkdir('new'); os.chdir('new')")));
        let changes = world.changes();
        let count = |sort| changes.iter().filter(|change| change.sort() == sort).count();
        assert_eq!((count(Sort::Deleted), count(Sort::Created)), (levels + 2, levels + 2), "{:?}", world.who);
    });
}

#[test]
fn what_its_owner_can_not_read_is_collected_too() {
    each(|world| {
        world.made("echo a > shut; chmod 0 shut; echo b > open; mkdir directory; echo c > directory/in");
        world.ran(
            "chmod 0 open; rm -f shut; echo n > new; chmod 0 new; mkdir made; echo m > made/in; chmod 0 made; echo d > directory/more; chmod 0 directory",
        );
        use Sort::{Created, Deleted, Metadata};
        assert_eq!(
            world.sorts(),
            sorts(&[
                ("directory", Metadata),
                ("directory/more", Created),
                ("made", Created),
                ("made/in", Created),
                ("new", Created),
                ("open", Metadata),
                ("shut", Deleted),
            ]),
            "{:?}",
            world.who
        );
        assert_eq!(world.change("made").after.unwrap().meta.mode, 0);
        assert_eq!(world.change("new").after.unwrap().meta.mode, 0);
        world.made("chmod 700 directory");
    });
}

#[test]
fn a_store_on_overlayfs_is_refused_with_what_to_do_and_the_command_is_not_started() {
    if !is_root() {
        return eprintln!("skipped: a store on overlayfs needs root");
    }
    for who in [Who::Root, Who::User] {
        let mut world = World::new(who);
        for name in ["l", "u", "w"] {
            std::fs::create_dir(world.path(name)).unwrap();
        }
        let store = world.path("home/store");
        let (top, uid) = (world.directory.path().display(), if who == Who::User { USER } else { 0 });
        let options = format!("lowerdir={top}/l,upperdir={top}/u,workdir={top}/w");
        let mounts = format!("mount -t overlay o -o {options} {0} && chown {uid}:{uid} {0} || exit 99", store.display());
        world.mounts = Some(mounts);
        let output = world.run("touch /tmp/recant-test-started");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{who:?} {said}");
        assert!(said.contains("export RECANT_STORE=DIR"), "{who:?} {said}");
        assert!(!Path::new("/tmp/recant-test-started").exists());
    }
}

#[test]
fn a_confined_command_writes_below_its_directories_alone_and_no_way_out_is_open() {
    if Command::new("python3").arg("--version").output().is_err() {
        return eprintln!("skipped: python3 tries the ways out");
    }
    // /tmp may be written to.
    for who in [Who::Root, Who::User].into_iter().filter(|who| is_root() || *who == Who::User) {
        let world = World::on(who, Path::new("/var/tmp"));
        world.made("mkdir deep; echo old > deep/file; echo keep > ../outside; mkdir ../beside; echo real > ../beside/real; ln -s ../../outside deep/link");
        let confined = |words: &[&str]| {
            let output = world.capture(&[&["--in", "deep", "--"], words].concat()).output().unwrap();
            (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
        };
        let script = "echo new > deep/new; echo changed > deep/file; mkdir deep/d; mv deep/new deep/d/moved; rm -f /tmp/recant-confined-$$; echo t > /tmp/recant-confined-$$; \
                      rm /tmp/recant-confined-$$; echo null > /dev/null; cat ../outside; \
                      for way in 'echo x > ../outside' 'echo x > made' 'echo x > deep/link' 'rm ../outside' 'mv ../outside deep/' 'ln ../outside deep/hard' 'mkdir ../made' \
                      'truncate -s 0 ../outside' 'mv deep/file ../gone' 'touch /var/tmp/recant-confined' 'mknod deep/disk b 7 0' 'mount -t tmpfs none deep'; do \
                      (eval \"$way\") 2> /dev/null && echo \"ESCAPED by $way\"; done; exit 3";
        let (status, said) = confined(&["sh", "-c", script]);
        // A kernel without Landlock says so, and starts nothing.
        if status == Some(125) && said.contains("Landlock: cannot ask") {
            return eprintln!("skipped: this kernel has no Landlock: {said}");
        }
        assert_eq!(status, Some(3), "{:?}: {said}", world.who);
        assert!(!said.contains("ESCAPED") && said.contains("keep\n"), "{:?}: {said}", world.who);
        assert!(said.contains("not denied: ") && said.contains("mode, owner, times"), "what can't be denied is said: {said}");
        let read = |name: &str| std::fs::read_to_string(world.project(name)).unwrap();
        assert_eq!(
            (read("deep/file"), read("deep/d/moved"), read("../outside")),
            ("changed\n".into(), "new\n".into(), "keep\n".into())
        );

        let attempts = world.path("attempts.py");
        std::fs::write(&attempts, include_str!("escapes/attempts.py")).unwrap();
        // By their real users: a process outside of the same one, this test, and pid 1.
        let mut outside = world.as_user("sh", &["-c", "exec 3< . 4>> ../beside/real; echo started; read end"]);
        let mut outside = outside.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        std::io::Read::read_exact(outside.stdout.as_mut().unwrap(), &mut [0; 8]).unwrap();
        let socket = world.path("listening");
        let _listening = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o777)).unwrap();
        let (beside, store) = (world.path("home/beside"), world.path("home/store"));
        let pids = [outside.id(), std::process::id(), 1].map(|pid| pid.to_string());
        let paths = [&attempts, &beside, &store, &socket].map(|path| path.to_str().unwrap());
        let words = [&["/usr/bin/python3"], &paths[..], &pids.each_ref().map(String::as_str)[..]].concat();
        let (status, said) = confined(&words);
        outside.kill().unwrap();
        outside.wait().unwrap();
        assert!(status == Some(0) && said.contains("tried all"), "{:?}: {status:?} {said}", world.who);
        assert!(!said.contains("ESCAPED"), "{:?}: {said}", world.who);
        assert!(!find(world.directory.path(), "escaped"), "{:?}: {said}", world.who);
        assert_eq!(read("../beside/real"), "real\n");
        // Background children, signals and statuses are those of any run.
        assert_eq!(confined(&["sh", "-c", "kill -9 $$"]).0, Some(137));
        assert_eq!(confined(&["no-such-program"]).0, Some(127));
    }
}
