//! A file that is itself mounted, as /etc/hosts is in a container, and that a command writes to: what it writes is held and shown, and no
//! verb puts it there: each names the command that does it by hand. As root and as an ordinary user; the mounts need root, and are this
//! test's alone. `below`: a user's command beside a mount.

mod below;

use crate::common;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::desk::{Desk, USER, Who, has, is_root};
use crate::killed;
use crate::mounts::own_mounts;

fn sh(script: &str) {
    assert!(Command::new("sh").args(["-ec", script]).status().unwrap().success(), "{script}");
}

/// The file beside the tree that is mounted at a name in it.
fn source(desk: &Desk, name: &str) -> PathBuf {
    desk.world.root().join(format!("source-of-{name}"))
}

/// Mounts a file of its own at `name` of the tree; both are the desk's user's.
fn mounted(desk: &Desk, name: &str) {
    let (point, from) = (desk.world.path(name), source(desk, name));
    let script = "printf 'first\\nlast\\n' > \"$1\"; chmod 640 \"$1\"; setfattr -n user.kept -v 1 \"$1\"; touch -d 2001-02-03 \"$1\"; echo below > \"$2\"";
    let made = Command::new("sh").args(["-ec", script, "sh"]).arg(&from).arg(&point).status().unwrap();
    assert!(made.success());
    if desk.other() {
        std::os::unix::fs::chown(&from, Some(USER), Some(USER)).unwrap();
    }
    bind(&from, &point);
}

fn bind(from: &Path, to: &Path) {
    rustix::mount::mount_bind(from, to).unwrap();
}

/// Whether mounts of the test's own can be had for this; says so where not.
fn can_mount(what: &str) -> bool {
    if is_root() {
        own_mounts();
    } else {
        println!("skipped: {what}: mounting needs root");
    }
    is_root()
}

/// A file that is mounted at `hosts`, for root and for a user.
fn each(test: impl Fn(&Desk)) {
    if !has("setfattr") || !can_mount("a mounted file that a command writes to") {
        return;
    }
    for who in [Who::Root, Who::User] {
        let desk = Desk::new(who);
        mounted(&desk, "hosts");
        desk.bare(&desk.world.tree(), "mkdir beside");
        test(&desk);
    }
}

fn id_of(desk: &Desk) -> String {
    desk.ids().last().unwrap().clone()
}

/// A commit refuses it by name and changes nothing; the command that it names, typed by hand, writes what is held.
fn put_by_hand(desk: &Desk, id: &str) {
    let before = desk.world.manifest();
    let said = desk.recant(&format!("commit {id} -y")).with(1).stderr();
    before.assert_same(&desk.world.manifest(), "refused");
    let hosts = desk.world.path("hosts").display().to_string();
    let command = format!("recant cat {id} {hosts} > {hosts}");
    assert!(
        said.contains(&format!("{hosts}: a file is mounted there, which cannot be replaced; write it by hand: {command};")),
        "{said}"
    );
    let held = desk.recant(&format!("cat {id} {hosts}")).ok().stdout();
    desk.world.write("hosts", held);
}

#[test]
fn what_a_command_writes_into_it_is_held_and_shown_and_no_verb_puts_it_there() {
    for change in ["echo more >> hosts", "echo new > hosts; chmod 600 hosts", ": > hosts"] {
        each(|desk| {
            let before = desk.world.manifest();
            let script =
                "mv hosts away; rm -f hosts; cp hosts beside/t; mv -f beside/t hosts; rm -f beside/t; touch -d 2002-02-02 beside";
            let said = desk.run(&format!("{change}; {script}; echo x > beside/x")).ok();
            assert_eq!(said.stderr().matches("Device or resource busy").count(), 3, "{said}");
            before.assert_same(&desk.world.manifest(), "held");
            let id = desk.id();
            assert_eq!(desk.paths(&id), ["beside/x", "hosts"], "{change}: {said}");
            // By force neither; and by a dry run it is known as well.
            let refused = |how: &str| desk.recant(&format!("commit {id} {how}")).with(1).stderr();
            for how in ["--force", "--dry-run"] {
                assert!(refused(how).contains("a file is mounted there"), "{how}");
                before.assert_same(&desk.world.manifest(), how);
            }
            // The others go by name, and come off exactly.
            desk.recant(&format!("commit {id} beside/x")).ok();
            assert_eq!(desk.world.read("beside/x"), "x\n");
            desk.recant("undo -y").ok();
            before.assert_same(&desk.world.manifest(), "rolled back");
            put_by_hand(desk, &id);
            let put = desk.world.read("hosts");
            desk.bare(&desk.world.tree(), &format!("printf 'first\nlast\n' > hosts; {change}"));
            assert_eq!(put, desk.world.read("hosts"), "{change}");
        });
    }
}

