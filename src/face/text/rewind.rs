//! `rewind` and `fork`, in words.

use crate::error::Error;
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::{args, figures};
use crate::verb::fork::fork as forked;
use crate::verb::rewind::rewind as rewound;
use crate::verb::{Forked, Rewound};

/// Makes a session stand at another of its steps.
pub fn rewind(call: &Call, args: &args::Rewind) -> Result<Ended, Error> {
    let value = rewound(call, &args.id, args.step, (args.message.as_deref(), args.dry_run))?;
    if call.out.is_text() {
        call.out.note(headline(&value));
    } else {
        call.out.document(&value);
    }
    Ok(Ended::Done)
}

/// Says in a line where a session stands.
pub fn headline(value: &Rewound) -> String {
    let Rewound { session, step, was, changes, dry_run } = value;
    let [stands, stood] = if *dry_run { ["would be", "is"] } else { ["is", "was"] };
    let was = if was == step { String::new() } else { format!("; it {stood} at step {was}") };
    format!("session {} {stands} at step {step}: {}{was}", session.tail(), figures::count(*changes, "change"))
}

/// Begins a session as another one is at one of its steps.
pub fn fork(call: &Call, args: &args::Fork) -> Result<Ended, Error> {
    let value = forked(call, &args.id, args.step, (args.name.as_deref(), args.dry_run))?;
    say(call, &value, args.name.as_deref());
    Ok(Ended::Done)
}

fn say(call: &Call, forked: &Forked, name: Option<&str>) {
    if !call.out.is_text() {
        return call.out.document(forked);
    }
    let holds = figures::count(forked.changes, "change");
    let from = format!("session {} at step {}: {holds}", forked.of.tail(), forked.step);
    match &forked.session {
        None => call.out.note(format_args!("a session would begin as {from}")),
        Some(id) => {
            let named = name.map(|name| format!(", named {name},")).unwrap_or_default();
            call.out.note(format_args!("session {}{named} begins as {from}", id.tail()));
        }
    }
}
