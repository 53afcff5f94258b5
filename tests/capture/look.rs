//! Looking at sessions from inside a run.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use crate::desk::{Desk, Who, each, has, is_root};
use crate::steps::at_terminal;

/// Asks recant for each line of the input inside the run of session `job`, below the project; prints a status after each answer.
const LOOKS: &str = r#"echo x >> f; echo n > new; mkdir sub; cd sub
while read words; do printf '== %s\n' "$words"; "$RECANT" $words 2>&1 < /dev/null; printf -- '-> %s\n' $?; done"#;

/// The answers to `words`, one call of recant inside a run a line: the text, and the status.
fn answers(desk: &Desk, words: &[&str]) -> Vec<(String, i32)> {
    let call = desk.held("-n job", LOOKS).env("RECANT", &desk.binary).stdin(words.join("\n") + "\n");
    let said = call.run().ok().stdout();
    let parts = said.split("== ").skip(1).map(|part| {
        let (_, answer) = part.split_once('\n').unwrap();
        let (text, status) = answer.rsplit_once("-> ").unwrap();
        (text.to_owned(), status.trim().parse().unwrap())
    });
    parts.collect()
}

#[test]
fn what_a_run_holds_and_other_sessions_are_looked_at_from_inside() {
    each(|desk| {
        let before = desk.made("echo a > f; echo g > g");
        desk.recant("run -q -n other -- touch theirs").ok();
        let asked = [
            ("", "running"),
            ("status", "+new"),
            ("show", "+new"),
            ("diff", "+n"),
            ("diff --stat", "/new | 1 +"),
            ("diff job ../f --name-only", "f"),
            ("diff --name-only", "sub"),
            ("steps", "running"),
            ("list", "other"),
            ("list --path ../theirs", "other"),
            ("log --all", ""),
            ("diff other --name-only", "theirs"),
            ("show other", "theirs"),
            ("cat last ../f", "a\nx\n"),
            ("cat job ../f --before", "a\n"),
            ("diff last --with other --name-only", "theirs"),
            ("log ../g", ""),
        ];
        let given: Vec<&str> = asked.iter().map(|(words, _)| *words).collect();
        let told = answers(desk, &given);
        assert_eq!(told.len(), asked.len(), "{told:?}");
        for ((words, has), (text, status)) in asked.iter().zip(&told) {
            let has = has.strip_prefix('+').unwrap_or(has);
            assert!(*status == 0 && text.contains(has), "{words}: {status} {text}");
        }
        // What is asked for by a path of the run is that path, and no other.
        assert!(!told[5].0.contains("new") && !told[9].0.contains("job"), "{told:?}");
        desk.world.manifest().assert_same(&before, "held");
    });
}

#[test]
fn a_run_whose_program_was_replaced_meanwhile_still_answers() {
    each(|desk| {
        let [program, newer] = ["recant", "newer"].map(|name| desk.world.root().join("home").join(name));
        std::fs::copy(&desk.binary, &program).unwrap();
        std::fs::copy(&desk.binary, &newer).unwrap();
        let script = "echo n > new; echo ready; read go; \"$RECANT\" diff --name-only";
        let call = desk.give(desk.world.program(&program, ["run", "--", "sh", "-c", script])).env("RECANT", &desk.binary);
        let mut run = call.command().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(run.stdout.take().unwrap()).lines();
        assert_eq!(said.next().unwrap().unwrap(), "ready");
        std::fs::rename(&newer, &program).unwrap();
        run.stdin.take().unwrap().write_all(b"go\n").unwrap();
        let answer: Vec<String> = said.map(Result::unwrap).collect();
        assert!(answer.len() == 1 && answer[0].ends_with("new"), "{answer:?}");
        assert!(run.wait().unwrap().success());
    });
}

#[test]
fn nothing_but_looks_is_carried_out_from_inside() {
    each(|desk| {
        desk.made("echo a > f");
        desk.recant("run -q -n other -- touch theirs").ok();
        let refused = [
            "commit other",
            "discard other -y",
            "rewind other 0",
            "session write other x",
            "snapshot create .",
            "prune -y",
            "recover",
            "diff --tool=touch",
            "diff other --tool",
            "review other",
            "doctor",
        ];
        for (words, (text, status)) in refused.iter().zip(answers(desk, &refused)) {
            assert!([1, 2].contains(&status) && text.contains("recant: "), "{words}: {status} {text}");
        }
        assert!(!desk.world.exists("theirs"));
        assert_eq!(desk.paths("other"), ["theirs"]);
    });
}