#[test]
fn its_metadata_is_set_and_comes_off_exactly() {
    for change in [
        "chmod 604 hosts; setfattr -n user.new -v 2 hosts; setfattr -x user.kept hosts",
        "chmod 600 hosts; touch -d 2005-05-05 hosts",
    ] {
        each(|desk| {
            let before = desk.world.manifest();
            desk.run(change).ok();
            let id = desk.id();
            desk.recant(&format!("commit {id}")).ok();
            let done = desk.world.manifest();
            desk.recant(&format!("rollback {id}")).ok();
            desk.world.manifest().assert_same(&before, "rolled back");
            desk.recant(&format!("redo {id}")).ok();
            desk.world.manifest().assert_same(&done, "redone");
        });
    }
}

/// One that was committed before the file was mounted over: its rollback is refused by name, too.
#[test]
fn a_rollback_of_what_is_mounted_over_since_names_what_gives_the_original_by_hand() {
    if !can_mount("a file that is mounted over") {
        return;
    }
    let world = common::World::new();
    world.write("hosts", "old").write("over", "over");
    let id = world.begin();
    world.stage_write(&id, "hosts", "new");
    world.recant(&format!("commit {id}")).ok();
    let hosts = world.path("hosts");
    bind(&world.path("over"), &hosts);
    world.recant(&format!("rollback {id}")).with(3);
    let said = world.recant(&format!("rollback {id} --force")).with(1).stderr();
    let hosts = hosts.display();
    assert!(said.contains(&format!("recant cat {id} {hosts} --before > {hosts}; then name")), "{said}");
    assert_eq!(world.recant(&format!("cat {id} {hosts} --before")).ok().stdout(), "old");
}

#[test]
fn a_command_that_leaves_it_alone_or_as_it_was_holds_nothing() {
    each(|desk| {
        for script in [
            "cat hosts",
            "exec 3<> hosts",
            "touch -d 2001-02-03 hosts",
            "cp -p hosts beside/h; echo x > hosts; cat beside/h > hosts; touch -r beside/h hosts; rm beside/h",
        ] {
            let said = desk.run(script).ok();
            assert!(said.stderr().ends_with("no file change\n"), "{script}: {said}");
        }
        assert_eq!(desk.ids(), Vec::<String>::new());
    });
}

#[test]
fn what_somebody_else_does_to_it_meanwhile_is_a_conflict_and_where_the_command_left_it_alone_no_change() {
    each(|desk| {
        let id = desk.meanwhile("chmod 600 hosts", "chmod 606 hosts");
        let said = desk.recant(&format!("commit {id}")).with(3);
        assert!(
            said.stderr().contains("hosts")
                && std::fs::metadata(desk.world.path("hosts")).unwrap().permissions().mode() & 0o777 == 0o606,
            "{said}"
        );
        desk.recant(&format!("discard {id}")).ok();
        let id = desk.meanwhile("echo mine > beside/it", "echo theirs > hosts");
        assert_eq!(desk.paths(&id), ["beside/it"], "{:?}", desk.who);
    });
}

#[test]
fn another_file_that_is_mounted_there_meanwhile_is_a_conflict() {
    each(|desk| {
        let waiting = desk.start("", "chmod 600 hosts; echo ready; read go");
        rustix::mount::unmount(desk.world.path("hosts"), rustix::mount::UnmountFlags::empty()).unwrap();
        waiting.go();
        let said = desk.recant(&format!("commit {}", desk.id())).with(3);
        assert!(said.stderr().contains("hosts") && desk.world.read("hosts") == "below\n", "{said}");
    });
}

