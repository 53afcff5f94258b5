//! The facts about each verb, a row each: completion, the guard, recovery and tests read them.

use super::resolve::wanted_act::Want;

/// A verb.
#[derive(Debug)]
pub struct Row {
    /// Its words: `commit`, `snapshot restore`.
    pub name: &'static str,
    /// The act that it wants of the session which it names; `None` if it names none, or finds it in its own way.
    pub wants: Option<Want>,
    /// Its effect, unless it only tells what it would do.
    pub effect: Effect,
    pub decider: Decider,
}

/// The effect of a verb that ended well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing is changed.
    None,
    /// Nothing is changed, and sessions are shown: a run that was cut off is told first.
    Shows,
    /// Something is changed, in the store or on the tree.
    Changes,
}

/// The one who decides whether it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decider {
    /// Anyone, an agent too.
    Anyone,
    /// A person: it changes real files, or ends the way back.
    Person,
    /// Anyone, but for what somebody else began: it refuses that by itself.
    Owner,
}

use Decider::{Anyone, Owner, Person};
use Effect::{Changes, None as Nothing, Shows};

const fn row(name: &'static str, wants: Option<Want>, effect: Effect, decider: Decider) -> Row {
    Row { name, wants, effect, decider }
}

/// All verbs that are called, those of a group together.
pub static VERBS: [Row; 53] = [
    row("run", Some(Want::GoOn), Changes, Owner),
    row("shell", Some(Want::GoOn), Changes, Owner),
    row("rewind", Some(Want::Rewind), Changes, Owner),
    row("fork", Some(Want::Fork), Changes, Anyone),
    row("session new", None, Changes, Anyone),
    row("session write", Some(Want::Stage), Changes, Owner),
    row("session delete", Some(Want::Stage), Changes, Owner),
    row("session mkdir", Some(Want::Stage), Changes, Owner),
    row("session symlink", Some(Want::Stage), Changes, Owner),
    row("session chmod", Some(Want::Stage), Changes, Owner),
    row("session rename", Some(Want::Tend), Changes, Owner),
    row("session export", Some(Want::Look), Nothing, Anyone),
    row("session import", None, Changes, Anyone),
    row("list", None, Shows, Anyone),
    row("show", Some(Want::Look), Shows, Anyone),
    row("steps", Some(Want::Look), Shows, Anyone),
    row("diff", Some(Want::Look), Shows, Anyone),
    row("review", Some(Want::Look), Shows, Anyone),
    row("cat", Some(Want::Look), Shows, Anyone),
    row("status", None, Nothing, Anyone),
    row("log", None, Shows, Anyone),
    row("await", Some(Want::Look), Shows, Anyone),
    row("commit", Some(Want::Commit), Changes, Person),
    row("confirm", Some(Want::Confirm), Changes, Person),
    row("rollback", Some(Want::RollBack), Changes, Person),
    row("undo", None, Changes, Owner),
    row("redo", Some(Want::Redo), Changes, Person),
    row("discard", Some(Want::Discard), Changes, Owner),
    row("snapshot create", None, Changes, Anyone),
    row("snapshot list", None, Nothing, Anyone),
    row("snapshot show", None, Nothing, Anyone),
    row("snapshot diff", None, Nothing, Anyone),
    row("snapshot restore", None, Changes, Person),
    row("snapshot verify", None, Nothing, Anyone),
    row("agent install", None, Changes, Person),
    row("agent uninstall", None, Changes, Person),
    row("agent status", None, Nothing, Anyone),
    row("agent guide", None, Nothing, Anyone),
    row("agent run", None, Changes, Anyone),
    row("agent turns", None, Nothing, Anyone),
    row("agent diff", None, Nothing, Anyone),
    row("agent undo", None, Changes, Person),
    row("hook", None, Nothing, Anyone),
    row("mcp", None, Nothing, Anyone),
    row("checkpoint list", None, Shows, Anyone),
    row("checkpoint show", Some(Want::Look), Shows, Anyone),
    row("checkpoint verify", None, Shows, Anyone),
    row("recover", None, Changes, Anyone),
    row("prune", None, Changes, Person),
    row("doctor", None, Nothing, Anyone),
    row("config", None, Nothing, Anyone),
    row("completions", None, Nothing, Anyone),
    row("man", None, Nothing, Anyone),
];

/// No verb: how things stand here. So is what only recant itself calls.
static NO_VERB: Row = row("", None, Nothing, Anyone);

/// The row of a verb; that of no verb at all for other words.
pub fn find(name: &str) -> &'static Row {
    VERBS.iter().find(|row| row.name == name).unwrap_or(&NO_VERB)
}
