//! The words of `doctor` about the ways to use recant.

use crate::error::{Error, Kind, command};
use crate::remedy::{Command, Remedy, shell};

pub const RUN_IN: &str = "run --in";
pub const AGENT_RUN: &str = "agent run";
pub const IN_PLACE: &str = "on the real files, between two snapshots";
pub const IN_MEMORY: &str = "in memory until the command ends: the store's file system can't hold it";
pub const OPEN_SOCKETS: &str = "but abstract sockets stay open, such as X11's: Linux 6.12 closes them";
pub const NOT_STATIC: &str = "to hosts that have recant; this build is not static";
pub const NEEDS_RUN: &str = "it needs run";
pub const HOOKS_FIRE: &str = "its hooks fire";
pub const NO_HOOKS: &str = "its hooks are not installed";
pub const NO_EVENT: &str = "its hooks are installed; no event has come yet";

/// The reason where no agent can be tried.
pub fn no_agent(known: &[&str]) -> String {
    format!("no agent in PATH: {}", known.join(", "))
}

/// The remedy where no event of an agent came.
pub fn start(agent: &str) -> Remedy {
    format!("start {agent}, then run this again").into()
}

/// The command that installs an agent's hooks.
pub fn install_hooks(agent: &str) -> Remedy {
    command(format_args!("agent install {agent}")).into()
}

/// The command that tells why an agent's hooks do not fire.
pub fn look_at_hooks(agent: &str) -> Remedy {
    command(format_args!("agent status {agent}")).into()
}

/// The way out where no other store is found: a container can be given a place that is not on its own disk.
pub fn volume() -> Remedy {
    "put the store on another file system; for a container: " + shell("-v recant:/recant -e RECANT_STORE=/recant")
}

/// The command that builds recant for other machines.
pub fn build_static() -> Remedy {
    shell("make static").into()
}

/// The command that gives this user a name, without which ssh does not start.
pub fn name_user(uid: u32) -> Remedy {
    as_root(&format!("useradd --uid {uid} NAME")).into()
}

/// The command that installs ssh, by the first package manager that is here.
pub fn install_ssh(is_program: &dyn Fn(&str) -> bool) -> Option<Remedy> {
    let known = [
        ("apt-get", "apt-get install openssh-client"),
        ("dnf", "dnf install openssh-clients"),
        ("zypper", "zypper install openssh-clients"),
        ("pacman", "pacman -S openssh"),
        ("apk", "apk add openssh-client"),
    ];
    let (_, install) = known.into_iter().find(|(program, _)| is_program(program))?;
    Some(as_root(install).into())
}

fn as_root(command: &str) -> Command {
    if rustix::process::geteuid().is_root() { shell(command) } else { shell(format_args!("sudo {command}")) }
}

/// The error of a snapshot of one file that has another number of them.
pub fn miscounted(files: u64) -> Error {
    Error::new(Kind::Damaged, format!("the snapshot of one file has {files} files")).without_state()
}
