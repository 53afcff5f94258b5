//! What people run, held: each program's changes are committed, then taken back, and then the program is run bare in the same
//! place: the same files, content, modes and links come of it. Prints a table; what is not installed is skipped by name.

use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::common::{Manifest, manifest};
use crate::desk::{Desk, Who, each, has, is_root, settled};
use crate::mounts::own_mounts;

/// A program at work.
struct Case {
    name: &'static str,
    /// The programs that it needs.
    needs: &'static [&'static str],
    /// Makes what it works on.
    made: &'static str,
    script: &'static str,
    /// Ends of names of files of which the content differs from run to run: times, inode numbers, random numbers.
    varies: &'static [&'static str],
}

const GIT: &str = "export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@t GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@t \
                   GIT_AUTHOR_DATE='2020-01-01 00:00 +0000' GIT_COMMITTER_DATE='2020-01-01 00:00 +0000' GIT_CONFIG_COUNT=2 \
                   GIT_CONFIG_KEY_0=init.defaultBranch GIT_CONFIG_VALUE_0=main GIT_CONFIG_KEY_1=pack.threads GIT_CONFIG_VALUE_1=1\n";

const CASES: &[Case] = &[
    Case {
        name: "git clone, commit, mv, gc, worktree",
        needs: &["git"],
        made: "git init -q origin; cd origin; mkdir d e; for n in $(seq 40); do seq $n 200 > d/$n; done; echo e > e/e; git add -A; git commit -qm one",
        script: "git clone -q --no-hardlinks origin clone; cd clone; echo more >> d/1; git rm -q d/2; git add -A; git commit -qm two; \
                 git worktree add -q ../tree HEAD~1; git gc -q --prune=now; git checkout -q -b other HEAD~1; git fsck --strict 2>&1; \
                 cd ../origin; echo x > d/3; git stash -q; git stash pop -q; git reset -q --hard",
        varies: &["index", "logs/HEAD", "ORIG_HEAD"],
    },
    Case {
        name: "make and install below a prefix",
        needs: &["make", "gcc"],
        made: "printf 'int main(void) { return 0; }\\n' > main.c; printf 'prog: main.c\\n\\tcc -o prog main.c\\ninstall: prog\\n\\tinstall -d $(PREFIX)/bin $(PREFIX)/share\\n\
               \\tinstall -m 4755 prog $(PREFIX)/bin/prog\\n\\tln -sf prog $(PREFIX)/bin/alias\\n\\tinstall -m 0444 main.c $(PREFIX)/share\\n' > Makefile; mkdir -p usr/bin; echo old > usr/bin/prog",
        script: "make -s install PREFIX=$PWD/usr; touch main.c; make -s",
        varies: &[],
    },
    Case {
        name: "tar and unzip",
        needs: &["tar", "unzip", "python3"],
        made: "mkdir -p src/a; for n in $(seq 200); do echo $n > src/a/$n; done; ln src/a/1 src/l; ln -s a/2 src/s; mkfifo src/p; chmod 6755 src/a/3; chmod 1777 src/a; \
               touch -d 2001-01-01 src/a/4; tar cf src.tar src; tar cf owned.tar --owner=1234 --group=4321 src; python3 -m zipfile -c src.zip src/a/5 src/a/6; rm -r src/a/7",
        script: "tar xf src.tar; mkdir out; tar xpf src.tar -C out; cd out; unzip -q ../src.zip; rm -r src/a; tar xf ../src.tar; mkdir owned; tar xpf ../owned.tar -C owned",
        varies: &[],
    },
    Case {
        name: "rsync -aH --delete",
        needs: &["rsync"],
        made: "mkdir -p from/d to/d; for n in $(seq 100); do seq $n > from/d/$n; seq $((n / 2)) > to/d/$n; done; ln from/d/1 from/x; touch to/gone; mkdir to/old; touch to/old/o; find from -depth -exec touch -d 2001-01-01 {} +",
        script: "rsync -aH --delete from/ to/; rsync -aH --inplace --backup --backup-dir=../bak from/d/ to/d/; rsync -a from copy",
        varies: &[],
    },
    Case {
        name: "sed -i over 500 files, patch",
        needs: &["patch"],
        made: "mkdir d; for n in $(seq 500); do echo \"line $n\" > d/$n; done; cp d/7 7.old; echo changed >> 7.old; diff -u d/7 7.old > p || true",
        script: "sed -i s/line/row/ d/*; sed -i s/row/line/ d/7; patch -s d/7 < p; sed -i.bak 1d d/1*",
        varies: &[],
    },
    Case {
        name: "sqlite3 with WAL",
        needs: &["sqlite3"],
        made: "sqlite3 db 'create table t(a); insert into t values (1)'",
        script: "sqlite3 db 'pragma journal_mode=wal; insert into t select 2; create index i on t(a); pragma wal_checkpoint(truncate)'; sqlite3 db 'delete from t; vacuum'; \
                 sqlite3 db .dump > dump; sqlite3 new < dump",
        varies: &[],
    },
    Case {
        name: "vim and editors that rename",
        needs: &["vim"],
        made: "echo one > a; echo two > b; echo two > d; ln b c; chmod 640 a; touch -d 2003-03-03 a",
        script: "vim -u NONE -es '+%s/one/1/' +wq a < /dev/null; vim -u NONE -es '+set backupcopy=no' '+%s/two/2/' +wq d < /dev/null; cp a a.tmp; mv a.tmp a",
        varies: &[],
    },
    Case {
        name: "mv, cp, rm -rf, chmod -R, ln",
        needs: &[],
        made: "mkdir -p d/e/f g; for n in $(seq 300); do echo $n > d/e/$n; done; ln d/e/1 d/e/f/l; echo g > g/g",
        script: "mv d moved; cp -a --reflink=auto moved copy; chmod -R go-rwx copy; rm -rf moved/e; ln copy/e/2 link; ln -s nowhere g/dangling; mv g/g g/h; mkdir d; mv copy/e d/; rmdir copy; truncate -s 1M sparse",
        varies: &[],
    },
    Case {
        name: "Python: O_TMPFILE, mmap, fallocate, exchange, holes",
        needs: &["python3"],
        made: "echo a > a; echo b > b; mkdir x y; echo x > x/f; head -c 100000 /dev/zero > m; python3 -c 'open(\"s\", \"wb\").truncate(1 << 23)'",
        script: r#"python3 -c '
import ctypes, mmap, os
fd = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600); os.write(fd, b"tmp"); os.link(f"/proc/self/fd/{fd}", "linked", src_dir_fd=os.open(".", 0), follow_symlinks=True)
with open("m", "r+b") as f:
    with mmap.mmap(f.fileno(), 0) as m: m[5:9] = b"mmap"
os.posix_fallocate(os.open("alloc", os.O_CREAT | os.O_RDWR), 0, 1 << 20)
libc = ctypes.CDLL(None, use_errno=True)
assert libc.renameat2(-100, b"a", -100, b"b", 2) == 0
os.pwrite(os.open("s", os.O_RDWR), b"data", 4 << 20)
with open("m", "ab") as f: f.write(b"more")
os.copy_file_range(os.open("m", os.O_RDONLY), os.open("cfr", os.O_CREAT | os.O_WRONLY), 5000)
os.utime("x/f", ns=(5, 7)); os.setxattr("x/f", "user.mark", b"value"); os.chmod("y", 0o2755)
'"#,
        varies: &[],
    },
    Case {
        name: "rm -rf and cp -a of a tree of 500 files",
        needs: &[],
        made: "mkdir -p t/a t/b/c; cd t; for d in a b b/c; do (cd $d; seq 170 | split -l 1 -a 4 - f); done; ln b/faabc b/c/linked; ln -s ../a b/to-a; chmod 555 b/c",
        script: "cp -a t copy; chmod 755 t/b/c copy/b/c; rm -rf t; mv copy/a t; find copy -name '*ab*' -delete",
        varies: &[],
    },
    Case {
        name: "ssh-keygen, and files that nobody else may read",
        needs: &["ssh-keygen"],
        made: "mkdir -m 700 .ssh; echo old > .ssh/known_hosts; chmod 600 .ssh/known_hosts",
        script: "id -un > /dev/null || exit 77; ssh-keygen -q -t ed25519 -N '' -C test -f .ssh/key; chmod 400 .ssh/key; echo new >> .ssh/known_hosts; ssh-keygen -q -R new -f .ssh/known_hosts 2>/dev/null || true",
        varies: &["key", "key.pub", "known_hosts.old"],
    },
    Case {
        name: "a server on a Unix socket, and its clients",
        needs: &["python3"],
        made: "mkdir run; echo 0 > count",
        script: r#"python3 -c '
import os, socket, threading
server = socket.socket(socket.AF_UNIX); server.bind("run/socket"); server.listen()
def serve():
    for n in range(20):
        with server.accept()[0] as one: open("count", "w").write(one.recv(9).decode())
thread = threading.Thread(target=serve); thread.start()
for n in range(20):
    with socket.socket(socket.AF_UNIX) as one: one.connect("run/socket"); one.send(str(n).encode())
thread.join(); os.mkfifo("run/pipe"); os.chmod("run/socket", 0o600)
'"#,
        varies: &[],
    },
    Case {
        name: "a build in many processes",
        needs: &["make", "gcc"],
        made: "for n in $(seq 12); do echo \"int f$n(void) { return $n; }\" > $n.c; done; printf 'all: $(patsubst %%.c,%%.o,$(wildcard *.c))\\n\\tar rcD all.a $^\\n' > Makefile",
        script: "make -s -j4; rm 3.o; make -s -j4; make -s -j4",
        varies: &[],
    },
];

