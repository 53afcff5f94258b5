//! The limit of open files: recant raises its own, and what it starts has the caller's.

use std::path::PathBuf;

use crate::desk::{Desk, each};

/// Plays a session of so many steps in a directory of some depth, with `limit` files that the caller may have open.
fn play(desk: &Desk, limit: u32, steps: usize) {
    let recant = desk.binary.display();
    let script = format!(
        r#"ulimit -Sn {limit}; for i in $(seq {steps}); do
           "{recant}" -q run --session s -- sh -c "mkdir -p a/b/c/d; echo $i > a/b/c/d/f$i" || exit; done"#
    );
    desk.give(desk.world.program("sh", ["-c", &script])).run().ok();
    assert_eq!(desk.paths("s").len(), steps + 4);
    desk.recant("commit s").ok();
    assert!(desk.world.path(format!("a/b/c/d/f{steps}")).exists());
}

#[test]
fn a_session_of_steps_in_nested_directories_goes_on_where_few_files_may_be_open() {
    each(|desk| play(desk, 64, 30));
}

#[test]
#[ignore = "long: two thousand steps"]
fn a_session_of_two_thousand_steps_in_nested_directories_goes_on() {
    each(|desk| play(desk, 1024, 2000));
}

#[test]
fn a_command_and_what_else_is_started_have_the_limit_of_the_caller() {
    each(|desk| {
        let recant = desk.binary.display();
        let limits = desk.world.root().join("limits");
        let tool = format!("sh -c 'ulimit -Sn > {}'", limits.display());
        let script = format!(
            r#"ulimit -Sn 321; "{recant}" -q run -- sh -c "ulimit -Sn; echo x > f; '{recant}' run -- sh -c 'ulimit -Sn'" &&
               "{recant}" diff last --tool "{tool}""#
        );
        let said = desk.give(desk.world.program("sh", ["-c", &script])).run().ok();
        assert_eq!(said.stdout(), "321\n321\n");
        assert_eq!(std::fs::read_to_string::<PathBuf>(limits).unwrap(), "321\n");
    });
}
