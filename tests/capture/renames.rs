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

#[test]
fn what_is_appended_to_while_its_directory_moves_stays_one_file() {
    const APPENDS: &str = r#"
import os, time
def append(path):
    n, end = 0, time.monotonic() + 20
    while time.monotonic() < end:
        try: fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        except FileNotFoundError: break
        os.write(fd, b"x"); os.close(fd); n += 1
    return n
for turn in range(4):
    (reads, writes), pid = os.pipe(), 0
    pid = os.fork()
    if pid == 0:
        os.write(writes, str(append(f"d{turn}/log")).encode()); os._exit(0)
    time.sleep(0.1)
    os.rename(f"d{turn}", f"e{turn}")
    os.waitpid(pid, 0)
    said = open(f"e{turn}/log").read()
    print(said[:6], len(said) - 6 == int(os.read(reads, 20)))
print(sorted(os.listdir(".")))
"#;
    if !has("python3") {
        return;
    }
    let desk = &Desk::new(Who::User);
    desk.made("for n in 0 1 2 3; do mkdir d$n; for k in $(seq 400); do echo $k > d$n/$k; done; printf 'start ' > d$n/log; done");
    let said = desk.call(["run", "--", "/usr/bin/python3", "-c", APPENDS]).run().ok();
    assert_eq!(said.stdout(), "start  True\n".repeat(4) + "['e0', 'e1', 'e2', 'e3']\n", "{said}");
}

/// A large directory, whose files move for some tenths of a second.
const LARGE: &str = "mkdir -p big/in; for n in $(seq 800); do echo $n > big/in/$n; done; chmod 555 big/in; chmod 700 big; \
                     touch -d 2001-02-03 big big/in";

/// Whether a directory of what is held is being emptied into one beside it.
fn moves(store: &std::path::Path) -> bool {
    let inside = walkdir::WalkDir::new(store).into_iter().filter_entry(|entry| entry.file_name() != "in");
    let names = inside.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut moving = names.filter(|name| name != ".recant-moving-probe");
    moving.any(|name| name.starts_with(".recant-moving-"))
}

#[test]
fn a_killed_recant_leaves_each_file_under_the_old_name_or_under_the_new_one() {
    if !has("python3") {
        return;
    }
    let desk = &Desk::new(Who::User);
    let before = desk.made_before(LARGE, "big/in/800");
    let mut cut = 0;
    for n in 0..14_u64 {
        let mut waiting = desk.start("-n s", "echo ready; exec /usr/bin/python3 -c 'import os; os.rename(\"big\", \"large\")'");
        // Every other one as soon as its files are seen to move, the rest wherever it is by then.
        match n % 2 {
            0 => while !moves(&desk.world.store()) && waiting.child.try_wait().unwrap().is_none() {},
            _ => std::thread::sleep(Duration::from_millis(n * 12)),
        }
        waiting.kill();
        until("the run ends", || !desk.recant("list --all").ok().stdout().contains("running"));
        let id = desk.ids().pop().unwrap();
        cut += usize::from(moves(&desk.world.store()));
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

/// The command may make names as those that a rename makes.
#[test]
fn a_name_of_the_command_s_own_keeps_no_killed_run_from_being_collected() {
    let desk = &Desk::new(Who::User);
    desk.made("mkdir d");
    for name in ["7777-0-0-755-0-0-..", "7777-0-0-755-0-0-.", "755-0-ffffffff-755-0-0-d", "77777777-0-0-755-0-0-d"] {
        let waiting =
            desk.start("-n s", &format!("mkdir .recant-moving-{name}; echo f > .recant-moving-{name}/f; echo ready; sleep 60"));
        waiting.kill();
        until("the run ends", || !desk.recant("list --all").ok().stdout().contains("running"));
        desk.recant("recover").ok();
        let id = desk.ids().pop().unwrap();
        let named = format!(".recant-moving-{name}");
        assert_eq!(desk.paths(&id), [named.clone(), format!("{named}/f")]);
        desk.recant(&format!("discard {id} --now -y")).ok();
    }
}

#[test]
fn of_many_directories_that_are_not_renamed_three_are_named() {
    if !has("python3") {
        return;
    }
    let desk = &Desk::new(Who::User);
    desk.made("for n in $(seq 30); do mkdir -p d$n/x; chmod 0 d$n/x; done");
    let script = "import os\nfor n in range(1, 31):\n  try: os.rename(f'd{n}', f'e{n}')\n  except OSError: pass";
    let said = desk.call(["run", "--", "/usr/bin/python3", "-c", script]).run().ok().stderr();
    assert_eq!(said.matches(": not renamed: ").count(), 3, "{said}");
    assert!(said.contains("27 other directories could not be renamed in the run"), "{said}");
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
