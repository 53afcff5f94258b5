//! Directories that were there before a command, renamed by it: as without recant.

use std::time::Duration;

use crate::common::{self, Said, until};
use crate::desk::{Desk, Who, each, has, is_root, settled};

/// What rename(2), renameat(2) and renameat2(2) say: of directories from below, of the upper, of several sorts of path, and refused ones.
const CALLS: &str = r#"
import os, errno, ctypes
libc = ctypes.CDLL(None, use_errno=True)
def rename(a, b):
    try: os.rename(a, b); return "ok"
    except OSError as e: return errno.errorcode[e.errno]
def rename2(a, b, flags):
    done = libc.renameat2(-100, a.encode(), -100, b.encode(), flags)
    return "ok" if done == 0 else errno.errorcode[ctypes.get_errno()]
os.makedirs("new/n"); open("file", "w").close()
print("to a free name, and back", rename("d", "d2"), rename("d2", "d"), rename("d", "d3"), rename("d3", "d"))
print("onto one that is not empty", rename("d/closed", "d"), rename("q", "d"))
print("one that is closed to its owner", rename("d/closed", "q/closed"), rename("d/closed", "d/closed2"))
print("onto a file", rename("q", "file"))
print("into itself", rename("q", "q/x"))
print("onto an empty one", rename("q", "empty"), sorted(os.listdir("empty")))
print("NOREPLACE", rename2("k", "l", 1), rename2("k", "kk", 1))
print("EXCHANGE", rename2("l", "kk", 2), os.listdir("l"), os.listdir("kk"), rename2("m", "file", 2), os.path.isdir("file"))
fd = os.open("z", os.O_RDONLY); os.rename("y", "w", src_dir_fd=fd, dst_dir_fd=fd)
print("by a descriptor", os.listdir("z"))
print("with a slash at the end", rename("z/", "zz/"), os.listdir("zz"))
os.symlink("zz", "link"); print("through a link", rename("link/w", "link/v"), os.listdir("zz"))
os.mkdir("zz/made"); print("with one of its own in it", rename("zz", os.getcwd() + "/last"), sorted(os.listdir("last")))
print("refused", rename("last", "a" * 300), rename("nowhere", "x"), rename(".", "x"), rename("last/..", "x"))
print("a new one", rename("new", "newer"), rename("newer/n", "n"))
"#;

const TREE: &str = "mkdir -p d/closed/x d/e q/i empty k/1 l/2 m/3 z/y/t; echo a > d/closed/x/f; echo 1 > d/s; ln d/s d/s2; mkfifo d/p; ln -s s d/l; \
                    chmod 600 d/e/../s; chmod 555 d/closed/x d/closed; touch -d 2001-02-03 d d/e d/closed d/closed/x l/2 z";

#[test]
fn every_call_says_and_does_what_it_does_without_recant() {
    if !has("python3") {
        return;
    }
    each(|desk| {
        let before = desk.made_before(TREE, "z");
        let since = std::time::SystemTime::now();
        let held = desk.call(["run", "-n", "s", "--", "/usr/bin/python3", "-c", CALLS]).run().ok();
        desk.recant("commit s").ok();
        let committed = settled(desk.world.manifest(), since);
        desk.recant("rollback s").ok();
        desk.world.manifest().assert_same(&before, "taken back");
        let bare = desk.give(desk.world.program("/usr/bin/python3", ["-c", CALLS])).cwd(desk.world.tree()).run().ok();
        assert_eq!(held.stdout(), bare.stdout());
        committed.assert_same(&settled(desk.world.manifest(), since), "held and bare");
    });
}

