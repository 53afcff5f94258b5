//! `hold_run`: a command as a step of a session, by `recant run --session`.

use std::ffi::OsString;
use std::time::Duration;

use serde_json::{Value, json};

use super::child;
use super::child::failed;
use super::child::named;
use super::child::not_started;
use super::child::{Child, Ran, Started, Stream, Wanted};
use super::keeps::Keeps;
use super::outputs::{self, OF_STREAM, STREAMS};
use super::own_session::Own;
use super::pages;
use super::reading;
use super::rows;
use crate::capture::inside;
use crate::face::mcp::carrier::{Asked, Outcome, Told};
use crate::face::mcp::page;
use crate::session::{Id, Store};
use crate::verb::summary::of_step;

/// The bytes of each stream in an answer, if the call wants no other number, and the most of them.
const TAIL: usize = 2 << 10;
const MOST: usize = page::BYTES;
/// Bytes of recant's own messages, around the command's.
const MESSAGES: usize = 256 << 10;
/// Bytes for what the command changed, and the most changes that are read for it.
const CHANGES: usize = 1 << 10;
const READ: u64 = 10_000;

/// Runs the command, or reads what an earlier one has printed. `word`: the agent's; `new`: the name of a session that is begun.
pub fn run(child: &Child, asked: &Asked, kept: &Keeps, (word, new): (&str, &str), told: &Told) -> Outcome {
    let tail = asked.number("tail").map_or(TAIL, |tail| usize::try_from(tail).unwrap_or(MOST).min(MOST));
    let shell = match (asked.text("shell"), asked.text("cursor")) {
        (None, Some(cursor)) => return earlier(kept, cursor, asked.number("tail").map_or(page::BYTES, |_| tail)),
        (Some(shell), None) => shell,
        _ => return Outcome::refused("usage", "give shell, or cursor for output of an earlier command"),
    };
    if asked.number("timeout") == Some(0) {
        return Outcome::refused("usage", "timeout: 1 second at least; without it the command has all the time it needs");
    }
    if let Some(id) = inside() {
        let why = format!("the run of session {id} already holds what every command changes: run it without hold_run");
        return Outcome::refused("refused", why);
    }
    let before = kept.last.get();
    let wanted = asked.text("session").map(|word| Own { word: word.to_owned(), id: None });
    let known = wanted.or_else(|| before.clone());
    let found = match known.is_none().then(|| kept.last.pending(child, word, told)).transpose() {
        Ok(found) => found.flatten(),
        Err(outcome) => return outcome,
    };
    let goes_on = found.as_ref().map(|own| format!("this goes on in {}, the newest session that you made here", own.told()));
    let own = known.or(found).unwrap_or_else(|| Own { word: new.to_owned(), id: None });
    let session = own.word.clone();
    kept.last.set(Some(own));
    let mut words: Vec<OsString> = ["run", "--json"].map(OsString::from).into();
    words.extend([named("--session", &session), named("--parent", std::process::id().to_string())]);
    words.extend(["--", "/bin/sh", "-c", shell].map(OsString::from));
    let within = asked.number("timeout").map(Duration::from_secs);
    let call = Started { words: &words, out: Wanted::Last(OF_STREAM), err: Wanted::Last(OF_STREAM + MESSAGES), within };
    let ran = match child.run(&call, told) {
        Ok(ran) => ran,
        Err(error) => return not_started(&error),
    };
    let Messages { document, mut notes, own } = Messages::of(&ran.err.bytes);
    notes.extend(goes_on.map(Value::from));
    let Some(document) = document else { return without_result(&ran, &session) };
    let id = document["session"].as_str();
    kept.last.set(match id {
        // The word may mean another one next time.
        Some(id) if session == "last" => Some(Own { word: id.to_owned(), id: Some(id.to_owned()) }),
        Some(id) => Some(Own { word: session, id: Some(id.to_owned()) }),
        None => before,
    });
    let mut answer = json!({
        "session": id, "step": document["step"], "notes": notes, "timed_out": ran.timed_out,
        "exited": document["ending"]["exited"], "signaled": document["ending"]["signaled"],
        "beside": document["result"] == "beside",
    });
    let step = document["step"].as_u64().and_then(|step| u32::try_from(step).ok());
    if let (Some(id), Some(step)) = (id, step) {
        add_changes(&mut answer, kept, id, step);
    }
    let total = ran.err.total.saturating_sub((ran.err.bytes.len() - own.len()) as u64);
    add_output(&mut answer, kept, [ran.out, Stream { bytes: own, total }], tail);
    reading::count(&mut answer, &["notes"]);
    Outcome::done(answer)
}

