//! A command in a run is who it is bare: user, groups, directory, environment, limits, descriptors; and a person at a terminal
//! notices nothing. `tests/terminals/people.py` plays that person.

use std::os::unix::fs::MetadataExt;
use std::process::Stdio;

use crate::desk::{Desk, USER, Who, each, has, is_root};

/// What a process can tell of itself, but for what a run gives it anew: its PIDs, its IPC namespace, and a root's capabilities.
const SELF: &str = r#"
id; id -G; id -un 2>&1; whoami 2>&1; umask; ulimit -a; ulimit -Ha; pwd; pwd -P; env | grep -v ^_= | sort; nice; hostname; uname -a
cut -d ' ' -f 7 /proc/self/stat; cat /proc/self/oom_score_adj; stat -c '%n %A %u %g %Y' . "$HOME"; getfattr -d . 2>&1; stat -c %a /tmp; stat -c '%A %Y' / /usr; echo "$0 $*"; test -t 0 || echo no terminal
grep -E '^(Umask|Uid|Gid|SigQ|SigBlk|SigIgn|SigCgt|Cpus_allowed|NoNewPrivs)' /proc/self/status | grep -v SigQ
ls /proc/self/fd | wc -l; date +%Z; locale 2>&1; stat -c '%U %G %a' . 2>&1; readlink /proc/self/ns/net /proc/self/ns/uts; true
"#;

#[test]
fn a_command_is_who_it_is_bare() {
    each(|desk| {
        desk.made("echo a > a; chmod 2750 .; setfattr -n user.mark -v yes . || true; touch -d 2001-02-03 .");
        // Root's own setpriv drops no capability; what a run takes away from root is another matter.
        for before in ["true", "umask 027; ulimit -n 333; ulimit -c 0; export ODD='a b\nc' EMPTY=; trap '' USR1 PIPE HUP; cd ."] {
            let script = format!("{before}; \"$@\"");
            let under = |words: &[&str]| {
                let words = [&["-c", &script, "sh"], words, &["sh", "-c", SELF, "name", "an argument"]].concat();
                desk.give(desk.world.program("sh", words)).run().ok().stdout()
            };
            let binary = desk.binary.to_str().unwrap();
            let (bare, held) = (under(&["env"]), under(&[binary, "run", "--"]));
            assert!(bare.lines().count() > 40, "{bare}");
            // The one variable that a run adds: git is asked for no lock that it can do without.
            assert_eq!(held.replace("GIT_OPTIONAL_LOCKS=0\n", ""), bare, "{:?}: {before}", desk.who);
        }
    });
}

#[test]
fn further_groups_of_a_user_count_for_reading_in_a_run_and_root_s_are_all_there() {
    if !is_root() || !has("setpriv") {
        return eprintln!("skipped: other groups need root");
    }
    each(|desk| {
        let file = desk.world.root().join("of-group");
        std::fs::write(&file, "secret").unwrap();
        let chown = format!("chown 0:4444 {0}; chmod 640 {0}", file.display());
        desk.world.program("sh", ["-ec", &chown]).run().ok();
        let user = if desk.who == Who::Root { 0 } else { USER }.to_string();
        let (binary, file) = (desk.binary.to_str().unwrap(), file.to_str().unwrap());
        let words =
            ["--reuid", &user, "--regid", &user, "--groups", "4444,5555", binary, "run", "--", "sh", "-c", "cat $0; id -G", file];
        let said = desk.world.program("setpriv", words).run().ok();
        // A user namespace shows them as 65534, one for both.
        let groups = if desk.who == Who::Root { "0 4444 5555" } else { "54321 65534" };
        assert_eq!(said.stdout(), format!("secret{groups}\n"), "{said}");
    });
}