#[test]
fn what_earlier_commands_made_and_moved_is_renamed_by_later_ones() {
    if !has("python3") {
        return;
    }
    let rename = |desk: &Desk, from: &str, to: &str| -> Said {
        let script = format!("import os; os.rename({from:?}, {to:?})");
        desk.call(["run", "--session", "s", "--", "/usr/bin/python3", "-c", &script]).run().ok()
    };
    each(|desk| {
        let before = desk.made("mkdir -p src/a/b; echo 1 > src/a/b/f");
        rename(desk, "src", "lib");
        desk.held("--session s", "echo 2 >> lib/a/b/f; mkdir lib/new; echo n > lib/new/n").run().ok();
        rename(desk, "lib", "pkg");
        rename(desk, "pkg/new", "newer");
        rename(desk, "pkg/a/b", "b");
        assert_eq!(desk.held("--session s", "find . -type f | sort; cat b/f").run().ok().stdout(), "./b/f\n./newer/n\n1\n2\n");
        assert_eq!(desk.paths("s"), ["b", "b/f", "newer", "newer/n", "pkg", "pkg/a", "src", "src/a", "src/a/b", "src/a/b/f"]);
        desk.recant("commit s").ok();
        desk.recant("rollback s").ok();
        desk.world.manifest().assert_same(&before, "taken back");
    });
}

/// Each of eight processes renames its own directory to and fro, and a parent of all of them moves, too; a ninth looks.
#[test]
fn many_rename_at_once_and_none_fails_or_misses_a_file() {
    const MANY: &str = r#"
import os, threading
def turn(n):
    for _ in range(8):
        os.rename(f"top/d{n}", f"top/e{n}"); os.rename(f"top/e{n}", f"top/d{n}")
        names = sorted(os.listdir(f"top/d{n}/in"))
        assert names == sorted(str(k) for k in range(40)), (n, names)
pids = []
for n in range(8):
    pid = os.fork()
    if pid == 0:
        try: turn(n)
        except BaseException as error: print(n, error, flush=True); os._exit(1)
        os._exit(0)
    pids.append(pid)
bad = [os.waitpid(pid, 0)[1] for pid in pids]
os.rename("top", "last")
print(bad, sum(len(files) for _, _, files in os.walk("last")))
"#;
    if !has("python3") {
        return;
    }
    let desk = &Desk::new(Who::User);
    desk.made("for n in 0 1 2 3 4 5 6 7; do mkdir -p top/d$n/in; for k in $(seq 0 39); do echo $k > top/d$n/in/$k; done; done");
    let said = desk.call(["run", "-n", "s", "--", "/usr/bin/python3", "-c", MANY]).run().ok();
    assert_eq!(said.stdout(), "[0, 0, 0, 0, 0, 0, 0, 0] 320\n", "{said}");
}

/// A large directory, whose files move for some tenths of a second.
const LARGE: &str = "mkdir -p big/in; for n in $(seq 800); do echo $n > big/in/$n; done; chmod 555 big/in; chmod 700 big; \
                     touch -d 2001-02-03 big big/in";

#[test]
fn a_killed_recant_leaves_each_file_under_the_old_name_or_under_the_new_one() {
    if !has("python3") {
        return;
    }
    let desk = &Desk::new(Who::User);
    let before = desk.made_before(LARGE, "big/in/800");
    let mut cut = 0;
    for n in 0..14_u64 {
        let waiting = desk.start("-n s", "echo ready; exec /usr/bin/python3 -c 'import os; os.rename(\"big\", \"large\")'");
        std::thread::sleep(Duration::from_millis(n * 12));
        waiting.kill();
        until("the run ends", || !desk.recant("list --all").ok().stdout().contains("running"));
        let id = desk.ids().pop().unwrap();
        let left = desk.world.program("find", [&*desk.world.session(&id).to_string_lossy(), "-name", ".recant-moving*"]).run();
        cut += usize::from(!left.out.is_empty());
        desk.recant("recover").ok();
        // Whole, or not at all.
        if !desk.paths(&id).is_empty() {
            assert_eq!(
                desk.paths(&id).len(),
                4 + 2 * 800,
                "{:?}",
                desk.recant(&format!("diff {id}")).stdout().chars().take(600).collect::<String>()
            );
            desk.recant(&format!("commit {id} -y")).ok();
            assert!(desk.world.path("large/in/800").exists() && !desk.world.path("big").exists());
            desk.recant(&format!("rollback {id}")).ok();
        }
        desk.recant(&format!("discard {id} --now -y")).ok();
        desk.world.manifest().assert_same(&before, "taken back");
    }
    assert!(cut > 0, "none was cut off while it moved");
}

