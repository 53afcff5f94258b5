//! `-H`: a verb that other machines carry out. One machine: as if it ran here; several are in `remote_many`.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;

use super::args::{Cli, Global, SessionVerb, SnapshotVerb, Verb};
use super::problem::Problem;
use super::remote_hosts::{self, Hosts};
use super::{Call, Ended, far, remote_commit, remote_many};
use crate::error::At;
use crate::fs::signals;
use crate::remote::frame::Outcome;
use crate::remote::host::Target;
use crate::remote::install::Program;
use crate::remote::link::{Input, Install, Link, Signals, Ssh, SshSays, Stream};
use crate::remote::request::{Request, Word};
use crate::remote::{Error, PROTOCOL};

/// The machines that a call names; `None` where it is for this one.
pub fn asked_for(global: &Global) -> Option<String> {
    let from_env = || std::env::var("RECANT_HOST").ok();
    let hosts = global.host.clone().or_else(from_env)?;
    let hosts = hosts.trim();
    (!hosts.is_empty() && hosts != "local").then(|| hosts.to_owned())
}

/// Has the machines carry out the call. `words` are its own, without the program's name.
pub fn carry_out(call: &Call, cli: &Cli, words: &[OsString], hosts: &str) -> Result<Ended, Problem> {
    let hosts = remote_hosts::read(hosts, &call.config.remotes)?;
    let far = Far::new(call, &cli.global)?;
    let target = match hosts {
        Hosts::One(target) => target,
        Hosts::Many(targets) => {
            let mut request = |target: &Target| request(call, cli, words, target);
            if remote_commit::concerns(&cli.verb) {
                let blank: Vec<Request> = targets.iter().map(request).collect();
                return remote_commit::carry_out(call, cli, &far.ways, &targets, &blank);
            }
            return remote_many::carry_out(call, &far.ways, cli, &targets, &mut request);
        }
    };
    match &cli.verb {
        Verb::Run(_) | Verb::Shell(_) if far::terminals().len() == 3 => {
            far.on_terminal(&target, &request(call, cli, words, &target))
        }
        Verb::Doctor(args) if !args.apparmor => far.doctor(&target, &request(call, cli, words, &target)),
        verb => {
            if pages(verb) && call.out.is_text() {
                call.out.page(call.config.pager.value.as_deref());
            }
            far.alone(&target, &request(call, cli, words, &target))
        }
    }
}

/// Whether a verb prints what may be long.
fn pages(verb: &Verb) -> bool {
    match verb {
        Verb::List | Verb::Show(_) | Verb::Diff(_) | Verb::Log(_) | Verb::Checkpoint { .. } => true,
        Verb::Session { verb } => matches!(verb, SessionVerb::List | SessionVerb::Show(_)),
        Verb::Snapshot { verb } => matches!(verb, SnapshotVerb::List(_) | SnapshotVerb::Show(_) | SnapshotVerb::Diff(_)),
        _ => false,
    }
}

/// Whether a verb takes what comes from standard input.
pub fn takes_content(verb: &Verb) -> bool {
    matches!(verb, Verb::Run(_) | Verb::Shell(_) | Verb::Session { verb: SessionVerb::Write(_) | SessionVerb::Import(_) })
}

/// Whether a verb reads standard input, or asks there. Others leave it alone: it may be the list of a shell's loop.
fn reads_input(call: &Call, verb: &Verb) -> bool {
    match verb {
        verb if takes_content(verb) => true,
        Verb::Discard(_) | Verb::Session { .. } | Verb::Checkpoint { .. } | Verb::Snapshot { .. } => call.can_ask,
        _ => false,
    }
}

/// The call, as one machine gets it.
fn request(call: &Call, cli: &Cli, words: &[OsString], target: &Target) -> Request {
    let terminals = far::terminals();
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    let env = std::env::vars_os().filter(|(name, _)| far::is_recants_own(name));
    Request {
        protocol: PROTOCOL,
        argv: words.iter().map(|word| Word::from(word.as_os_str())).collect(),
        color: call.out.colors(),
        columns: size.ok().map(|size| size.ws_col).filter(|columns| *columns > 0),
        input: reads_input(call, &cli.verb),
        terminals,
        env: env.map(|(name, value)| (Word::from(&*name), Word::from(&*value))).collect(),
        silence: call.config.timeout.value,
        store: target.store.clone(),
    }
}

/// What the ways to all machines of one call have in common.
pub struct Ways {
    ssh: Ssh,
    install: Install,
    /// How long a machine may be silent.
    timeout: Option<Duration>,
    /// Signals of this process.
    pub signals: Signals,
}

impl Ways {
    /// From here on signals are the machines'.
    fn open(call: &Call, global: &Global) -> Result<Self, Problem> {
        let words = call.config.ssh.value.iter().map(OsString::from).collect();
        let heard = signals::listen().at("listen to signals by", "a pipe")?;
        let install = if global.no_install { Install::Never } else { Install::Allowed };
        let timeout = call.config.timeout.value.map(|seconds| Duration::from_secs(seconds.into()));
        Ok(Self {
            ssh: Ssh { words, shielding: signals::kept_from, showing: show },
            install,
            timeout,
            signals: Signals::from(heard),
        })
    }

