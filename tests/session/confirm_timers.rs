//! A real systemd, in namespaces of its own, so that nothing of it is seen outside, and nothing of it stays: it takes back a commit that
//! nobody confirms, and its unit one that a crash cut off. As root; what cannot be had is skipped by name.

use std::path::Path;
use std::time::{Duration, Instant};

use super::confirm::scene;
use crate::common::{self, Said, World, is_root};

fn has(programs: &[&str]) -> bool {
    let places = ["/usr/bin", "/usr/sbin", "/bin", "/sbin", "/lib/systemd", "/usr/lib/systemd"];
    programs.iter().all(|program| places.iter().any(|place| Path::new(place).join(program).exists()))
}

const NEEDS: &[&str] = &["systemd", "systemd-run", "systemctl", "nsenter", "unshare"];

/// Ends with 77 what cannot be set up, with the reason on standard error.
const CANNOT: i32 = 77;

/// The commit, in a directory that is gone right after it.
const COMMIT: &str = r#"
mkdir "$WORLD/cwd"; cd "$WORLD/cwd"
$INSIDE "$RECANT" commit "$ID" --confirm-within 2s --json > "$WORLD/said" || exit 1
cd /; rmdir "$WORLD/cwd"
"#;

/// A cgroup of its own, below which systemd's are; nothing of the machine's own units, and no way to its kernel's settings.
const SYSTEMD: &str = r#"
no() { echo "$*" >&2; exit 77; }
cd "$WORLD"; mkdir units groups
for u in default sysinit basic timers shutdown; do printf '[Unit]\nDefaultDependencies=no\n' > units/$u.target; done
mount -t cgroup2 cgroup2 groups && mkdir groups/recant-test-$$ && echo $$ > groups/recant-test-$$/cgroup.procs || no "no cgroup of its own"
cat > boot <<'END'
mount -t tmpfs -o mode=755 tmpfs /run && { umount -l /sys/fs/cgroup || :; } && mount -t cgroup2 cgroup2 /sys/fs/cgroup || exit
mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys || exit
d=/lib/systemd; [ -x $d/systemd ] || d=/usr/lib/systemd
exec env -i PATH="$PATH" container=recant SYSTEMD_UNIT_PATH="$WORLD/units" SYSTEMD_LOG_TARGET=console $d/systemd --system --show-status=no
END
unshare --mount --pid --uts --ipc --cgroup --fork --kill-child --mount-proc sh boot > log 2>&1 & u=$!
tidy() {
    kill -9 $u; wait $u; echo $$ > "$WORLD/groups/cgroup.procs"
    for n in 1 2 3 4 5 6 7 8 9 10; do find "$WORLD/groups/recant-test-$$" -depth -type d -exec rmdir {} + && break; sleep 0.2; done
} 2>/dev/null
trap tidy EXIT
n=0; p=
# No newline ends it.
until { read p < /proc/$u/task/$u/children; } 2>/dev/null; [ -n "$p" ] && [ "$(nsenter -t $p -m -p systemctl is-active default.target 2>/dev/null)" = active ]; do
    n=$((n+1)); [ $n -lt 300 ] || no "systemd does not start: $(tail -n 3 log)"; sleep 0.1
done
INSIDE="nsenter -t $p -m -p"
"#;

/// Until it is rolled back.
const WAIT: &str = r#"while [ -e "$RECORD" ]; do sleep 0.05; done"#;

/// A script in mount and process namespaces of its own: `unshare` takes all that it started along.
fn apart(world: &World, id: &str, unshare: &[&str], script: &str) -> Said {
    let inside = ["sh", "-c", script];
    let words = ["-k", "5", "90", "unshare"].iter().chain(unshare).chain(&inside).copied();
    let call = world.program("timeout", words).env("RECANT", common::recant()).env("ID", id).env("WORLD", world.root());
    call.env("RECORD", world.store().join("unconfirmed").join(id)).env("INSIDE", "").run()
}