/// Those that take long.
const LONG: &[Case] = &[
    Case {
        name: "python -m venv and pip install",
        needs: &["python3", "pip3"],
        made: "mkdir -p pkg/demo; echo 'x = 1' > pkg/demo/__init__.py; \
               printf 'from setuptools import setup\\nsetup(name=\"demo\", version=\"1\", packages=[\"demo\"])\\n' > pkg/setup.py",
        script: "/usr/bin/python3 -m venv --without-pip --system-site-packages env; \
                 env/bin/python -m pip install -q --no-index --no-build-isolation --no-deps ./pkg || exit 77; \
                 env/bin/python -c 'import demo'; env/bin/python -m pip uninstall -q -y demo",
        varies: &[".pyc", ".whl"],
    },
    Case {
        name: "npm install of a local package",
        needs: &["npm"],
        made: "mkdir dep app; printf '{\"name\":\"dep\",\"version\":\"1.0.0\",\"bin\":{\"dep\":\"dep.js\"}}' > dep/package.json; printf '#!/usr/bin/env node\\n' > dep/dep.js; \
               cd dep && npm pack --silent --pack-destination ../app > /dev/null; cd ../app; printf '{\"name\":\"app\",\"version\":\"1.0.0\"}' > package.json",
        script: "cd app; npm install --silent --offline --no-audit --no-fund ./dep-1.0.0.tgz; rm -r node_modules; npm ci --silent --offline --no-audit --no-fund",
        varies: &[],
    },
    Case {
        name: "cargo build of a small crate",
        needs: &[],
        made: "mkdir -p app/src dep/src; printf '[package]\nname = \"dep\"\nversion = \"0.1.0\"\nedition = \"2021\"\n' > dep/Cargo.toml; echo 'pub fn f() -> u32 { 7 }' > dep/src/lib.rs; \
               printf '[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\nbuild = \"build.rs\"\n[dependencies]\ndep = { path = \"../dep\" }\n' > app/Cargo.toml; \
               echo 'fn main() { println!(\"cargo:rustc-env=X=1\"); }' > app/build.rs; echo 'fn main() { println!(\"{}{}\", dep::f(), env!(\"X\")); }' > app/src/main.rs",
        script: "test -x TOOLS/cargo || exit 77; export PATH=TOOLS:$PATH CARGO_HOME=$PWD/home CARGO_INCREMENTAL=0; cd app; cargo build -q --offline; test $(target/debug/app) = 71; \
                 echo '// more' >> src/main.rs; cargo build -q --offline; cargo clean -q -p dep --offline; cargo build -q --offline",
        varies: &[
            ".json",
            ".timestamp",
            "dep-lib-dep",
            "dep-bin-app",
            "dep-build-script-build-script-build",
            "output",
            "run-build-script-build-script-build",
            "bin-app",
            ".global-cache",
        ],
    },
];

