//! The ways to use recant, each tried here.

use serde::{Serialize, Serializer};

use super::stores;
use crate::agent::known::Agent;
use crate::capture::run::scope;
use crate::capture::space::cause::Cause;
use crate::capture::space::probe;
use crate::cli::snapshot;
use crate::error::{Error, Kind, command};
use crate::face::call::Call;
use crate::face::far::NearSide;
use crate::face::surroundings::{program, surroundings};
use crate::remedy::{Command, Remedy, shell};
use crate::session::store::Store;
use crate::verb::agent::status::{Glance, glance};
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
}

/// The result of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Works,
    /// It does not.
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
    fn works(way: &str, note: Option<String>) -> Self {
        Self { way: way.into(), verdict: Verdict::Works, why: note, remedy: None }
    }

    fn fails(way: &str, why: impl Into<String>, remedy: Option<Remedy>) -> Self {
        Self { way: way.into(), verdict: Verdict::Fails, why: Some(why.into()), remedy }
    }

    fn not_tried(way: &str, why: impl Into<String>, remedy: Option<Remedy>) -> Self {
        Self { way: way.into(), verdict: Verdict::NotTried, why: Some(why.into()), remedy }
    }

    fn failed(way: &str, error: &Error) -> Self {
        Self::fails(way, error.message(), error.advice().cloned())
    }

    /// The way that failed, by its cause where that is known.
    fn of(way: &str, error: &Error) -> Self {
        match error.detail::<Cause>() {
            Some(cause) => Self::fails(way, cause.why(), Some(cause.remedy())),
            None if error.kind() == Kind::NoCapture => Self::fails(way, error.why(), error.advice().cloned()),
            None => Self::failed(way, error),
        }
    }

    fn with_remedy(self, remedy: Option<Remedy>) -> Self {
        Self { remedy: remedy.or(self.remedy), ..self }
    }
}

/// Tries all ways but the two runs, which were tried.
pub fn all(call: &Call, store: Option<Store>, tried: &Tried, in_place: Option<&Error>) -> Result<Vec<Way>, Error> {
    let run = run(call, tried);
    let run_in = in_place.map_or_else(|| Way::works("run --in", Some(IN_PLACE.into())), |failed| Way::of("run --in", failed));
    let agents = agents(call, tried)?;
    Ok([run, run_in, take_snapshot(call, store, tried), remote(call)].into_iter().chain(agents).collect())
}

const OPEN_SOCKETS: &str = "but abstract sockets stay open, such as X11's: Linux 6.12 closes them";
const IN_PLACE: &str = "on the real files, between two snapshots";

fn run(call: &Call, tried: &Tried) -> Way {
    match &tried.failed {
        None if tried.in_memory => {
            let note = "in memory until the command ends: the store's file system can't hold it";
            Way::works("run", Some(note.into())).with_remedy(stores::other(call).map(Into::into))
        }
        None => Way::works("run", Some(OPEN_SOCKETS.into()).filter(|_: &String| !scope::is_there())),
        Some(failed) if failed.detail() == Some(&Cause::NoUpper) => {
            Way::of("run", failed).with_remedy(Some(stores::other(call).map_or_else(stores::volume, Into::into)))
        }
        Some(failed) => Way::of("run", failed),
    }
}

/// `store`: `None` if there is none, for the reason for which no run could be tried.
fn take_snapshot(call: &Call, store: Option<Store>, tried: &Tried) -> Way {
    match (store.map(|store| snapshot::attempt_one(call, &store)), &tried.failed) {
        (Some(Err(error)), _) => Way::failed("snapshot", &call.with_remedy(error)),
        (None, Some(error)) => Way::failed("snapshot", error),
        (Some(Ok(())) | None, _) => Way::works("snapshot", None),
    }
}

/// The way to other machines, as far as it can be tried without one: `-H HOST doctor` tries the rest.
fn remote(call: &Call) -> Way {
    let words = &call.config.ssh.value;
    let near = NearSide::look(&words.iter().map(Into::into).collect::<Vec<_>>());
    match near.ssh {
        Err(why) => {
            let remedy = if words.first().is_none_or(|ssh| program(ssh).is_none()) { install_ssh() } else { name_user() };
            Way::fails("remote", why, remedy.map(Into::into))
        }
        Ok(version) if near.is_static => Way::works("remote", version.split(',').next().map(str::to_owned)),
        Ok(_) => Way::works("remote", Some("to hosts that have recant; this build is not static".into()))
            .with_remedy(Some(shell("make static").into())),
    }
}

/// The command that installs ssh, by the package manager that is here.
fn install_ssh() -> Option<Command> {
    let known = [
        ("apt-get", "apt-get install openssh-client"),
        ("dnf", "dnf install openssh-clients"),
        ("zypper", "zypper install openssh-clients"),
        ("pacman", "pacman -S openssh"),
        ("apk", "apk add openssh-client"),
    ];
    let (_, install) = known.into_iter().find(|(name, _)| program(name).is_some())?;
    Some(as_root(install))
}

/// The command that gives this user a name, without which ssh does not start.
fn name_user() -> Option<Command> {
    let here = probe::here();
    here.name.is_none().then(|| as_root(&format!("useradd --uid {} NAME", here.uid)))
}

fn as_root(command: &str) -> Command {
    if rustix::process::geteuid().is_root() { shell(command) } else { shell(format_args!("sudo {command}")) }
}

/// `agent run`, and the hooks of each agent that is here.
fn agents(call: &Call, tried: &Tried) -> Result<Vec<Way>, Error> {
    let around = surroundings()?;
    let found = glance(call, &around)?;
    let there: Vec<_> = found.iter().filter(|(agent, _)| program(agent.word()).is_some()).collect();
    let words = |agents: &[&str]| agents.join(", ");
    let run = match &tried.failed {
        _ if there.is_empty() => {
            let known: Vec<_> = Agent::ALL.iter().map(|agent| agent.word()).collect();
            Way::not_tried("agent run", format!("no agent in PATH: {}", words(&known)), None)
        }
        Some(_) => Way::fails("agent run", "it needs run", None),
        None => Way::works("agent run", Some(words(&there.iter().map(|(agent, _)| agent.word()).collect::<Vec<_>>()))),
    };
    Ok(std::iter::once(run).chain(found.iter().map(|(agent, glance)| hooks(*agent, glance))).collect())
}

fn hooks(agent: Agent, glance: &Glance) -> Way {
    let (way, word) = (format!("agent {}", agent.word()), agent.word());
    match glance {
        Glance::Fires => Way::works(&way, Some("its hooks fire".into())),
        Glance::NotInstalled => {
            Way::not_tried(&way, "its hooks are not installed", Some(command(format_args!("agent install {word}")).into()))
        }
        Glance::Unseen => {
            let remedy = format!("start {}, and ask again", agent.name);
            Way::not_tried(&way, "its hooks are installed; no event has come yet", Some(remedy.into()))
        }
        Glance::Fails(fault) => {
            let status = || command(format_args!("agent status {word}")).into();
            Way::fails(&way, &*fault.why, Some(fault.remedy.clone().unwrap_or_else(status)))
        }
    }
}
