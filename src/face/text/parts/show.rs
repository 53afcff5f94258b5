//! `diff --blocks`: what can be taken of each change by itself, headed by the word that takes it.

use super::block;
use crate::compare::{CHANGED, Entries};
use crate::error::{Error, command};
use crate::face::call::Call;
use crate::session::Change;
use crate::verb::Parts;

/// Shows what can be taken of these changes.
pub fn blocks(call: &Call, parts: &mut Parts<'_>) -> Result<(), Error> {
    if !call.out.is_text() {
        parts.list()?;
        call.out.document(parts);
        return Ok(());
    }
    call.out.page(call.config.pager.value.as_deref());
    let mut example = None;
    parts.for_each(&mut |change, side, entries| {
        print(call, change, entries);
        if let Entries::Text(_) = entries {
            example.get_or_insert_with(|| (side, format!("{}:1", call.out.word(&change.path))));
        }
        !call.out.is_closed()
    })?;
    if let Some((side, word)) = example {
        let (verb, does) = if side.is_in() { ("rollback", "takes back") } else { ("commit", "commits") };
        let takes = command(format_args!("{verb} {} {word}", parts.session.tail()));
        call.out.note(format_args!("{takes} {does} that block alone"));
    }
    Ok(())
}

fn print(call: &Call, change: &Change, entries: &Entries) {
    let path = call.out.shown(&change.path);
    match entries {
        Entries::Whole(why) => block::head(&call.out, &path, &block::whole(change, why)),
        Entries::Changed => block::head(&call.out, &path, &format!("{}: {CHANGED}", change.sort().word())),
        Entries::Text(text) => {
            let blocks = text.blocks();
            for (n, block) in (1..).zip(blocks.list()) {
                block::head(&call.out, &format!("{path}:{n}"), &block::place(block));
                block::lines(&call.out, &blocks, block);
            }
            block::metadata(&call.out, &path, text);
        }
    }
}