#[test]
fn a_further_run_of_the_session_goes_on_from_what_is_held() {
    each(|desk| {
        desk.run("echo one >> hosts").ok();
        let id = desk.id();
        let said = desk.held(&format!("--session {id}"), "cat hosts; echo two >> hosts").run().ok();
        assert_eq!(said.stdout(), "first\nlast\none\n", "{said}");
        // What the first one left alone is what it is now in the second.
        put_by_hand(desk, &id);
        assert_eq!(desk.world.read("hosts"), "first\nlast\none\ntwo\n");
        desk.recant(&format!("discard {id}")).ok();
        desk.bare(&desk.world.tree(), "printf 'first\\nlast\\n' > hosts");
        desk.run("echo x > beside/it").ok();
        let id = id_of(desk);
        desk.bare(&desk.world.tree(), "echo theirs >> hosts");
        // Nor does one in between that leaves it alone, too, make a conflict of what the next one writes.
        desk.held(&format!("--session {id}"), "echo y > beside/it").run().ok();
        let said = desk.held(&format!("--session {id}"), "cat hosts; echo mine >> hosts").run().ok();
        assert_eq!(said.stdout(), "first\nlast\ntheirs\n", "{said}");
        put_by_hand(desk, &id);
        assert_eq!(desk.world.read("hosts"), "first\nlast\ntheirs\nmine\n");
        // What somebody writes between two runs that both write to it is a conflict.
        desk.run("echo a >> hosts").ok();
        let id = id_of(desk);
        desk.bare(&desk.world.tree(), "echo b >> hosts");
        let said = desk.held(&format!("--session {id}"), "cat hosts; echo c >> hosts").run().ok();
        assert_eq!(said.stdout(), "first\nlast\ntheirs\nmine\na\n", "{said}");
        desk.recant(&format!("commit {id}")).with(3);
    });
}

#[test]
fn what_was_written_when_recant_was_killed_is_kept() {
    each(|desk| {
        let before = desk.world.manifest();
        let waiting = desk.start("", "echo mine >> hosts; echo ready; sleep 1000");
        killed(desk, waiting);
        let id = desk.id();
        desk.recant(&format!("diff {id}")).ok();
        assert_eq!(desk.paths(&id), ["hosts"]);
        before.assert_same(&desk.world.manifest(), "held");
        put_by_hand(desk, &id);
        assert_eq!(desk.world.read("hosts"), "first\nlast\nmine\n");
    });
}

#[test]
fn one_that_is_not_held_is_read_only_and_named_before_the_command_starts() {
    each(|desk| {
        let reason = |desk: &Desk, name: &str| {
            let said = desk.run(&format!("cat {name} > /dev/null; echo x >> {name} || echo kept >&2; ")).ok().stderr();
            let rows = desk.recant("doctor --json").ok().json()["coverage"].clone();
            let path = desk.world.path(name).display().to_string();
            let row = rows.as_array().unwrap().iter().find(|row| row["path"] == *path).map(|row| row.to_string());
            (
                said.contains("not captured, so read-only for the command") && said.contains(&path),
                said.contains("kept"),
                row.unwrap_or_default(),
            )
        };
        mounted(desk, "large");
        sh(&format!(
            "truncate -s 1G {0}; head -c 20000000 /dev/zero | dd of={0} conv=notrunc status=none",
            source(desk, "large").display()
        ));
        let (named, kept, row) = reason(desk, "large");
        assert!(named && kept && row.contains("more than 16 MiB"), "{row}");
        // Asked for, it is held.
        let id = {
            desk.world.config(&format!("capture.also = [\"{}\"]", desk.world.path("large").display()));
            desk.run("echo x >> large").ok();
            id_of(desk)
        };
        assert_eq!(desk.paths(&id), ["large"]);
        desk.world.config("");
        rustix::mount::unmount(desk.world.path("large"), rustix::mount::UnmountFlags::DETACH).unwrap();
        if desk.who == Who::User {
            std::os::unix::fs::chown(source(desk, "hosts"), Some(0), Some(0)).unwrap();
            sh(&format!("chmod 666 {}", source(desk, "hosts").display()));
            let (named, kept, row) = reason(desk, "hosts");
            assert!(named && kept && row.contains("of another user or group"), "{row}");
        }
        for i in 0..17 {
            mounted(desk, &format!("m{i}"));
        }
        let said = desk.run("true").ok().stderr();
        assert!(said.contains("not captured, so read-only for the command"), "{said}");
    });
}

