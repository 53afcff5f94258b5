//! The server: reads messages, answers them, and keeps account of the calls that run.
//!
//! One thread reads lines, one a call waits for it; all of it comes to the one that serves, which alone writes.

use std::collections::BTreeMap;
use std::io::{BufReader, Read, Write};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::carrier::{Asked, Carrier, Event, Outcome, Stop, Told};
use super::client;
use super::client::{Client, Era, MODERN, Unfit};
use super::tools;
use super::tools::TOOLS;
use super::wire;
use super::wire::{INVALID, METHOD, Message, PARAMS, Wrong};

/// The most calls at once.
const MOST: usize = 32;

/// How long calls that run may go on after the client's last word; a client ends its server two seconds later, or so.
const SOON: Duration = Duration::from_millis(500);
/// How long their end is waited for.
const AT_LAST: Duration = Duration::from_secs(15);

const NAME: &str = "recant";
const ABOUT: &str = "hold_run runs a command with its file changes held: later commands of the session see them, the real files do not \
                     change. Look with changes, diff and cat, go back with rewind. A person decides what becomes real: commit gives you the \
                     command for the person to type, and await tells what the person decided. Tell the person what is held, and why. Without session each tool means that of your \
                     last hold_run or fork; after a restart the newest one that you made here.";

struct Running {
    id: Value,
    era: Era,
    stop: Stop,
    progress: Option<Value>,
    is_cancelled: bool,
}

/// A server, until its client leaves.
pub struct Server<'a, C, W> {
    carrier: &'a mut C,
    output: W,
    events: Sender<Event>,
    opened: Option<Client>,
    calls: BTreeMap<u64, Running>,
    count: u64,
    is_gone: bool,
}

/// Serves until the input ends, nobody reads the output, or this process is asked to end: `asked` returns then. Calls that run are stopped,
/// and waited for.
pub fn serve<C: Carrier>(
    carrier: &mut C,
    input: impl Read + Send + 'static,
    output: impl Write,
    asked: impl FnOnce() + Send + 'static,
) {
    let (events, heard) = mpsc::channel();
    let ear = events.clone();
    std::thread::spawn(move || {
        asked();
        drop(ear.send(Event::Over));
    });
    let ear = events.clone();
    std::thread::spawn(move || {
        let mut input = BufReader::new(input);
        // What cannot be read any more is at its end.
        while let Ok(Some(line)) = wire::next_line(&mut input) {
            if ear.send(Event::Line(line)).is_err() {
                return;
            }
        }
        drop(ear.send(Event::Closed));
    });
    let mut server = Server { carrier, output, events, opened: None, calls: BTreeMap::new(), count: 0, is_gone: false };
    loop {
        match heard.recv() {
            Ok(Event::Closed | Event::Over) | Err(_) => break,
            Ok(event) => server.hear(event),
        }
        if server.is_gone || server.carrier.is_over() {
            break;
        }
    }
    server.close(&heard);
}

