//! The ways to use recant, each tried here.

use serde::{Serialize, Serializer};

use super::snapshot as snapshots;
use super::stores;
use super::surroundings::Surroundings;
use crate::agent::Agent;
use crate::capture::Cause;
use crate::capture::run::landlock_scope;
use crate::capture::space::probe;
use crate::error::{Error, Kind};
use crate::remedy::Remedy;
use crate::remote::NearSide;
use crate::session::Store;
use crate::verb::agent::status::{Glance, glance};
use crate::verb::desk::Desk;
use crate::verb::error;
use crate::verb::run::trial::Tried;

/// A way, as it was tried.
#[derive(Debug, Serialize)]
pub struct Way {
    /// The words of the command line, or the agent.
    pub way: String,
    #[serde(rename = "works")]
    pub verdict: Verdict,
    /// The reason, or with what restriction it works.
    pub why: Option<String>,
    /// The one thing to do, a command if there is one.
    pub remedy: Option<Remedy>,
    /// The cause, where it is known.
    #[serde(skip)]
    pub cause: Option<Cause>,
}

/// The result of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Works,
    Fails,
    /// There is nothing here to try it with.
    NotTried,
}

impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Works => serializer.serialize_bool(true),
            Self::Fails => serializer.serialize_bool(false),
            Self::NotTried => serializer.serialize_none(),
        }
    }
}

impl Way {
    fn new(way: impl Into<String>, verdict: Verdict, why: Option<&str>, remedy: Option<Remedy>) -> Self {
        Self { way: way.into(), verdict, why: why.map(str::to_owned), remedy, cause: None }
    }

    fn works(way: &str, note: Option<&str>) -> Self {
        Self::new(way, Verdict::Works, note, None)
    }

    fn fails(way: &str, why: &str, remedy: Option<Remedy>) -> Self {
        Self::new(way, Verdict::Fails, Some(why), remedy)
    }

    /// The way that failed, by its cause where that is known.
    fn of(way: &str, error: &Error) -> Self {
        match error.detail::<Cause>() {
            Some(cause) => Self { cause: Some(cause.clone()), ..Self::fails(way, &cause.why(), Some(cause.remedy())) },
            None if error.kind() == Kind::NoCapture => Self::fails(way, error.why(), error.advice().cloned()),
            None => Self::fails(way, error.message(), error.advice().cloned()),
        }
    }

    fn with_remedy(self, remedy: Option<Remedy>) -> Self {
        Self { remedy: remedy.or(self.remedy), ..self }
    }
}

/// Tries all ways but the two runs, which were tried. `store`: `None` if there is none, for the reason for which no run could be tried.
pub fn all(
    desk: &Desk,
    around: &Surroundings<'_>,
    store: Option<&Store>,
    tried: &Tried,
    in_place: Option<&Error>,
) -> Result<Vec<Way>, Error> {
    let agents = glance(desk, &around.agents)?;
    let run_in =
        in_place.map_or_else(|| Way::works(error::RUN_IN, Some(error::IN_PLACE)), |failed| Way::of(error::RUN_IN, failed));
    let ways = [
        run(desk, around, tried),
        run_in,
        snapshot(desk, around, store, tried),
        remote(desk, around),
        agent_run(around, &agents, tried),
    ];
    Ok(ways.into_iter().chain(agents.iter().map(|(agent, state)| hooks(*agent, state))).collect())
}

fn run(desk: &Desk, around: &Surroundings<'_>, tried: &Tried) -> Way {
    let other = || stores::other(desk, around).map(Remedy::from);
    match &tried.failed {
        None if tried.in_memory => Way::works("run", Some(error::IN_MEMORY)).with_remedy(other()),
        None => Way::works("run", Some(error::OPEN_SOCKETS).filter(|_| !landlock_scope::is_there())),
        Some(failed) if failed.detail() == Some(&Cause::NoUpper) => {
            Way::of("run", failed).with_remedy(Some(other().unwrap_or_else(error::volume)))
        }
        Some(failed) => Way::of("run", failed),
    }
}

fn snapshot(desk: &Desk, around: &Surroundings<'_>, store: Option<&Store>, tried: &Tried) -> Way {
    let failed = match (store, &tried.failed) {
        (Some(store), _) => snapshots::attempt(desk, store).map_err(around.with_remedy).err(),
        (None, Some(error)) => return Way::fails("snapshot", error.message(), error.advice().cloned()),
        (None, None) => None,
    };
    failed.map_or_else(|| Way::works("snapshot", None), |error| Way::fails("snapshot", error.message(), error.advice().cloned()))
}

/// The way to other machines, as far as it can be tried without one: `-H HOST doctor` tries the rest.
fn remote(desk: &Desk, around: &Surroundings<'_>) -> Way {
    let words = &desk.config.ssh.value;
    let near = NearSide::look(&words.iter().map(Into::into).collect::<Vec<_>>());
    match near.ssh {
        Err(why) => {
            let is_missing = words.first().is_none_or(|ssh| !around.has_program(ssh));
            let unnamed = || Some(probe::here()).filter(|here| here.name.is_none()).map(|here| error::name_user(here.uid));
            Way::fails("remote", &why, if is_missing { error::install_ssh(&|name| around.has_program(name)) } else { unnamed() })
        }
        Ok(version) if near.is_static => Way::works("remote", version.split(',').next()),
        Ok(_) => Way::works("remote", Some(error::NOT_STATIC)).with_remedy(Some(error::build_static())),
    }
}

fn agent_run(around: &Surroundings<'_>, agents: &[(Agent, Glance)], tried: &Tried) -> Way {
    let (way, all) = (error::AGENT_RUN, agents.iter().map(|(agent, _)| agent.word()));
    let there: Vec<&str> = all.filter(|word| around.has_program(word)).collect();
    match &tried.failed {
        _ if there.is_empty() => {
            let known: Vec<&str> = Agent::ALL.iter().map(|agent| agent.word()).collect();
            Way::new(way, Verdict::NotTried, Some(&error::no_agent(&known)), None)
        }
        Some(_) => Way::fails(way, error::NEEDS_RUN, None),
        None => Way::works(way, Some(&there.join(", "))),
    }
}

fn hooks(agent: Agent, glance: &Glance) -> Way {
    let word = agent.word();
    let way = format!("agent {word}");
    let not_tried = |why, remedy| Way::new(&*way, Verdict::NotTried, Some(why), Some(remedy));
    match glance {
        Glance::Fires => Way::works(&way, Some(error::HOOKS_FIRE)),
        Glance::NotInstalled => not_tried(error::NO_HOOKS, error::install_hooks(word)),
        Glance::Unseen => not_tried(error::NO_EVENT, error::start(agent.name)),
        Glance::Fails(fault) => {
            let remedy = fault.remedy.clone().unwrap_or_else(|| error::look_at_hooks(word));
            Way::fails(&way, &fault.why, Some(remedy))
        }
    }
}