#[test]
fn a_copy_counts_for_max_size_by_what_it_grows() {
    each(|desk| {
        sh(&format!("head -c 3000000 /dev/zero >> {}", source(desk, "hosts").display()));
        desk.held("--max-size 1M --discard", "echo x >> hosts").run().ok();
        let said = desk.held("--max-size 1M", "head -c 5000000 /dev/zero >> hosts; sleep 100").run();
        assert!(said.status != 0 && said.stderr().contains("more than --max-size"), "{said}");
    });
}

/// A mounted file that were one of the store's own file system would lead root to every other of that: open_by_handle_at(2).
#[test]
fn no_other_file_is_opened_through_it_by_its_handle() {
    if !has("python3") {
        return println!("skipped: a file's handle: python3 is needed");
    }
    each(|desk| {
        desk.bare(&desk.world.tree(), "echo real > beside/victim");
        let script = "
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
class Handle(ctypes.Structure):
    _fields_ = [('bytes', ctypes.c_uint), ('type', ctypes.c_int), ('data', ctypes.c_ubyte * 128)]
if sys.argv[1] == 'take':
    handle, mount = Handle(128), ctypes.c_int()
    assert libc.name_to_handle_at(-100, b'beside/victim', ctypes.byref(handle), ctypes.byref(mount), 0) == 0
    print(handle.bytes, handle.type, bytes(handle.data[:handle.bytes]).hex())
else:
    handle = Handle(int(sys.argv[2]), int(sys.argv[3]))
    data = bytes.fromhex(sys.argv[4])
    ctypes.memmove(handle.data, data, len(data))
    mount = os.open('hosts', os.O_RDWR)
    fd = libc.open_by_handle_at(mount, ctypes.byref(handle), os.O_RDWR)
    if fd < 0:
        print('refused', ctypes.get_errno())
    else:
        os.write(fd, b'ESCAPED'); print('opened')
";
        let tree = desk.world.tree();
        let python =
            |words: &[&str]| desk.world.program("python3", [&["-c", script], words].concat()).cwd(&tree).run().ok().stdout();
        let handle = python(&["take"]);
        let handle: Vec<&str> = handle.split_whitespace().collect();
        let bare = python(&[&["open"], &handle[..]].concat());
        assert_eq!(bare, "opened\n", "root can do it bare");
        desk.bare(&tree, "echo real > beside/victim");
        let words = [&["run", "--", "python3", "-c", script, "open"], &handle[..]].concat();
        let said = desk.call(words).run().ok();
        assert!(said.stdout().starts_with("refused"), "{said}");
        assert_eq!(desk.world.read("beside/victim"), "real\n");
    });
}

