//! The call of a process: from its words to the verb, here or on another machine.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

use super::dispatch;
use super::dispatch::not_begun;
use super::{misuse, proxy};
use crate::capture::capture;
use crate::error::{Error, shell_word};
use crate::face::args::table::effect;
use crate::face::args::{Cli, Verb, help};
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::door::inside;
use crate::face::far::served;
use crate::face::find_store::Place;
use crate::face::finish::finish;
use crate::face::near_side::Near;
use crate::face::out::{Form, Out};
use crate::face::program::complete;
use crate::face::{exit, far, find_store, person_only};
use crate::remedy::shell;
use crate::settings::{Color, From as Origin};
use crate::verb::{CalledFrom, Effect};

/// Carries out the call of this process.
pub fn main() -> ExitCode {
    crate::fs::tell_when_short();
    crate::fs::ignore_what_would_end_it();
    crate::fs::open_many();
    if complete::is_answered() {
        return ExitCode::SUCCESS;
    }
    match run(std::env::args_os()) {
        Ended::Done => ExitCode::SUCCESS,
        Ended::With(kind) => exit::status(kind).into(),
        Ended::Command(status) => status.into(),
        Ended::Asked(status) => {
            // A shell ends a loop at Ctrl-C only if the program died of it.
            if status == 130 {
                crate::fs::end_by(2);
            }
            status.into()
        }
    }
}

/// Carries out one call. All reports are written when it returns. An agent's hook always ends well: to Claude Code and others, 2 means that
/// what the agent is about to do is forbidden.
fn run(args: impl IntoIterator<Item = OsString>) -> Ended {
    let args: Vec<OsString> = args.into_iter().collect();
    let is_hook = args.iter().skip(1).find(|word| !word.as_encoded_bytes().starts_with(b"-")).is_some_and(|word| word == "hook");
    let ended = carry_out(args);
    if is_hook { Ended::Done } else { ended }
}

fn carry_out(args: Vec<OsString>) -> Ended {
    let cli = match help::parse(&args) {
        Ok(cli) => cli,
        Err(error) => return misuse::misused(error, &args),
    };
    if let Verb::Far(args) = cli.verb() {
        return served::far(args);
    }
    if let Verb::Proxy(args) = cli.verb() {
        return proxy::proxy(args);
    }
    let near = cli.global.far.as_deref().map(Near::read);
    crate::error::set_call(call_options(near.as_ref(), cli.global.store.as_deref()));
    // An agent's hook and server are about this machine, whatever $RECANT_HOST says.
    let is_here = near.is_some() || matches!(cli.verb(), Verb::Hook(_) | Verb::Mcp);
    let host = if is_here { None } else { far::asked_for(&cli.global) };
    match call(&cli, near.as_ref(), host.is_some()) {
        Ok(call) => sent(&call, cli, &args[1..], host),
        Err(unmade) => finish(&unmade.0, Err(not_begun(cli.verb(), unmade.1)), Effect::None),
    }
}

/// The call of these words: with the settings, and the store of this machine. With an error comes what to print it by.
fn call(cli: &Cli, near: Option<&Near>, is_elsewhere: bool) -> Result<Call, Box<(Out, Error)>> {
    let global = &cli.global;
    let form = if global.json { Form::Json } else { Form::Text };
    let out = |color| {
        let out = Out::new(form, color, global.quiet, global.verbose).for_tools(global.for_tools);
        if let Some(near) = near { out.for_near(near) } else { out }
    };
    let (config, place) = match find_store::settings() {
        Ok(found) => found,
        // These two need no settings, and run even if the settings are wrong.
        Err(_) if matches!(cli.verb(), Verb::Completions(_) | Verb::Man(_)) => find_store::nowhere(),
        Err(problem) => return Err(Box::new((out(Color::Auto), problem))),
    };
    let color = match global.color {
        Some(color) => color,
        // The environment goes before the file: https://no-color.org.
        None if std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) => Color::Auto,
        None => config.color.value,
    };
    let place = match &global.store {
        // With -H, --store names the far side's.
        Some(dir) if !is_elsewhere => Place { path: dir.clone(), from: Origin::Option("--store") },
        _ => place,
    };
    let can_ask = near.map_or_else(|| std::io::stdin().is_terminal() && std::io::stderr().is_terminal(), Near::can_ask);
    let out = out(color).most(config.output_paths.value);
    let from = near.map_or(CalledFrom::Here, Near::called_from);
    Ok(Call::new(config, place, out, (global.yes, can_ask, from)))
}

/// Carries the call out where it is to be: outside of the run that this is inside of, on another machine, or here.
fn sent(call: &Call, cli: Cli, words: &[OsString], host: Option<String>) -> Ended {
    let (out, effect) = (&call.out, effect(cli.verb()));
    if matches!(cli.verb(), Verb::Mcp) && cli.global.host.as_deref().is_some_and(|host| host != "local") {
        let problem = Error::usage("recant mcp serves only this machine");
        let there = "a client can start it there: " + shell("ssh HOST recant mcp");
        return finish(out, Err(problem.with_remedy(there)), Effect::None);
    }
    if let Err(problem) = person_only::refuse(call, cli.verb(), words, host.is_some()) {
        return finish(out, Err(not_begun(cli.verb(), problem)), Effect::None);
    }
    if host.is_none()
        && let Some(captured) = capture()
        && let Some(words) = inside::words(call, &cli, words, captured)
    {
        let ended = inside::ask(call, &words, captured.door.as_ref()).map_err(|problem| call.with_remedy(problem));
        return finish(out, ended, Effect::None);
    }
    if let Some(host) = host {
        return far::finish(out, far::carry_out(call, &cli, words, &host), cli.verb());
    }
    let ended = dispatch::carry_out(call, cli.verb.unwrap_or(Verb::Here)).map_err(|problem| call.with_remedy(problem));
    finish(out, ended, effect)
}

/// The options that commands in messages repeat, quoted for a shell.
fn call_options(near: Option<&Near>, store: Option<&Path>) -> String {
    let reached = near.map(Near::reached).filter(|options| !options.is_empty()).map(str::to_owned);
    let store = store.map(|store| format!("--store {}", shell_word(store.as_os_str().as_bytes())));
    [reached, store].into_iter().flatten().collect::<Vec<_>>().join(" ")
}
