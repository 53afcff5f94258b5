//! What an older version left is held, committed and taken back by this one.

use insta::assert_snapshot;

use crate::common::{self, World, recant};

/// Uses, with the program `$0`, a home directory that 0.1.0 left: `$1`, an archive of `/mnt/ann`. Its names are absolute, so it is unpacked
/// there, in a mount namespace of its own.
const USE: &str = r#"
    mount -t tmpfs none /mnt && tar -xz --xattrs --xattrs-include='*' -C /mnt -f "$1" && cd /mnt/ann/app || exit 1
    export HOME=/mnt/ann; unset XDG_DATA_HOME XDG_CONFIG_HOME RECANT_STORE
    state() {
        echo "$1:"
        for file in $(find . -type f | sort); do echo "  $file $(stat -c %a "$file") $(tail -n 1 "$file")"; done
    }
    each() { verb=$1; shift; for session in "$@"; do "$recant" -q "$verb" -y "$session" || exit 1; done; }
    recant=$0
    state 'as it was'
    each rollback one; state 'rolled back'
    each redo one two; each commit held whole staged
    state 'all committed'
    each rollback two staged whole held; state 'taken back'
    "$recant" -q snapshot restore 0 --force . || exit 1; state 'restored'
    "$recant" -q snapshot create . && "$recant" run -q --session held -- sh -c 'echo more >> a' && each commit held && state 'gone on with'
"#;

#[test]
fn what_0_1_0_left_is_committed_and_taken_back() {
    if !common::is_root("a home directory that 0.1.0 left") {
        return;
    }
    let world = World::new();
    let left = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/store-0.1.0.tar.gz");
    let said = world.program("unshare", ["-m", "sh", "-c", USE, recant(), left]).run().ok();
    assert_snapshot!(said.stdout(), @"
    as it was:
      ./Makefile 644 all:
      ./a 640 x
      ./d/c 644 n
      ./p 644 p
    rolled back:
      ./Makefile 644 all:
      ./a 640 20
      ./b 644 20
      ./p 644 p
    all committed:
      ./Makefile 644 all:
      ./a 640 h
      ./e/c 644 n
      ./late 644 late
      ./p 644 p
      ./q 644 q
      ./staged 644 s
      ./two 644 
    taken back:
      ./Makefile 644 all:
      ./a 640 x
      ./d/c 644 n
      ./p 644 p
    restored:
      ./Makefile 644 
      ./a 640 x
      ./d/c 644 n
      ./p 644 p
    2
    gone on with:
      ./Makefile 644 
      ./a 640 more
      ./e/c 644 n
      ./late 644 late
      ./p 644 p
    ");
}