/// A directory cannot go as long as something is mounted in it; in the run it can.
#[test]
fn what_is_written_into_a_mount_whose_directory_is_renamed_is_named_with_where_it_lies_and_spoils_no_other_change() {
    if !can_mount("a mount whose directory is renamed") {
        return;
    }
    let desk = Desk::new(Who::Root);
    desk.made(
        "mkdir sub sub/d top top/d; echo z > sub/z; echo other > other; touch sub/x; echo f > ../source; mkdir ../directory; echo y > ../directory/y",
    );
    bind(&desk.world.root().join("source"), &desk.world.path("sub/x"));
    bind(&desk.world.root().join("directory"), &desk.world.path("top/d"));
    for (script, mount, below) in [
        ("echo X > sub/x; mv sub sub2; cat sub2/x", "sub/x", ""),
        ("echo X > top/d/y; mkdir top/d/e; echo more > top/d/e/f; mv top top2; cat top2/d/y", "top/d", "/y"),
    ] {
        let said = desk.run(&format!("echo new > other; {script}")).ok();
        assert_eq!(said.stdout(), "X\n", "{said}");
        let id = id_of(&desk);
        let warned = said.stderr();
        let start = format!("{}: the command renamed or removed a directory", desk.world.path(mount).display());
        let line = warned.lines().find(|line| line.contains(&start)).unwrap_or_else(|| panic!("{said}"));
        let lies = format!("{}{below}", line.rsplit_once("they lie in ").unwrap().1);
        assert_eq!(std::fs::read_to_string(&lies).unwrap(), "X\n", "{said}");
        let paths = desk.paths(&id);
        assert!(paths.contains(&"other".into()) && !paths.iter().any(|path| path.starts_with(mount)), "{paths:?}");
        assert!(desk.recant(&format!("diff {id}")).ok().stdout().contains("other"));
        desk.recant(&format!("commit {id} other")).ok();
        assert_eq!(desk.world.read("other"), "new\n");
        desk.recant("undo -y").ok();
        desk.recant(&format!("discard {id}")).ok();
    }
    let said = desk.run("mv sub sub2; mkdir sub; echo mine > sub/x").ok();
    let named =
        format!("{}: it is a mount point: the command's replacement for it is not held", desk.world.path("sub/x").display());
    assert!(said.stderr().contains(&named), "{said}");
    sh(&format!("umount {} {}", desk.world.path("sub/x").display(), desk.world.path("top/d").display()));
}

/// Serves a file system whose root is a file (fuse(4)), at the path that it is given.
const SERVE: &str = "
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
fuse = os.open('/dev/fuse', os.O_RDWR)
options = f'fd={fuse},rootmode=100644,user_id=0,group_id=0,allow_other'
assert libc.mount(b'served', sys.argv[1].encode(), b'fuse', 0, options.encode()) == 0, ctypes.get_errno()
print('ready', flush=True)
while True:
    request = os.read(fuse, 1 << 20)
    _, code, unique, node = struct.unpack_from('<IIQQ', request)
    if code in (2, 36, 42):
        continue
    error, answer = 0, b''
    if code == 26:
        answer = struct.pack('<IIIIHHIIHH8I', 7, 31, 65536, 0, 8, 4, 65536, 1, 0, 0, *[0] * 8)
    elif code == 3:
        answer = struct.pack('<QII6Q10I', 0, 0, 0, 1, 5, 8, 0, 0, 0, 0, 0, 0, 0o100666, 1, int(sys.argv[2]), int(sys.argv[2]), 0, 4096, 0)
    elif code == 14:
        answer = struct.pack('<QII', 0, 0, 0)
    elif code == 15:
        answer = b'fuse\\n'
    elif code not in (18, 25):
        error = -38
    os.write(fuse, struct.pack('<IiQ', 16 + len(answer), error, unique) + answer)
";

#[test]
fn one_that_is_a_whole_file_system_is_read_only_and_named() {
    if !has("python3") || !Path::new("/dev/fuse").exists() {
        return println!("skipped: a file that is a file system: python3 and /dev/fuse are needed");
    }
    each(|desk| {
        let point = desk.world.path("served");
        desk.bare(&desk.world.tree(), "touch served");
        let owner = if desk.other() { USER } else { 0 };
        let mut server = Command::new("python3");
        server.args(["-c", SERVE]).arg(&point).arg(owner.to_string()).stdout(std::process::Stdio::piped());
        // It is told that the mount is gone by an error.
        server.stderr(std::process::Stdio::null());
        let mut server = server.spawn().unwrap();
        let mut ready = [0; 6];
        std::io::Read::read_exact(server.stdout.as_mut().unwrap(), &mut ready).unwrap();
        let said = desk.run("cat served; echo x > served || echo kept");
        sh(&format!("umount {}", point.display()));
        server.kill().unwrap();
        server.wait().unwrap();
        let said = said.ok();
        let named = format!("{}: not captured, so read-only for the command", point.display());
        assert!(said.stdout() == "fuse\nkept\n" && said.stderr().contains(&named), "{said}");
    });
}