/// The directory of the real cargo and rustc, behind rustup's proxies, which look for their own things in the user's home.
fn tools() -> String {
    let cargo = Path::new(env!("CARGO"));
    cargo.parent().map_or_else(String::new, |directory| directory.display().to_string())
}

/// The times of what the program made are of its run; the content of some files is, too.
fn compared(manifest: Manifest, since: SystemTime, varies: &[&str]) -> Manifest {
    let mut settled = settled(manifest, since);
    for (path, row) in &mut settled.0 {
        if varies.iter().any(|end| path.ends_with(end.as_bytes())) && row.content.starts_with("file") {
            row.content = "varies".into();
        }
        // One that git wrote anew with the same entries is no change of a run, and keeps its time.
        if path.ends_with(b"/.git/index") {
            row.mtime = (i64::MAX, 0);
        }
    }
    settled
}

#[test]
fn what_people_run_leaves_the_same_held_and_committed_as_bare_and_comes_off_exactly() {
    play(CASES);
}

#[test]
#[ignore = "long: pip, npm and cargo"]
fn what_installers_and_builds_leave_is_the_same_held_and_committed_as_bare_and_comes_off_exactly() {
    play(LONG);
}

fn play(cases: &[Case]) {
    let tools = tools();
    for case in cases {
        if !case.needs.iter().all(|program| has(program)) {
            continue;
        }
        each(|desk| {
            let what = format!("{}, as {:?}", case.name, desk.who);
            desk.made(&format!("set -e; {GIT}{}", case.made));
            let script = format!("set -e; {GIT}{}", case.script.replace("TOOLS", &tools));
            let before = desk.world.manifest();
            let since = SystemTime::now();
            std::thread::sleep(Duration::from_millis(25));

            let said = desk.run(&script);
            if said.status == 77 {
                return eprintln!("skipped: {what}: the program can't do it here: {said}");
            }
            assert_eq!(said.status, 0, "{what}: {said}");
            desk.world.manifest().assert_same(&before, &format!("{what}: held"));
            desk.recant("commit last").ok();
            let after = desk.world.manifest();
            desk.recant("rollback last").ok();
            desk.world.manifest().assert_same(&before, &format!("{what}: rolled back"));
            desk.recant("redo last").ok();
            desk.world.manifest().assert_same(&after, &format!("{what}: made again"));
            desk.recant("rollback last").ok();

            desk.bare(&desk.world.tree(), &script);
            let bare = compared(desk.world.manifest(), since, case.varies);
            compared(after, since, case.varies).assert_same(&bare, &format!("{what}: as bare"));
            println!("{:<55} {:<5} held, committed as bare, rolled back, redone", case.name, format!("{:?}", desk.who));
        });
    }
}