/// More of what an earlier command has printed.
fn earlier(kept: &Keeps, cursor: &str, most: usize) -> Outcome {
    match kept.outputs.read(cursor, most) {
        Ok(part) => Outcome::done(json!({ part.stream: part.text, "next": part.next })),
        Err(why) => Outcome::refused("usage", why),
    }
}

/// The outcome of a run that printed no result.
fn without_result(ran: &Ran, session: &str) -> Outcome {
    match ran.timed_out {
        true if ran.is_killed() => Outcome::refused("refused", "the command did not end in time, and was killed")
            .with("state", format!("what it had written is held in session {session}")),
        true => {
            // `run` ends so if it has not started the command, and then prints no result.
            let is_started = !matches!(ran.status.code(), Some(125..=127));
            let what = if is_started { "was asked to end" } else { "was not started" };
            failed(ran).with("state", format!("the command {what}: its time was over"))
        }
        false => failed(ran),
    }
}

/// Adds the summary of what a step changed, as many rows as there is room for; `changed` counts all changes. Read here, as a further recant
/// would cost a quarter of a short command.
fn add_changes(answer: &mut Value, kept: &Keeps, id: &str, step: u32) -> Option<()> {
    let store = Store::open(&kept.store).ok()??;
    let session = store.session(&Id::parse(id)?).ok()?;
    let steps = session.steps().ok()?;
    let count = steps.get(&session.header, step).ok()?.changes();
    answer["changed"] = count.into();
    if count <= READ {
        let summary = of_step(&kept.settings, (&store, &session), (&steps, step)).ok()?;
        // They are counted, and have no row.
        if summary.times > 0 {
            answer["times"] = summary.times.into();
        }
        let mut rows = rows::of_changes(serde_json::to_value(&summary).ok()?, kept.here.as_ref());
        rows.truncate(page::fitting(&rows, CHANGES).max(1));
        answer["changes"] = rows.into();
    }
    Some(())
}

/// Adds the last of what the command has printed. Of a stream of which there is more, the number of its bytes and the cursor of the first
/// that is kept.
fn add_output(answer: &mut Value, kept: &Keeps, streams: [Stream; 2], tail: usize) {
    let tails = [0, 1].map(|i| last_of_page(&streams[i].bytes, tail));
    let is_cut = [0, 1].map(|i| tails[i].len() as u64 != streams[i].total);
    let texts = tails.map(pages::harmless);
    let totals = [0, 1].map(|i| (streams[i].total, streams[i].total - streams[i].bytes.len() as u64));
    let n = is_cut.contains(&true).then(|| kept.outputs.keep(streams));
    for (i, text) in texts.into_iter().enumerate().filter(|(_, text)| !text.is_empty()) {
        answer[STREAMS[i]] = text.into();
    }
    for (i, n) in n.into_iter().flat_map(|n| [(0, n), (1, n)]).filter(|(i, _)| is_cut[*i]) {
        let (total, first) = totals[i];
        answer[format!("{}_bytes", STREAMS[i])] = total.into();
        answer[format!("{}_cursor", STREAMS[i])] = outputs::cursor(n, i, first).into();
    }
}

/// The last bytes, as many of `most` as a page has room for.
fn last_of_page(bytes: &[u8], mut most: usize) -> &[u8] {
    loop {
        let some = last_lines(bytes, most);
        let quoted = pages::quoted(some);
        if quoted <= page::BYTES {
            return some;
        }
        most = some.len() * page::BYTES / quoted;
    }
}