#[test]
fn descriptors_0_to_2_are_the_caller_s_pipes_stay_and_ways_out_are_closed() {
    each(|desk| {
        desk.made("mkdir directory; echo read > read; echo write > write");
        // 3: a pipe, as make hands one on; 4: a directory; 5: a file to write; 6: one to read; 7: a terminal's or null's node.
        let caller = "{ \"$@\"; } 3>&1 4< directory 5>> write 6< read 7> /dev/null < read > out 2> err | cat > piped";
        let script = "echo to 1; echo to 2 >&2; cat; echo to 3 >&3; for n in 4 5; do test -e /proc/self/fd/$n && echo $n is open; done; \
                      cat <&6; echo null >&7; echo by name >> write; true";
        let binary = desk.binary.to_str().unwrap();
        let words = ["-c", caller, "sh", binary, "run", "-q", "--discard", "--", "sh", "-c", script];
        desk.give(desk.world.program("sh", words)).run().ok();
        let read = |name: &str| desk.world.read(name);
        assert_eq!(read("out"), "to 1\nread\nread\n", "{:?}", desk.who);
        assert!(read("err").contains("to 2\n"), "{}", read("err"));
        for closed in ["descriptor 4 (", "descriptor 5 ("] {
            assert!(read("err").contains(closed), "{}", read("err"));
        }
        // Input that the caller opened for writing, too, and a device above 2.
        let node = if desk.who == Who::Root { "mknod null c 1 3; chmod 600 null" } else { "ln -s /dev/null null" };
        desk.made(node);
        let caller = "{ \"$@\"; } 0<> read 9<> null";
        let script = "echo over >&0; python3 -c 'import os; os.fchmod(9, 0o666)'; cat read";
        let words = ["-c", caller, "sh", binary, "run", "-q", "--discard", "--", "sh", "-c", script];
        let said = desk.give(desk.world.program("sh", words)).run();
        assert_eq!((said.stdout(), read("read")), ("over\n".into(), "read\n".into()), "{:?}: {said}", desk.who);
        assert_eq!(desk.world.path("null").metadata().unwrap().mode() & 0o077, if desk.who == Who::Root { 0 } else { 0o066 });
        assert_eq!((read("piped"), read("write")), ("to 3\n".into(), "write\n".into()), "{:?}", desk.who);
    });
}

#[test]
fn a_person_at_a_terminal_notices_nothing() {
    if !has("python3") {
        return;
    }
    each(|desk: &Desk| {
        let script = desk.world.root().join("people.py");
        std::fs::write(&script, include_str!("terminals/people.py")).unwrap();
        std::fs::write(desk.world.root().join("terminal.py"), include_str!("terminals/terminal.py")).unwrap();
        let who = format!("{:?}", desk.who);
        let words = [script.to_str().unwrap(), desk.binary.to_str().unwrap(), &who];
        let output = desk.give(desk.world.program("python3", words)).command().stdin(Stdio::null()).output().unwrap();
        let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && said.lines().count() >= 2, "{who}: {said}{errors}");
        errors.lines().for_each(|line| eprintln!("{line}"));
        said.lines().for_each(|line| println!("{line}, {who}"));
    });
}

#[test]
fn what_a_person_types_in_a_held_shell_stays_in_its_history() {
    if !has("python3") {
        return;
    }
    each(|desk: &Desk| {
        for (name, text) in
            [("history.py", include_str!("terminals/history.py")), ("terminal.py", include_str!("terminals/terminal.py"))]
        {
            std::fs::write(desk.world.root().join(name), text).unwrap();
        }
        // zsh keeps five lines, so that it cuts its history; fish would make completions of all manual pages.
        let home = desk.world.root().join("home");
        let setup = "echo 'HISTFILE=~/.zsh_history SAVEHIST=5 HISTSIZE=5' > .zshrc; \
                     mkdir -p ../data/fish/generated_completions .cache/fish/generated_completions";
        desk.bare(&home, setup);
        let (bash, zsh, fish) =
            (home.join(".bash_history"), home.join(".zsh_history"), desk.world.root().join("data/fish/fish_history"));
        for (shell, count, kept, file) in [("bash", 4, 4, &bash), ("zsh", 9, 4, &zsh), ("fish", 40, 40, &fish)] {
            if !has(shell) {
                continue;
            }
            let script = desk.world.root().join("history.py");
            let words = [script.to_str().unwrap(), desk.binary.to_str().unwrap(), &count.to_string()];
            desk.give(desk.world.program("python3", words)).env("SHELL", format!("/usr/bin/{shell}")).run().ok();
            let text = std::fs::read_to_string(file).unwrap();
            assert_eq!(text.matches("echo typed-").count(), kept, "{:?}, {shell}: {text}", desk.who);
            assert!(text.contains("echo x > held; exit") && !desk.world.exists("held"), "{shell}: {text}");
            let held = desk.recant("diff last --name-only").ok().stdout();
            assert!(held.lines().any(|path| path.ends_with("tree/held")) && !held.contains("history"), "{shell}: {held}");
        }
        // One that was missing and stayed empty goes again.
        std::fs::remove_file(&bash).unwrap();
        let shell = |words: &[&str], script: &str| {
            let call = desk.call([&["shell"], words].concat()).env("SHELL", "/usr/bin/bash");
            call.stdin(script).run().ok()
        };
        let said = shell(&[], "ls -A ~ | grep bash_history\n");
        assert!(said.stdout().contains(".bash_history") && !bash.exists(), "{said}");
        // What the session holds of it the shell has to see.
        desk.held("--session typed", "echo held >> ~/.bash_history").run().ok();
        let said = shell(&["typed"], "cat ~/.bash_history\n");
        assert!(said.stdout() == "held\n" && said.stderr().contains("a shell with every file change held; 'exit'"), "{said}");
        assert!(!bash.exists());
    });
}
