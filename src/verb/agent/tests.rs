//! A made-up agent, from its installation to its end: a file and a line of the table are enough for it.

use std::process::Stdio;
use std::rc::Rc;

use super::hook::{Told, hook};
use super::install::{Asked, Deed, edit};
use super::status::status;
use super::take_snapshots::Taking;
use super::take_snapshots::take;
use crate::agent::{Agent, Scope, Surroundings, Turns};
use crate::fs::AbsPath;
use crate::settings::Settings;
use crate::verb::desk::{CalledFrom, Desk};
use crate::verb::silent::Silent;

#[test]
fn an_agent_with_a_file_and_a_line_in_the_table_is_installed_heard_listed_and_taken_out() {
    let [home, project, store] = [(), (), ()].map(|()| tempfile::tempdir().unwrap());
    let path = |dir: &tempfile::TempDir| AbsPath::parse(dir.path().canonicalize().unwrap().to_str().unwrap()).unwrap();
    // Each call has a desk of its own.
    let desk =
        || Desk::new(Settings::defaults(None, None), Rc::new(Silent { store: path(&store) }), (true, false, CalledFrom::Here));
    let around = Surroundings { home: path(&home), project: path(&project), variable: &|_| None };
    let agent = Agent::of("zed9").unwrap();
    let edited = |deed| {
        let asked = Asked { deed, agent, scope: Scope::Project, dry_run: false, around: &around, show: &|_| Ok(()) };
        edit(&desk(), &asked).unwrap()
    };

    assert_eq!(edited(Deed::Install).files[0].edit.word(), "created");
    let settings = project.path().join(".zed9/config.json");
    let text = std::fs::read_to_string(&settings).unwrap();
    assert!(text.contains(r#""Reaches": ["#) && text.contains("recant hook zed9") && text.contains(r#""timeout": 3"#), "{text}");

    let start = |when, directory: &AbsPath, n| {
        take(&desk(), when, directory, n)?;
        Ok(Taking(crate::fs::command("true").stdout(Stdio::piped()).spawn().unwrap()))
    };
    for event in [r#""event":"Asked","prompt":"do it""#, r#""event":"Reaches","tool":"scribble","args":{"path":"a"}"#] {
        let text = format!(r#"{{"session":"s","cwd":"{}",{event}}}"#, path(&project));
        let told = Told { agent, text: text.as_bytes(), began: crate::fs::now(), variable: &|_| None, start: &start };
        assert!(hook(&desk(), &told).unwrap().is_none(), "{event}");
    }
    let reading = desk();
    let turns = Turns::open(reading.store().unwrap().unwrap(), &path(&project)).unwrap().unwrap();
    let turn = turns.turn(1).unwrap().unwrap();
    assert_eq!((&*turn.head.prompt, turn.covered, turn.calls[0].paths.len()), ("do it", true, 1));

    let status = status(&reading, &around, None).unwrap();
    let judged = &status.agents[..];
    assert_eq!(judged.iter().map(|judged| judged.known.name).collect::<Vec<_>>(), ["Zed Nine"]);
    assert_eq!(judged[0].known.last.as_ref().map(|seen| &*seen.event), Some("Reaches"));
    assert!(judged[0].problems.iter().any(|problem| problem.why == "it is asleep"));

    assert_eq!(edited(Deed::Uninstall).files[0].edit.word(), "deleted");
    assert!(!settings.exists());
}