    /// The way to one of them.
    pub fn link<'a>(&'a self, target: &'a Target, ssh_says: SshSays) -> Link<'a> {
        Link { ssh: &self.ssh, target, install: self.install, ssh_says, timeout: self.timeout, signals: Some(&self.signals) }
    }
}

/// What nobody reads any more is lost.
fn show(bytes: &[u8]) {
    drop(std::io::stderr().write_all(bytes));
}

/// One machine, and this call.
struct Far<'a> {
    call: &'a Call,
    ways: Ways,
}

impl<'a> Far<'a> {
    fn new(call: &'a Call, global: &Global) -> Result<Self, Problem> {
        Ok(Self { call, ways: Ways::open(call, global)? })
    }

    /// One machine, with this call's own streams.
    fn alone(&self, target: &Target, request: &Request) -> Result<Ended, Problem> {
        let input = request.input.then(|| Box::new(std::io::stdin()) as Input);
        let out = &self.call.out;
        let mut sink = |stream, bytes: &[u8]| match stream {
            Stream::Output => out.pass(bytes),
            Stream::Errors => out.pass_message(bytes),
        };
        self.ended(self.ways.link(target, SshSays::Through).carry_out(request, input, &mut sink))
    }

    /// One machine, with this call's terminal as its own.
    fn on_terminal(&self, target: &Target, request: &Request) -> Result<Ended, Problem> {
        self.ended(self.ways.link(target, SshSays::Through).on_terminal(request))
    }

    fn ended(&self, ended: Result<Outcome, Error>) -> Result<Ended, Problem> {
        match ended {
            Ok(outcome) => Ok(Ended::Command(outcome.status)),
            Err(error @ Error::Asked { signal, .. }) => {
                self.call.out.problem(&error.into());
                Ok(Ended::Command(128_u8.saturating_add(signal)))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// This side, and then the far one's own.
    fn doctor(&self, target: &Target, request: &Request) -> Result<Ended, Problem> {
        let out = &self.call.out;
        let near = NearSide::look(&self.ways.ssh);
        let mut printed = Vec::new();
        let begun = Instant::now();
        let mut sink = |stream, bytes: &[u8]| match stream {
            Stream::Output => std::io::Write::write_all(&mut printed, bytes),
            Stream::Errors => out.pass_message(bytes),
        };
        let outcome = self.ways.link(target, SshSays::Through).carry_out(request, None, &mut sink);
        let took = begun.elapsed().as_millis();
        if out.is_text() {
            let own =
                if near.is_static { "static" } else { "not static, so that it cannot be put on other machines: make static" };
            out.line(format_args!("here: recant {}, protocol {PROTOCOL}, {}, {own}", near.version, near.machine));
            out.line(format_args!("ssh: {}", near.ssh));
            if outcome.is_ok() {
                out.line(format_args!("{}: answered in {took} ms", target.name));
                out.line("");
            }
            out.bytes(&printed);
        } else if outcome.is_ok() {
            let far = serde_json::from_slice(&printed).unwrap_or(Value::Null);
            out.document(&Doctor { host: &target.name, near, far });
        }
        self.ended(outcome)
    }
}

/// `{"schema":1,"host":…,"near":{…},"far":{…}}`.
#[derive(Serialize)]
struct Doctor<'a> {
    host: &'a str,
    near: NearSide,
    far: Value,
}

/// This side, as `doctor` shows it.
#[derive(Serialize)]
struct NearSide {
    version: &'static str,
    protocol: u32,
    machine: String,
    #[serde(rename = "static")]
    is_static: bool,
    ssh: String,
}

impl NearSide {
    fn look(ssh: &Ssh) -> Self {
        let own = Program::own();
        let (machine, is_static) =
            own.map_or_else(|_| (std::env::consts::ARCH.into(), false), |own| (own.machine, own.is_static));
        Self { version: env!("CARGO_PKG_VERSION"), protocol: PROTOCOL, machine, is_static, ssh: version_of(&ssh.words) }
    }
}

/// What `ssh -V` says of itself, on standard error.
fn version_of(words: &[OsString]) -> String {
    let program = words.first().map_or(OsStr::new("ssh"), |word| word);
    let mut command = std::process::Command::new(program);
    command.args(words.iter().skip(1)).arg("-V").stdin(std::process::Stdio::null());
    match command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped()).spawn() {
        Err(error) => format!("{} cannot be started: {}", program.display(), crate::error::reason(&error)),
        Ok(mut child) => {
            let mut said = String::new();
            let _none = child.stderr.take().map(|stderr| stderr.take(4096).read_to_string(&mut said));
            let _ended = child.wait();
            said.lines().next().unwrap_or("it does not say its version").to_owned()
        }
    }
}