/// The last bytes, at most `most`: whole lines, if one ends in them.
fn last_lines(bytes: &[u8], most: usize) -> &[u8] {
    let Some(from) = bytes.len().checked_sub(most).filter(|from| *from > 0) else { return bytes };
    let some = &bytes[from..];
    // The newline before them counts too, as then the first line is whole.
    if bytes[from - 1] == b'\n' {
        return some;
    }
    match some.iter().position(|byte| *byte == b'\n').filter(|at| at + 1 < some.len()) {
        Some(at) => &some[at + 1..],
        // No character is cut.
        None => &some[some.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count()..],
    }
}

/// The messages of a run, taken apart.
struct Messages {
    /// recant's document, which is the last line.
    document: Option<Value>,
    /// The texts of recant's notes and warnings.
    notes: Vec<Value>,
    own: Vec<u8>,
}

impl Messages {
    fn of(bytes: &[u8]) -> Self {
        /// How the document begins. A command's last line may have no newline.
        const BEGINS: &[u8] = br#"{"schema":2,"session":"#;
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let last = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let at = bytes[last..].windows(BEGINS.len()).rposition(|part| part == BEGINS).map(|at| last + at);
        let document =
            at.and_then(|at| serde_json::from_slice(&bytes[at..]).ok()).filter(|value: &Value| value["ending"].is_object());
        let rest = if document.is_some() { &bytes[..at.unwrap_or(0)] } else { bytes };
        let (mut notes, mut own) = (Vec::new(), Vec::new());
        for line in rest.split_inclusive(|byte| *byte == b'\n') {
            // The command's last line may have no newline.
            let at = [&br#"{"schema":2,"note":"#[..], br#"{"schema":2,"warning":"#]
                .into_iter()
                .filter_map(|begins| line.windows(begins.len()).rposition(|part| part == begins));
            let at = at.max().unwrap_or(0);
            let said = child::documents(&line[at..]).next();
            match said.and_then(|said| [&said["note"], &said["warning"]].into_iter().find(|text| text.is_string()).cloned()) {
                Some(text) => {
                    notes.push(text);
                    own.extend_from_slice(&line[..at]);
                }
                None => own.extend_from_slice(line),
            }
        }
        Self { document, notes, own }
    }
}

#[cfg(test)]
mod tests {
    use crate::face::mcp::carry::hold_run::*;

    const DOCUMENT: &str = r#"{"schema":2,"session":"s","ending":{"exited":0}}"#;

    #[test]
    fn recants_lines_are_told_from_the_commands() {
        let text = format!("one\n{{\"schema\":2,\"note\":\"n\"}}\n{{\"schema\":2}}\ntwo{DOCUMENT}\n");
        let messages = Messages::of(text.as_bytes());
        assert_eq!(messages.document.unwrap()["session"], "s");
        assert_eq!(messages.notes, ["n"]);
        assert_eq!(messages.own, b"one\n{\"schema\":2}\ntwo");
        let without = Messages::of(b"x\n{\"schema\":2,\"kind\":\"busy\",\"message\":\"m\"}\n");
        assert!(without.document.is_none());
    }

    #[test]
    fn a_note_behind_a_line_without_its_end_is_a_note() {
        let messages = Messages::of(b"last{\"schema\":2,\"note\":\"n\"}\n{\"schema\":2,\"warning\":\"w\"}\n");
        assert_eq!((messages.notes, &messages.own[..]), (vec![Value::from("n"), Value::from("w")], &b"last"[..]));
    }

    #[test]
    fn the_last_lines_are_whole_lines_or_at_least_characters() {
        for (bytes, most, want) in [
            ("one\ntwo\n", 99, "one\ntwo\n"),
            ("one\ntwo\n", 8, "one\ntwo\n"),
            ("one\ntwo\n", 7, "two\n"),
            ("one\ntwo\n", 4, "two\n"),
            ("one\ntwo\n", 3, "wo\n"),
            ("ää", 3, "ä"),
            ("ää", 0, ""),
            ("", 5, ""),
        ] {
            assert_eq!(last_lines(bytes.as_bytes(), most), want.as_bytes(), "{bytes:?} {most}");
        }
    }
}