#[test]
fn one_that_is_hidden_gets_no_copy() {
    each(|desk| {
        for hidden in ["hosts", "."] {
            let path = desk.world.path("hosts").display().to_string();
            let root = desk.world.root().display().to_string();
            let hide = format!("--hide {}", desk.world.path(hidden).display());
            let said = desk.held(&hide, &format!("cat {path} 2>/dev/null")).cwd(&root).run();
            assert!(said.status != 125 && !said.stdout().contains("first"), "{hidden}: {said}");
        }
    });
}

#[test]
fn one_that_cannot_be_read_is_read_only_and_named() {
    if !has("strace") {
        return println!("skipped: a mounted file that cannot be read: strace is needed");
    }
    each(|desk| {
        let words = ["-f", "-qq", "-o", "/dev/null", "-e", "trace=copy_file_range", "-e", "inject=copy_file_range:error=EIO"];
        let script = ["run", "--", "sh", "-c", "echo x >> hosts || echo kept; echo y > beside/y"];
        let words = [&words[..], &[desk.binary.to_str().unwrap()], &script].concat();
        let said = desk.give(desk.world.program("strace", words)).cwd(desk.world.tree()).run().ok();
        let named = format!("{}: ", desk.world.path("hosts").display());
        assert!(said.stdout() == "kept\n" && said.stderr().contains(&named), "{said}");
        assert!(said.stderr().contains("cannot copy the mounted file: input/output error"), "{said}");
        assert_eq!(desk.paths(&id_of(desk)), ["beside/y"]);
    });
}

#[test]
fn a_further_run_that_could_not_see_what_the_session_holds_is_refused() {
    each(|desk| {
        let (hosts, plain) = (desk.world.path("hosts"), desk.world.path("beside/plain"));
        desk.run("echo one >> hosts; echo plain > beside/plain").ok();
        let id = desk.id();
        let go_on = || desk.held(&format!("--session {id} --discard"), "cat hosts beside/plain").run();
        let refused = |path: &Path, remedy: &str| {
            let said = go_on();
            let named = format!("{}: it holds a change there that the command could not see", path.display());
            assert!(said.status == 125 && said.stderr().contains(&named) && said.stderr().contains(remedy), "{said}");
        };
        sh(&format!("mount -o remount,bind,ro {}", hosts.display()));
        refused(&hosts, "commit the session first");
        sh(&format!("mount -o remount,bind,rw {}", hosts.display()));
        sh(&format!("echo > {}", plain.display()));
        bind(&source(desk, "hosts"), &plain);
        refused(&plain, &format!("umount {}", plain.display()));
        sh(&format!("umount {0}; rm {0}", plain.display()));
        let said = desk.held(&format!("--session {id}"), "cat hosts beside/plain").run().ok();
        assert_eq!(said.stdout(), "first\nlast\none\nplain\n", "{said}");
        desk.held(&format!("--session {id} --hide {}", hosts.display()), "true").run().ok();
        assert!(desk.paths(&id).contains(&"hosts".into()));
    });
}

/// Gives a desk a store that can hold no upper.
fn store_on_overlay(desk: &Desk) {
    sh(&format!(
        "S={}; mkdir -p \"$S\" \"$S.low\" \"$S.up\"; mount -t tmpfs up \"$S.up\"; mkdir \"$S.up/u\" \"$S.up/w\"; chmod 700 \"$S.up/u\"; \
         mount -t overlay -o \"lowerdir=$S.low,upperdir=$S.up/u,workdir=$S.up/w\" store \"$S\"",
        desk.world.store().display()
    ));
}

