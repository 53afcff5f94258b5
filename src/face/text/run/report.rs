//! The report of what a command changed, and its exit status as recant's own.

use std::collections::BTreeSet;

use crate::error::{Error, Kind};
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::figures::filled;
use crate::face::out::Out;
use crate::face::text::acts;
use crate::face::{args, figures};
use crate::proxy::Refused;
use crate::session::{Ending, Id, Sort};
use crate::settings::{Entry, Host};
use crate::verb::run::value::Of;
use crate::verb::{Closed, Dangerous, Fate, Passed, Ran, error};

/// Reports a command whose changes were held.
///
/// # Errors
/// The session that the commit of a part left was not told of it yet.
pub fn held(call: &Call, args: &args::Run, ran: Ran) -> Result<Ended, Error> {
    // Standard output is the command's.
    call.out.divert();
    let out = &call.out;
    if ran.dropped > 0 && out.is_text() {
        out.note(format_args!("{} in scratch places dropped", figures::count(ran.dropped, "change")));
    }
    if let Some(written) = ran.too_much {
        let (written, max) = (figures::bytes(written), figures::bytes(args.max_size.unwrap_or(0)));
        out.warn(format_args!("the command wrote {written}, which is more than --max-size {max}"));
    }
    let status = ran.ending.status();
    // One that wrote too much and ended well before that was noticed gets the status of one that was ended for it: the session is not what
    // was asked for.
    let is_too_much = status == 0 && ran.too_much.is_some();
    let mut ended = Ended::Command(if is_too_much { Ending::Signaled(libc::SIGKILL).status() } else { status });
    match &ran.fate {
        Fate::NotCommitted(why) => {
            ended = Ended::by(why);
            out.problem(why);
        }
        Fate::Committed(acted) => match acts::end(call, Some(acted))? {
            Ended::Done => {}
            left_out => ended = left_out,
        },
        _ => {}
    }
    if out.is_text() {
        say(out, &ran);
        if ran.changes > 0 && ran.of != Of::Agent {
            beyond_files(out, &ran);
        }
        closed(out, &ran);
        refused(out, &ran.beyond_files.refused);
    } else {
        out.document(&ran);
    }
    Ok(ended)
}

/// Reports a command on the real tree. If something could not be recorded, that is no success.
pub fn real(call: &Call, ran: Ran) -> Result<Ended, Error> {
    call.out.divert();
    let out = &call.out;
    match &ran.session {
        _ if !out.is_text() => out.document(&ran),
        None => out.note("no file change"),
        Some(id) => {
            let tail = id.tail();
            out.note(format_args!("{} made, and committed as session {tail}", figures::count(ran.changes, "change")));
            out.note(error::next(["diff", "rollback"], id));
        }
    }
    let status = ran.ending.status();
    Ok(if !ran.left.is_empty() && status == 0 { Ended::With(Kind::LeftOut) } else { Ended::Command(status) })
}

/// Says what became of what a command changed.
fn say(out: &Out, ran: &Ran) {
    let exited = exited(ran.ending);
    let Some(id) = &ran.session else { return out.note(format_args!("no file change{exited}")) };
    let tail = id.tail();
    match &ran.fate {
        Fate::SetAside(Some(on)) => {
            let step = ran.step.unwrap_or_default();
            out.note(format_args!("step {step} of session {tail} is set aside; the session is at step {on}{exited}"));
        }
        Fate::Dropped => out.note(format_args!("{} dropped{exited}", figures::count(ran.changes, "change"))),
        Fate::Held if ran.of == Of::Agent => say_held(out, ran, id, ["review", "commit", "discard"]),
        Fate::Held if ran.of == Of::New => say_held(out, ran, id, ["diff", "commit", "discard"]),
        Fate::Held | Fate::Nothing => say_news(out, ran, id),
        // That the commit came to nothing is said, or what it did.
        Fate::SetAside(None) | Fate::Committed(_) | Fate::NotCommitted(_) | Fate::Beside | Fate::Real => {}
    }
}

/// Says that the changes are held, and what to do next, in lines of at most 80 characters.
fn say_held(out: &Out, ran: &Ran, id: &Id, ways: [&str; 3]) {
    let (count, sorts) = (figures::count(ran.changes, "change"), sorts(ran));
    let place = format!("held in session {}{}", id.tail(), exited(ran.ending));
    if count.len() + sorts.len() + place.len() <= 68 {
        out.note(format_args!("{count} ({sorts}) {place}"));
    } else {
        out.note(format_args!("{count} {place}"));
        out.note(sorts);
    }
    dangers(out, ran);
    out.note(error::next(ways, id));
}