#[test]
fn a_killed_caller_leaves_the_directory_whole_and_others_go_on() {
    const KILLS: &str = r#"
import os, signal, time
for n in range(12):
    pid = os.fork()
    if pid == 0:
        os.rename("big", "large"); os._exit(0)
    time.sleep(n * 0.01)
    os.kill(pid, signal.SIGKILL); os.waitpid(pid, 0)
    os.rename("other", "other2"); os.rename("other2", "other")
    names = [name for name in ("big", "large") if os.path.isdir(name)]
    assert len(names) == 1 and len(os.listdir(names[0] + "/in")) == 800, names
    if names == ["large"]: os.rename("large", "big")
    assert sorted(os.listdir(".")) == ["big", "other"], os.listdir(".")
print(oct(os.stat("big").st_mode), oct(os.stat("big/in").st_mode), os.stat("big/in").st_mtime == 981158400)
"#;
    if !has("python3") {
        return;
    }
    let desk = &Desk::new(Who::User);
    desk.made(&format!("export TZ=UTC; {LARGE}; mkdir -p other/x"));
    let said = desk.call(["run", "--", "/usr/bin/python3", "-c", KILLS]).run().ok();
    assert_eq!(said.stdout(), "0o40700 0o40555 True\n", "{said}");
}

#[test]
fn a_directory_that_holds_what_is_another_user_s_stays_as_it_is_and_that_is_said() {
    if !is_root() || !has("python3") {
        return common::skip("another user's file takes root, python3");
    }
    let desk = &Desk::new(Who::User);
    desk.made("mkdir -p d/a d/b; echo 1 > d/a/f");
    desk.world.write("d/b/theirs", "root's");
    let script = "import os\ntry: os.rename('d', 'e')\nexcept OSError as error: print(error.strerror)";
    let said = desk.call(["run", "--", "/usr/bin/python3", "-c", script]).run().ok();
    assert_eq!(said.stdout(), "Invalid cross-device link\n");
    let told = said.stderr();
    assert!(told.contains("d: not renamed: ") && told.contains("d/b/theirs: "), "{told}");
    assert!(desk.ids().is_empty(), "nothing was changed");
}

/// seccomp(2) takes one listener for a process: a program that has its own (container engines) needs ours away.
#[test]
fn a_program_gets_a_listener_of_its_own_once_the_setting_is_off() {
    const LISTENS: &str = r#"
import ctypes, os, platform
libc = ctypes.CDLL(None, use_errno=True)
class Program(ctypes.Structure): _fields_ = [("len", ctypes.c_ushort), ("steps", ctypes.c_char_p)]
steps = bytes([6, 0, 0, 0, 0, 0, 255, 127])
libc.prctl(38, 1, 0, 0, 0)
number = 317 if platform.machine() == "x86_64" else 277
fd = libc.syscall(number, 1, 8, ctypes.byref(Program(1, steps)))
print("listens" if fd >= 0 else os.strerror(ctypes.get_errno()))
try: os.rename("d", "e"); print("renamed")
except OSError as error: print(error.strerror)
"#;
    if !has("python3") {
        return;
    }
    let desk = &Desk::new(Who::User);
    desk.made("mkdir -p d/a");
    let run = || desk.call(["run", "--discard", "--", "/usr/bin/python3", "-c", LISTENS]).run().ok().stdout();
    assert_eq!(run(), "Device or resource busy\nrenamed\n");
    desk.world.config("[capture]\nlisten = false\n");
    assert_eq!(run(), "listens\nInvalid cross-device link\n");
}