/// What a power cut leaves is what a kill leaves here: the memory is gone.
#[test]
fn from_memory_nothing_is_lost_when_the_end_is_cut_off_before_the_header_has_its_name() {
    if !can_mount("a run in memory that is cut off") {
        return;
    }
    let desk = Desk::new(Who::Root);
    store_on_overlay(&desk);
    let log = desk.world.root().join("log");
    let run = |steps: String| desk.held("", "echo new > new; mkdir d; echo x > d/x").env("RECANT_STEPS", steps).run();
    run("log:/dev/null".to_owned()).ok();
    run(format!("log:{}", log.display())).ok();
    let steps = std::fs::read_to_string(&log).unwrap();
    let lines: Vec<&str> = steps.lines().collect();
    let last = |what: &str| lines.iter().rposition(|line| line.contains(what)).unwrap();
    let (record, header) = (last("run.json.new"), last("session.json.new"));
    // Where the header has its name, that lasts too.
    assert!(lines[header..].iter().any(|line| line.contains("fsync")), "{steps}");
    // All of them: they are few.
    let mut ended = 0;
    for n in record..=header + 2 {
        let killed = run(format!("kill:{n}"));
        assert_eq!(killed.status, 137, "{n}: {killed}");
        let id = id_of(&desk);
        let noted = std::fs::read_to_string(desk.world.session(&id).join("run.json")).unwrap().contains("\"ending\"");
        let said = desk.recant(&format!("diff {id}")).ok();
        if noted {
            ended += 1;
            assert_eq!(desk.paths(&id), ["d", "d/x", "new"], "{n}: {said}");
            desk.recant(&format!("commit {id}")).ok();
            assert_eq!(desk.world.read("d/x"), "x\n");
            desk.recant(&format!("rollback {id}")).ok();
        } else {
            assert!(said.stderr().contains("lay in memory and is lost"), "{n}: {said}");
        }
    }
    assert!(ended >= 2, "{ended}: {steps}");
}

/// A container's own disk holds no upper, and it is there that files are mounted.
#[test]
fn from_memory_it_is_carried_over_as_all_else() {
    if !has("setfattr") || !can_mount("a mounted file held in memory") {
        return;
    }
    let desk = Desk::new(Who::Root);
    mounted(&desk, "hosts");
    store_on_overlay(&desk);
    let said = desk.run("echo more >> hosts; chmod 600 hosts").ok();
    assert!(said.stderr().contains("lies in memory until it has ended"), "{said}");
    let id = desk.id();
    put_by_hand(&desk, &id);
    assert_eq!(desk.world.read("hosts"), "first\nlast\nmore\n");
}

/// As when somebody replaced /etc/resolv.conf outside of the container that it is mounted in.
#[test]
fn one_whose_own_name_was_deleted_is_held_and_a_directory_of_that_kind_is_named_with_what_to_do() {
    each(|desk| {
        sh(&format!("rm {}", source(desk, "hosts").display()));
        let before = desk.world.manifest();
        let said = desk.run("cat hosts; echo more >> hosts").ok();
        assert_eq!(said.stdout(), "first\nlast\n", "{said}");
        before.assert_same(&desk.world.manifest(), "held");
        let id = desk.id();
        put_by_hand(desk, &id);
        assert_eq!(desk.world.read("hosts"), "first\nlast\nmore\n");
        let (from, point) = (source(desk, "directory"), desk.world.path("directory"));
        desk.bare(desk.world.root(), "mkdir source-of-directory tree/directory");
        bind(&from, &point);
        sh(&format!("rmdir {}", from.display()));
        let said = desk.run("echo x > beside/x");
        if desk.who == Who::Root {
            assert_eq!(said.status, 125, "{said}");
            let remedy = format!("umount {}", point.display());
            assert!(said.stderr().contains("the mounted directory was deleted") && said.stderr().contains(&remedy), "{said}");
            sh(&remedy);
            // Of a file the content goes with the mount.
            mounted(desk, "large");
            let large = source(desk, "large").display().to_string();
            sh(&format!("head -c 20000000 /dev/zero >> {large}; rm {large}"));
            let said = desk.run("true").with(125).stderr();
            assert!(said.contains("copy") && said.contains("elsewhere first") && !said.contains("it is empty"), "{said}");
            sh(&format!("umount {}", desk.world.path("large").display()));
        }
        let said = if desk.who == Who::Root { desk.run("echo x > beside/x") } else { said };
        assert!(said.ok().stderr().contains("held in session"));
    });
}