impl<C: Carrier, W: Write> Server<'_, C, W> {
    fn hear(&mut self, event: Event) {
        match event {
            Event::Line(Err(wrong)) => self.say(&wire::error(&wrong.id, wrong.code, wrong.why, None)),
            Event::Line(Ok(line)) => wire::read(&line).into_iter().for_each(|message| self.take(message)),
            Event::GoesOn(call, seconds, waits) => self.progress(call, seconds, waits),
            Event::Ends(call, outcome) => {
                if let Some(call) = self.calls.remove(&call).filter(|call| !call.is_cancelled) {
                    self.finish(&call.id, call.era, &outcome);
                }
            }
            Event::Closed | Event::Over => {}
        }
    }

    /// Ends. What is answered in a moment is still answered; all else is stopped, and waited for.
    fn close(&mut self, heard: &Receiver<Event>) {
        let soon = Instant::now() + SOON;
        while !self.calls.is_empty() && !self.is_gone && !self.carrier.is_over() {
            match heard.recv_timeout(soon.saturating_duration_since(Instant::now())) {
                Ok(Event::Over) | Err(_) => break,
                Ok(event) => self.hear(event),
            }
        }
        for call in self.calls.values_mut() {
            call.is_cancelled = true;
            (call.stop)();
        }
        while !self.calls.is_empty() {
            match heard.recv_timeout(AT_LAST) {
                Ok(Event::Ends(call, _)) => drop(self.calls.remove(&call)),
                Ok(_) => {}
                Err(_) => break,
            }
        }
    }

    /// Writes a message. A client that reads no more has left.
    fn say(&mut self, message: &Value) {
        let line = format!("{message}\n");
        let said = self.output.write_all(line.as_bytes()).and_then(|()| self.output.flush());
        self.is_gone |= said.is_err();
    }

    fn take(&mut self, message: Result<Message, Wrong>) {
        match message {
            Err(wrong) => self.say(&wire::error(&wrong.id, wrong.code, wrong.why, None)),
            Ok(Message::Request { id, method, params }) => {
                if let Err((code, why, data)) = self.request(&id, &method, &params) {
                    self.say(&wire::error(&id, code, &why, data));
                }
            }
            Ok(Message::Notification { method, params }) => {
                if method == "notifications/cancelled" {
                    self.cancel(&params["requestId"]);
                }
            }
            // Nothing was asked.
            Ok(Message::Answer) => {}
        }
    }

    fn request(&mut self, id: &Value, method: &str, params: &Value) -> Result<(), (i64, String, Option<Value>)> {
        let wrong = |code, why: &str| Err((code, why.to_owned(), None));
        let client = match Client::of_request(params) {
            Some(Ok(client)) => client,
            Some(Err(Unfit::Version(asked))) => {
                let data = json!({ "supported": [MODERN], "requested": asked });
                return Err((wire::VERSION, "this version of the protocol is not spoken here".into(), Some(data)));
            }
            Some(Err(Unfit::Missing(key))) => return wrong(PARAMS, &format!("_meta has no {key}")),
            None => match (method, &self.opened) {
                ("initialize", None) => {
                    self.opened = Some(Client::of_initialize(params));
                    let version = client::negotiated(&params["protocolVersion"]);
                    self.say(&wire::result(id, opening(version)));
                    return Ok(());
                }
                ("initialize", Some(_)) => return wrong(INVALID, "this connection is open already"),
                ("ping", _) => {
                    self.say(&wire::result(id, json!({})));
                    return Ok(());
                }
                (_, Some(client)) => client.clone(),
                ("server/discover", None) => return wrong(PARAMS, &format!("_meta has no {}", client::VERSION)),
                (_, None) => {
                    return wrong(INVALID, "initialize comes first, or each request has its version in _meta (2026-07-28)");
                }
            },
        };
        match method {
            "server/discover" if client.era == Era::Modern => {
                let result = json!({
                    "supportedVersions": [MODERN], "capabilities": { "tools": {} }, "instructions": ABOUT,
                    "ttlMs": 3_600_000, "cacheScope": "public",
                });
                self.say(&wire::result(id, completed(result)));
                Ok(())
            }
            "tools/list" if params.get("cursor").is_some_and(|cursor| !cursor.is_null()) => {
                wrong(PARAMS, "there is no such cursor")
            }
            "tools/list" => {
                let tools: Vec<Value> = TOOLS.iter().map(tools::Tool::listed).collect();
                let result = match client.era {
                    Era::Legacy => json!({ "tools": tools }),
                    Era::Modern => completed(json!({ "tools": tools, "ttlMs": 3_600_000, "cacheScope": "public" })),
                };
                self.say(&wire::result(id, result));
                Ok(())
            }
            "tools/call" => self.call(id, params, client),
            _ => wrong(METHOD, &format!("{method} is not served here")),
        }
    }

    fn call(&mut self, id: &Value, params: &Value, client: Client) -> Result<(), (i64, String, Option<Value>)> {
        let name = params["name"].as_str().unwrap_or_default();
        let Some(tool) = tools::find(name) else { return Err((PARAMS, format!("there is no tool {name:?}"), None)) };
        if self.is_open(id) {
            return Err((INVALID, "a request with this id has no answer yet".into(), None));
        }
        let arguments = match tool.read(&params["arguments"]) {
            Ok(arguments) => arguments,
            // Told as the tool's own result, so that the model sees it.
            Err(why) => {
                self.finish(id, client.era, &Outcome::refused("usage", why));
                return Ok(());
            }
        };
        let asked = Asked { tool, arguments, client: client.name.clone() };
        if self.calls.len() >= MOST {
            self.finish(id, client.era, &Outcome::refused("busy", format!("{MOST} calls run already")));
        } else {
            self.count += 1;
            let stop = self.carrier.begin(&asked, Told { call: self.count, events: self.events.clone(), waits: None });
            let progress = params["_meta"].get("progressToken").filter(|token| token.is_string() || token.is_number()).cloned();
            self.calls.insert(self.count, Running { id: id.clone(), era: client.era, stop, progress, is_cancelled: false });
        }
        Ok(())
    }

    /// True if a request is not answered yet.
    fn is_open(&self, id: &Value) -> bool {
        self.calls.values().any(|call| call.id == *id && !call.is_cancelled)
    }

    /// Cancels a request: it gets no answer. What it has done stays.
    fn cancel(&mut self, id: &Value) {
        if let Some(call) = self.calls.values_mut().find(|call| call.id == *id && !call.is_cancelled) {
            call.is_cancelled = true;
            (call.stop)();
        }
    }

    fn progress(&mut self, call: u64, seconds: u64, waits: Option<String>) {
        let Some(call) = self.calls.get(&call).filter(|call| !call.is_cancelled) else { return };
        let Some(token) = &call.progress else { return };
        let message = waits.unwrap_or_else(|| format!("running for {seconds} s"));
        let params = json!({ "progressToken": token, "progress": seconds, "message": message });
        self.say(&wire::notification("notifications/progress", params));
    }

    fn finish(&mut self, id: &Value, era: Era, outcome: &Outcome) {
        let mut result = json!({ "content": [{ "type": "text", "text": outcome.document.to_string() }] });
        if outcome.is_error {
            result["isError"] = true.into();
        }
        let result = if era == Era::Modern { completed(result) } else { result };
        self.say(&wire::result(id, result));
    }
}

fn completed(mut result: Value) -> Value {
    result["resultType"] = "complete".into();
    result["_meta"] = us();
    result
}

fn implementation() -> Value {
    json!({ "name": NAME, "version": env!("CARGO_PKG_VERSION") })
}

fn us() -> Value {
    json!({ "io.modelcontextprotocol/serverInfo": implementation() })
}

fn opening(version: &str) -> Value {
    json!({
        "protocolVersion": version,
        "capabilities": { "tools": {} },
        "serverInfo": implementation(),
        "instructions": ABOUT,
    })
}
