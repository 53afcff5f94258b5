//! `agent status`, in words.

use crate::error::{Error, Kind, command};
use crate::face::args::AgentStatus;
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::figures;
use crate::face::out::Out;
use crate::face::surroundings::surroundings;
use crate::verb::agent::status as verb;
use crate::verb::{Fault, Judged, Sort, Status};

pub fn status(call: &Call, args: &AgentStatus) -> Result<Ended, Error> {
    let (out, status) = (&call.out, verb::status(call, &surroundings()?, args.agent)?);
    if !out.is_text() {
        out.document(&status);
    }
    if let (true, Some(policy)) = (out.is_text(), &status.policy) {
        let left = figures::count(policy.left, "path");
        let line = format!("agents may commit {} without you: {left} more here", policy.commit.join(", "));
        out.line(figures::filled(&line));
    }
    if status.agents.is_empty() {
        say_none(out, &status);
        return Ok(Ended::With(Kind::LeftOut));
    }
    if out.is_text() {
        status.agents.iter().for_each(|judged| say(out, judged));
        out.line("not covered:");
        status.not_covered.iter().for_each(|what| out.line(format_args!("  {}", out.sentence(what))));
    }
    let all_fire = status.agents.iter().all(|judged| judged.fires);
    Ok(if all_fire { Ended::Done } else { Ended::With(Kind::LeftOut) })
}

fn say_none(out: &Out, status: &Status) {
    let words: Vec<&str> = status.in_path.iter().map(|agent| agent.word()).collect();
    let here = if words.is_empty() { "none is in PATH".into() } else { format!("in PATH: {}", words.join(", ")) };
    out.note(format_args!("no agent has recant's hooks here; {here}: {} adds them", command("agent install AGENT")));
}

fn say(out: &Out, Judged { known, fires, problems }: &Judged) {
    let version = known.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
    let verdict = match &problems[..] {
        _ if *fires => "hooks fire",
        [Fault { sort: Sort::NoEvent, .. }] => "hooks have not fired yet",
        _ => "hooks do not fire",
    };
    out.line(format_args!("{}{version}: {verdict}", known.name));
    let line = |key: &str, value: &str| out.line(format_args!("  {key:<8} {value}"));
    match &known.program {
        Some(program) => line("program", &program.to_string_lossy()),
        None => line("program", &format!("{} is not in PATH", known.agent.word())),
    }
    for hooks in &known.hooks {
        line("hooks", &format!("{} ({})", out.shown(&hooks.path), hooks.scope.word()));
        line("calls", &hooks.calls);
    }
    match &known.last {
        Some(seen) => {
            line("last", &format!("{} {} in {}", figures::time(seen.time, true), seen.event, out.place(&seen.directory)));
            seen.error.iter().for_each(|error| line("error", error));
        }
        None => line("last", "none"),
    }
    problems.iter().for_each(|problem| out.line(figures::filled_after("  !", &out.sentence(&problem.to_string()), 4)));
}