/// With the directory it would lie in the store, and its path be another.
#[test]
fn what_is_mounted_in_a_directory_is_moved_away_with_it_by_no_force() {
    if !can_mount("a mount in a directory that would be moved away") {
        return;
    }
    let world = common::World::new();
    world.write("f", "old").write("other/data", "data");
    let id = world.begin();
    world.stage_write(&id, "f", "new");
    world.recant(&format!("commit {id}")).ok();
    world.remove("f").write("f/in/theirs", "theirs");
    let inside = world.path("f/in");
    bind(&world.path("other"), &inside);
    let said = world.recant(&format!("rollback {id} --force")).with(1);
    assert!(said.stderr().contains("mounted in it, at") && said.stderr().contains("nothing was changed"), "{said}");
    assert_eq!(world.read("f/in/data"), "data");
    rustix::mount::unmount(&inside, rustix::mount::UnmountFlags::empty()).unwrap();
    world.recant(&format!("rollback {id} --force")).ok();
    assert_eq!(world.read("f"), "old");
    let kept = std::fs::read_to_string(world.session(&id).join("displaced/2/1/in/theirs"));
    assert_eq!(kept.unwrap(), "theirs");
}

#[test]
fn without_the_file_system_that_paths_lay_on_nothing_is_put_where_it_was_mounted() {
    if !can_mount("a file system that is not mounted any more") {
        return;
    }
    let desk = Desk::new(Who::Root);
    desk.bare(&desk.world.tree(), "mkdir -p stick real; echo old > real/x; echo kept > near");
    let (point, from) = (desk.world.path("stick"), desk.world.path("real"));
    bind(&from, &point);
    let umount = || rustix::mount::unmount(&point, rustix::mount::UnmountFlags::empty()).unwrap();
    let read = |name: &str| std::fs::read_to_string(from.join(name)).ok();
    desk.run("rm stick/x; echo new > stick/y; echo more >> near").ok();
    for (verb, left, done) in [
        ("commit", [Some("old\n".into()), None], [None, Some("new\n".to_owned())]),
        ("rollback", [None, Some("new\n".into())], [Some("old\n".to_owned()), None]),
        ("redo", [Some("old\n".into()), None], [None, Some("new\n".to_owned())]),
    ] {
        umount();
        let said = desk.recant(&format!("{verb} last")).with(1);
        let line = format!("{}: its file system is no longer mounted", point.display());
        assert!(said.stderr().contains(&line) || said.stderr().contains("stick: its file system is no longer mounted"), "{said}");
        assert_eq!([read("x"), read("y")], left, "{verb}");
        assert_eq!(std::fs::read_dir(&point).unwrap().count(), 0, "{verb}");
        bind(&from, &point);
        desk.recant(&format!("{verb} last")).ok();
        assert_eq!([read("x"), read("y")], done, "{verb}");
    }
    // What lies elsewhere is none of its business.
    umount();
    desk.recant("rollback last near").ok();
    assert_eq!(desk.world.read("near"), "kept\n");
}

/// A mount that an earlier command of the session saw may go while the next one begins; an ordinary user's overlay cannot be made of a
/// directory that something was mounted in after the plan.
#[test]
fn a_mount_that_comes_and_goes_stops_no_command() {
    if !can_mount("a mount that comes and goes") {
        return;
    }
    for (who, further) in [(Who::Root, "--session w"), (Who::User, "--session w"), (Who::User, "")] {
        let desk = Desk::new(who);
        let point = desk.world.root().join("disk");
        let come = || {
            std::fs::create_dir(&point).unwrap();
            rustix::mount::mount("disk", &point, "tmpfs", rustix::mount::MountFlags::empty(), None).unwrap();
        };
        come();
        desk.held("--session w -q", "echo 1 > one").run().ok();
        let over = std::sync::atomic::AtomicBool::new(false);
        let refused: Vec<String> = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(std::sync::atomic::Ordering::Relaxed) {
                    rustix::mount::unmount(&point, rustix::mount::UnmountFlags::DETACH).unwrap();
                    std::fs::remove_dir(&point).unwrap();
                    come();
                }
            });
            let said: Vec<_> = (0..40).map(|_| desk.held(&format!("{further} -q"), "true").run()).collect();
            over.store(true, std::sync::atomic::Ordering::Relaxed);
            said.into_iter().filter(|said| said.status != 0).map(|said| said.to_string()).collect()
        });
        assert!(refused.is_empty(), "{who:?} {further}: {} of 40: {}", refused.len(), refused[0]);
    }
}