/// What a root's programs change of the system. The directories that they work on are copies, mounted over the real ones for this
/// thread: nothing else on the machine is touched.
struct System {
    /// Copy and real one.
    directories: Vec<(std::path::PathBuf, &'static str)>,
}

impl System {
    fn copy(desk: &Desk) -> Self {
        own_mounts();
        let mut directories = Vec::new();
        for (n, (real, full)) in [
            ("/etc", true),
            ("/opt", false),
            ("/usr/local", false),
            ("/var/lib/dpkg", true),
            ("/var/lib/apt", false),
            ("/var/cache/apt", false),
            ("/var/log", false),
            ("/home", false),
        ]
        .into_iter()
        .enumerate()
        {
            let copy = desk.world.root().join(format!("system-{n}"));
            std::fs::create_dir(&copy).unwrap();
            if full {
                assert!(
                    std::process::Command::new("cp").arg("-a").arg(format!("{real}/.")).arg(&copy).status().unwrap().success()
                );
            }
            rustix::mount::mount_bind(&copy, real).unwrap();
            directories.push((copy, real));
        }
        for below in ["/var/lib/apt/lists/partial", "/var/cache/apt/archives/partial", "/var/log/apt"] {
            std::fs::create_dir_all(below).unwrap();
        }
        Self { directories }
    }

