//! An agent that does not exist: what the tests do with it, recant does with any agent that has a file and a line in the table.

use super::facts::{Answers, Dialect, Facts, Form, Moment, Named, Settings, State};
use super::surroundings::Surroundings;
use crate::fs::AbsPath;

pub const FACTS: Facts = Facts {
    word: "zed9",
    name: "Zed Nine",
    variables: &["ZED9"],
    session: Some("ZED9_SESSION"),
    events: &[
        Named::hooked("ThreadOpens", Moment::SessionStart),
        Named::hooked("Asked", Moment::Prompt),
        Named::hooked("Reaches", Moment::BeforeTool),
        Named::hooked("Rests", Moment::TurnEnd).within(3),
    ],
    reading: "peruse",
    writing: "scribble",
    settings: Settings {
        home,
        project: ".zed9",
        files: &[("config.json", Form::Groups)],
        dialect: Dialect { named: true, ..Dialect::USUAL },
        ..Settings::PLAIN
    },
    state: State { directory: home, pass: &["key"], records: &["threads/**"], ..State::PLAIN },
    answers: Answers::Json,
    stops: |_| vec!["it is asleep".into()],
    back: |session, _| vec![format!("the conversation: zed9 --thread {session}")],
    ..Facts::PLAIN
};

fn home(around: &Surroundings<'_>) -> AbsPath {
    around.named_or("ZED9_HOME", ".zed9")
}
