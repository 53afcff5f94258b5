//! `far`: the program that ssh starts on the other machine, and what a verb that it starts knows of the near side.

use crate::face::args::{self, Cli, SessionVerb, Verb};
use crate::face::call_end::Ended;
use crate::face::door::{self, Looks};
use crate::face::near_side::{InRun, Near};
use crate::face::{errors, near_side};
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use clap::Parser;

use crate::compare::Names;
use crate::error::{Error, Kind, Reason};
use crate::face::args::table::effect;
use crate::fs::program;
use crate::remote::far_side::Input;
use crate::remote::{self, Cut, MISSING, PROTOCOL, Request, Up, far_side, request};
use crate::verb::Effect;

/// Carries out the request of the near side. Reads no settings: the verb that it starts reads them.
pub fn far(args: &args::Far) -> Ended {
    if let Some(protocol) = args.speaks {
        return if protocol == PROTOCOL { Ended::Done } else { Ended::With(Kind::Refused) };
    }
    if let Some(status) = args.unstarted {
        return by_sudo(status);
    }
    match (&args.request, args.tells) {
        (Some(word), Some(shell)) => match far_side::say_begun(shell) {
            Ok(()) => on_terminal(word),
            // The shell would take the verb's end for an error of sudo.
            Err(error) => {
                let why = format!("cannot signal to process {shell} that recant was started: {}", crate::error::reason(&error));
                refused(&Error::refused(why))
            }
        },
        (Some(word), None) => on_terminal(word),
        (None, _) => over_connection(args.held.then(|| Looks { content: !args.no_content, only: args.only.clone() })),
    }
}

/// Says why sudo did not start recant on this terminal.
fn by_sudo(status: u8) -> Ended {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    match status {
        126 | 127 => refused(&remote::error::lacks_sudo(&host)),
        // Somebody ended it, and knows.
        129.. => Ended::Command(status),
        _ => refused(&remote::error::no_sudo(&host)),
    }
}

fn on_terminal(word: &str) -> Ended {
    let request = match Request::from_word(word) {
        Ok(request) => request,
        Err(error) if error.reason() == Some(&Reason::OtherProtocol) => return Ended::Command(MISSING),
        Err(error) => return refused(&error),
    };
    match command(&request, &Near::of(&request)) {
        Ok((mut command, _)) => refused(&unstarted(&command.exec())),
        Err(problem) => refused(&problem),
    }
}

/// Sends a greeting, reads the request, and relays. `looks`: what the near side may see, if it is in a run.
fn over_connection(looks: Option<Looks>) -> Ended {
    // sshd has made this process a session leader; sudo and other ways have not. A hang-up must not reach the child by itself.
    let _already = rustix::process::setsid();
    let mut stdout = std::io::stdout();
    // The near side is gone, and has asked for nothing.
    if stdout.write_all(request::hello().as_bytes()).and_then(|()| stdout.flush()).is_err() {
        return Ended::With(Kind::Refused);
    }
    let Ok(Some(Up::Request(json))) = Up::read(&mut std::io::stdin()) else { return Ended::With(Kind::Refused) };
    let request = match Request::parse(&json) {
        Ok(request) => request,
        Err(error) => return refused(&error),
    };
    if looks.is_some() {
        door::has_asked();
    }
    let request = match looks.as_ref().map_or(Ok(request.clone()), |looks| door::checked(request, looks)) {
        Ok(request) => request,
        Err(problem) => return door::refuse(&problem),
    };
    let near = Near::of(&request).in_run(looks.map(|looks| InRun { only: looks.only }));
    let ended = command(&request, &near).and_then(|(command, verb)| {
        let cut = verb.as_ref().map_or(Cut::Ends, at_cut);
        let input = match &verb {
            _ if !request.input => Input::None,
            Some(verb) if verb.is_run() => Input::Pipe,
            _ => Input::Guarded,
        };
        let silence = request.silence.filter(|seconds| *seconds > 0).map(|seconds| Duration::from_secs(seconds.into()));
        far_side::relay(command, cut, input, silence).map_err(|error| unstarted(&error))
    });
    ended.map_or_else(|problem| refused(&problem), |()| Ended::Done)
}

/// The command for recant with the near side's words, and the verb, if the words make one.
fn command(request: &Request, near: &Near) -> Result<(Command, Option<Verb>), Error> {
    let words = request.words().ok_or_else(|| Error::refused("the request is invalid: an argument is malformed"))?;
    let verb =
        Cli::try_parse_from([OsString::from("recant")].iter().chain(&words)).ok().map(|cli| cli.verb.unwrap_or(Verb::Here));
    let mut command = crate::fs::command(program::own().unwrap_or_else(|_| "/proc/self/exe".into()));
    command.arg0("recant").arg("--far").arg(near.word()).args(words);
    // The near side does not know this side's settings, and it has chosen the machine.
    command.env_remove("RECANT_HOST");
    command.envs(request.store.iter().map(|store| ("RECANT_STORE", store)));
    let env = request.env.iter().filter_map(|(name, value)| Some((name.to_os()?, value.to_os()?)));
    command.envs(env.filter(|(name, _)| near_side::is_recants_own(name)));
    // The command of a run would see COLUMNS, too.
    if !verb.as_ref().is_some_and(Verb::is_run) {
        command.envs(request.columns.map(|columns| ("COLUMNS", columns.to_string())));
    }
    Ok((command, verb))
}

/// How a verb ends when the connection is cut. One that only reads ends at once, as do the command of a run and content that is cut
/// off. All else has begun something.
fn at_cut(verb: &Verb) -> Cut {
    match verb {
        verb if verb.is_run() => Cut::Ends,
        Verb::Session { verb: SessionVerb::Write(_) | SessionVerb::Import(_) } => Cut::Ends,
        verb if effect(verb) != Effect::Changes => Cut::Ends,
        _ => Cut::Settles,
    }
}

fn unstarted(error: &std::io::Error) -> Error {
    Error::refused(format!("the far side's recant cannot be started: {}", crate::error::reason(error)))
}

/// Writes the error to standard error, which ssh passes on.
fn refused(problem: &Error) -> Ended {
    let _gone = writeln!(std::io::stderr(), "{}", errors::text(problem, false, &Names::from_afar(), usize::MAX, false));
    Ended::With(problem.kind())
}