    fn manifests(&self) -> Vec<Manifest> {
        self.directories.iter().map(|(_, real)| manifest(Path::new(real))).collect()
    }

    fn assert_same(&self, wanted: &[Manifest], what: &str) {
        for ((found, wanted), (_, real)) in self.manifests().iter().zip(wanted).zip(&self.directories) {
            found.assert_same(wanted, &format!("{what}: {real}"));
        }
    }
}

#[test]
fn packages_and_users_of_the_system_come_and_go_in_a_run_of_root() {
    if !is_root() {
        return eprintln!("skipped: packages and users take root");
    }
    if !["apt-get", "dpkg-deb"].iter().all(|program| has(program)) || !Path::new("/usr/sbin/useradd").exists() {
        return eprintln!("skipped: packages and users: no apt-get, dpkg-deb or useradd");
    }
    let desk = Desk::new(Who::Root);
    let system = System::copy(&desk);
    desk.made(
        "set -e; mkdir -p pkg/DEBIAN pkg/opt/demo pkg/etc/demo; echo demo > pkg/opt/demo/file; echo conf > pkg/etc/demo/conf; \
         printf 'Package: recant-demo\\nVersion: 1\\nArchitecture: all\\nMaintainer: t <t@t>\\nDescription: demo\\n' > pkg/DEBIAN/control; \
         echo /etc/demo/conf > pkg/DEBIAN/conffiles; \
         printf '#!/bin/sh\\nmkdir -p /opt/demo/made && echo made > /opt/demo/made/by-postinst\\n' > pkg/DEBIAN/postinst; chmod 755 pkg/DEBIAN/postinst; \
         dpkg-deb -b pkg demo.deb > /dev/null",
    );
    let path =
        "export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive; set -e; ";
    desk.made(
        "printf 'all:\\ninstall:\\n\\tinstall -D -m 4755 demo.deb $(DESTDIR)/usr/local/lib/demo/lib\\n\\tln -sf ../lib/demo/lib $(DESTDIR)/usr/local/bin-demo\\n' > Makefile",
    );
    let install =
        format!("{path} make -s install; apt-get install -y -q $PWD/demo.deb < /dev/null; useradd -m -s /bin/sh recant-demo");
    let remove = format!("{path} apt-get remove -y -q recant-demo < /dev/null; userdel -r recant-demo");
    let before = system.manifests();

    desk.run(&install).ok();
    system.assert_same(&before, "held");
    desk.recant("commit last").ok();
    let installed = system.manifests();
    let query = |package: &str| desk.world.program("dpkg-query", ["-W", "-f", "${Status}", package]).run();
    assert_eq!(query("recant-demo").ok().stdout(), "install ok installed");
    assert_eq!(std::fs::read_to_string("/opt/demo/made/by-postinst").unwrap(), "made\n");
    assert!(std::fs::read_to_string("/etc/passwd").unwrap().contains("recant-demo") && Path::new("/home/recant-demo").exists());

    desk.run(&remove).ok();
    system.assert_same(&installed, "held");
    desk.recant("commit last").ok();
    assert!(
        query("recant-demo").status == 0 && !Path::new("/opt/demo/file").exists() && !Path::new("/home/recant-demo").exists()
    );
    desk.recant("rollback last").ok();
    system.assert_same(&installed, "the removal taken back");
    let first = desk.ids().into_iter().find(|id| desk.status(id) == "committed").unwrap();
    desk.recant(&format!("rollback {first}")).ok();
    system.assert_same(&before, "the installation taken back");
}