fn taken_back_by(by: &str, needs: &[&str], unshare: &[&str], setting: &str) {
    if !is_root(by) {
        return;
    }
    if !has(needs) {
        return common::skip(&format!("{by}: one of {needs:?} is not installed"));
    }
    let (world, id, before) = scene();
    let start = Instant::now();
    let said = apart(&world, &id, unshare, &format!("{setting}{COMMIT}{WAIT}"));
    if said.status == CANNOT {
        return common::skip(&format!("{by}: {}", said.stderr()));
    }
    let said = said.ok();
    assert!(start.elapsed() >= Duration::from_secs(2), "{said}");
    let report: serde_json::Value =
        serde_json::from_slice(&std::fs::read(world.root().join("said")).expect("the commit's word")).expect("JSON");
    assert!(report["confirm"]["by"].as_str().is_some_and(|word| word.starts_with(by)), "{report}");
    assert_eq!(report["status"], "committed", "{report}");
    assert_eq!(world.status(&id), "rolled_back");
    before.assert_same(&world.manifest(), "rolled back by itself");
    let log = world.recant("log --json").ok().stdout();
    assert!(log.contains("\"result\":\"not confirmed\""), "{log}");
    world.assert_tidy(by);
}

/// The two units, for the world's home, and the crash that each has to end: what began them is the target that wants them.
const BOOT: &str = r#"
{ sed "s|/root|$HOME|; s|/usr/bin/recant|$RECANT|" "$UNITS/recant-recover.system" > units/recant-recover.service &&
    mkdir units/multi-user.target.d && cp "$UNITS/wants.conf" units/multi-user.target.d/recant.conf &&
    printf '[Unit]\nDefaultDependencies=no\n' > units/multi-user.target && cp units/multi-user.target units/local-fs.target &&
    $INSIDE systemctl daemon-reload && $INSIDE systemctl start multi-user.target; } || exit 1
"#;

#[test]
#[ignore = "long: a real systemd"]
fn its_unit_ends_at_boot_what_a_crash_cut_off() {
    let what = "systemd at boot";
    if !is_root(what) {
        return;
    }
    if !has(NEEDS) {
        return common::skip(&format!("{what}: one of {NEEDS:?} is not installed"));
    }
    let (mut world, id, before) = scene();
    let store = world.root().join("home/.local/share/recant");
    std::fs::create_dir_all(store.parent().unwrap()).unwrap();
    std::fs::rename(world.store(), &store).unwrap();
    world.set("RECANT_STORE", &store);
    let is_half = |n: &u32| {
        assert_eq!(world.call(["commit", &id]).env("RECANT_STEPS", format!("kill:{n}")).run().status, 137, "step {n}");
        world.manifest() != before
    };
    assert!((1..).find(is_half).is_some());
    let call = |script: &str| {
        let words = ["-k", "5", "90", "unshare", "--mount", "sh", "-c", script];
        let units = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/systemd");
        let call = world.program("timeout", words).env("RECANT", common::recant()).env("WORLD", world.root()).env("UNITS", units);
        call.env("HOME", world.root().join("home")).run()
    };
    let wait = "for n in $(seq 100); do $INSIDE systemctl show -p Result,ActiveState,ExecMainExitTimestampMonotonic \
                recant-recover.service > said; grep -q 'Monotonic=[1-9]' said && break; sleep 0.1; done; cat said";
    let said = call(&format!("{SYSTEMD}{BOOT}{wait}"));
    if said.status == CANNOT {
        return common::skip(&format!("{what}: {}", said.stderr()));
    }
    let said = said.ok();
    assert!(said.stdout().contains("Result=success"), "{said}");
    before.assert_same(&world.manifest(), "undone at boot");
}

#[test]
#[ignore = "long: a real systemd"]
fn a_timer_of_a_real_systemd_takes_back_what_nobody_confirms() {
    taken_back_by("systemd", NEEDS, &["--mount"], SYSTEMD);
}