/// Whoever looks in a run need not be a person.
#[test]
fn a_look_from_inside_is_none_of_a_person_s() {
    let desk = &Desk::new(if is_root() { Who::Root } else { Who::User });
    desk.call(["run", "-q", "--session", "s", "--", "touch", "one"]).env("CLAUDECODE", "1").run().ok();
    let look = format!("run -q -n looks -- {} diff s", desk.binary.display());
    let Some((status, said)) = at_terminal(desk, &look, "") else { return };
    assert!(status == 0 && said.contains("one"), "{said}");
    let (status, said) = at_terminal(desk, "commit s", "n\n").expect("as before");
    assert!(status == 1 && said.contains("1 step that you have not looked at"), "{said}");
}

/// What is said about the result comes after its first line, however busy the machine is.
#[test]
fn twenty_looks_at_once_are_answered_in_order() {
    each(|desk| {
        if !has("xargs") {
            return;
        }
        let look = "one=$(\"$RECANT\" show 2>&1); echo \"$one\" | sed -n \"1p; /new$/p\"";
        let script = format!("echo n > new; seq 60 | xargs -P 20 -I{{}} sh -c '{look}'");
        let said = desk.held("", &script).env("RECANT", &desk.binary).run().ok();
        let lines = |is: fn(&&str) -> bool| said.stdout().lines().filter(is).count();
        assert_eq!((lines(|line| line.starts_with("held: ")), lines(|line| line.ends_with("new"))), (60, 60), "{said}");
    });
}

/// The door ends with the run, and who joined a run has the same.
#[test]
fn a_command_that_joined_looks_through_the_same_door() {
    each(|desk| {
        let server =
            desk.held("--session s", "echo up > up; while [ ! -e stop ]; do sleep 0.02; done").command().spawn().unwrap();
        crate::common::until("the first command runs", || {
            let said = desk.recant("diff s --name-only");
            said.status == 0 && said.stdout().contains("up")
        });
        let joins = desk.held("--session s", "echo beside > beside; \"$RECANT\" diff --name-only").env("RECANT", &desk.binary);
        let said = joins.run().ok().stdout();
        assert!(said.contains("up") && said.contains("beside"), "{said}");
        desk.held("--session s", "touch stop").run().ok();
        let mut server = server;
        assert!(server.wait().unwrap().success());
    });
}

/// What a file held that the run hides may be in a session.
#[test]
fn a_run_that_hides_files_sees_names_and_no_content() {
    each(|desk| {
        desk.made("mkdir private; echo sesame > private/key");
        desk.held("-q -n other", "echo new > private/key").run().ok();
        let script = "for form in '' --html --blocks --conflicts -w; do \"$RECANT\" diff other $form; done 2>&1\n\
                      \"$RECANT\" cat other private/key 2>&1; \"$RECANT\" show other; \"$RECANT\" diff other --stat";
        let said = desk.held("--hide private --discard", script).env("RECANT", &desk.binary).run().ok().stdout();
        assert!(!said.contains("sesame") && !said.contains("new\n") && said.contains("private/key | "), "{said}");
        assert!(said.contains("this run hides files, so it shows no content of sessions"), "{said}");
    });
}

#[test]
#[ignore = "long: a look waits for ten seconds"]
fn a_look_that_a_stopped_recant_does_not_take_ends() {
    each(|desk| {
        let mut server =
            desk.held("--session s", "echo up > up; while [ ! -e stop ]; do sleep 0.02; done").command().spawn().unwrap();
        crate::common::until("the first command runs", || desk.recant("diff s --name-only").stdout().contains("up"));
        let send = |signal| rustix::process::kill_process(rustix::process::Pid::from_child(&server), signal).unwrap();
        send(rustix::process::Signal::STOP);
        let said = desk.held("--session s", "\"$RECANT\" status; touch stop").env("RECANT", &desk.binary).run().stderr();
        send(rustix::process::Signal::CONT);
        assert!(said.contains("the recant outside of this run does not answer: it may be stopped"), "{said}");
        assert!(server.wait().unwrap().success());
    });
}

/// Another machine's sessions are no concern of the run.
#[test]
fn a_look_at_another_machine_goes_there() {
    each(|desk| {
        desk.world.config("[remote]\nssh = 'echo never; false'\n");
        let [(text, status)] = &answers(desk, &["-H web1 diff"])[..] else { panic!("one answer") };
        assert!(*status != 0 && text.contains("web1") && !text.contains("only looks"), "{status} {text}");
    });
}