/// The most dangers that a report names.
const MOST_DANGERS: usize = 3;

/// Names what gives rights, or what other programs run or obey: whoever commits without a look should know of it.
fn dangers(out: &Out, ran: &Ran) {
    let named: Vec<String> =
        ran.dangerous.iter().take(MOST_DANGERS).map(|Dangerous { path, why }| format!("{} ({why})", out.shown(path))).collect();
    let more = ran.dangerous.len().saturating_sub(MOST_DANGERS);
    let more = if more == 0 { String::new() } else { format!(" and {} more", figures::grouped(more as u64)) };
    if !named.is_empty() {
        out.note(filled(&format!("look before you commit: {}{more}", named.join(", "))));
    }
}

/// Says what a further command changed in its session; nothing if it changed nothing. What to do next was said when the session began.
fn say_news(out: &Out, ran: &Ran, id: &Id) {
    if let Some(step) = ran.step {
        let (news, all, sorts) = (figures::count(ran.news, "change"), figures::grouped(ran.changes), sorts(ran));
        out.note(format_args!("step {step} of session {}: {news} ({sorts}), {all} in all{}", id.tail(), exited(ran.ending)));
        dangers(out, ran);
    }
}

/// Reports what no session can hold: places that stayed real, and an open network. Later runs of a session report it with `-v` alone.
fn beyond_files(out: &Out, ran: &Ran) {
    // The shell's history was reported at the start.
    let passed: Vec<String> =
        ran.beyond_files.passed.iter().filter(|row| !row.is_history).map(|Passed { path, .. }| path.to_string()).collect();
    let open = ran.beyond_files.network.then_some("the network");
    let real: Vec<&str> = passed.iter().map(String::as_str).chain(open).collect();
    if real.is_empty() {
        return;
    }
    let said = format!("open to it, and not held: {}; whether it was used is not known", real.join(", "));
    if passed.is_empty() || ran.of != Of::New { out.detail(said) } else { out.note(said) }
}

/// Reports what was closed to the command: of an agent, or with the first changes of a session, how much; with `-v` what.
fn closed(out: &Out, ran: &Ran) {
    let closed = &ran.beyond_files.closed;
    if closed.is_empty() {
        return;
    }
    closed.iter().for_each(|Closed { path, holds }| out.detail(format!("closed to it: {}: {holds}", out.shown(path))));
    let sorts: BTreeSet<&str> = closed.iter().map(|closed| &*closed.holds).collect();
    let sorts = sorts.into_iter().collect::<Vec<_>>().join(", ");
    let said = filled(&format!("closed to it: {} ({sorts}); --open PATH opens one", figures::count(closed.len() as u64, "path")));
    if ran.of == Of::Agent || ran.of == Of::New && ran.changes > 0 { out.note(said) } else { out.detail(said) }
}

/// The most hosts that a report names.
const MOST_HOSTS: usize = 10;

/// Names the hosts that the command asked for in vain, each with the option that opens it.
fn refused(out: &Out, hosts: &[Refused]) {
    for Refused { host, port, leads_to, not_found, times } in hosts.iter().take(MOST_HOSTS) {
        let asked = leads_to.map_or_else(|| host.clone(), |address| Host::Address(address).to_string());
        let leads_to = leads_to.map(|_| format!(" leads to {asked}")).unwrap_or_default();
        let times = if *times == 1 { String::new() } else { format!(" ({} times)", figures::grouped(*times)) };
        if *not_found {
            out.note(filled(&format!("not found: {host}:{port}{times}")));
            continue;
        }
        // What is no entry of a list cannot be opened by one.
        let opens = Entry::opening(&asked, *port).map(|entry| format!("; --network {entry} opens it")).unwrap_or_default();
        out.note(filled(&format!("refused: {host}:{port}{leads_to}{times}{opens}")));
    }
    if let Some(more) = hosts.len().checked_sub(MOST_HOSTS).filter(|more| *more > 0) {
        out.note(format_args!("refused: {}", figures::count(more as u64, "other host")));
    }
}

fn exited(ending: Ending) -> String {
    match ending.status() {
        0 => String::new(),
        status => format!(" (the command exited with {status})"),
    }
}

/// "3 created, 1 modified".
fn sorts(ran: &Ran) -> String {
    let word = |sort: &Sort| match sort {
        Sort::Created => "created",
        Sort::Modified => "modified",
        Sort::Deleted => "deleted",
        Sort::Metadata | Sort::Times => sort.counted(),
    };
    ran.sorts.iter().map(|(sort, count)| format!("{} {}", figures::grouped(*count), word(sort))).collect::<Vec<_>>().join(", ")
}
