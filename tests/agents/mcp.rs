//! `recant mcp`, spoken to by hand in both eras of the protocol: every tool.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use crate::agent::Agent;
use crate::common::{World, recant, until};
use serde_json::{Value, json};

/// The eras.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Era {
    Legacy,
    Modern,
}
const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

/// A client, with what it declares.
struct Client {
    server: Child,
    to: Option<ChildStdin>,
    from: Receiver<Value>,
    era: Era,
    meta: Value,
    count: u64,
    /// Notifications that came.
    told: Vec<Value>,
    schemas: BTreeMap<String, Value>,
}

impl Client {
    fn new(world: &World, era: Era) -> Self {
        Self::with(world, era, &["mcp"])
    }

    fn with(world: &World, era: Era, args: &[&str]) -> Self {
        let mut client = Self::start(world.call(args).command(), era);
        if era == Era::Legacy {
            let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "Test Client", "version": "1" } });
            let opened = client.request("initialize", params);
            assert_eq!(opened["result"]["protocolVersion"], "2025-06-18", "{opened}");
            client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        }
        client
    }

    fn start(mut command: std::process::Command, era: Era) -> Self {
        let mut server =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the server starts");
        let out = BufReader::new(server.stdout.take().expect("a pipe"));
        let (say, from) = mpsc::channel();
        std::thread::spawn(move || {
            for line in out.lines() {
                let line = line.expect("UTF-8");
                let message = serde_json::from_str(&line).unwrap_or_else(|error| panic!("no JSON ({error}): {line}"));
                if say.send(message).is_err() {
                    return;
                }
            }
        });
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "Test Client", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let to = server.stdin.take();
        Self { server, to, from, era, meta, count: 0, told: Vec::new(), schemas: BTreeMap::new() }
    }

    fn line(&mut self, line: &str) {
        let to = self.to.as_mut().expect("an open server");
        to.write_all(line.as_bytes()).and_then(|()| to.write_all(b"\n")).expect("the server reads");
    }

    fn send(&mut self, message: &Value) {
        self.line(&message.to_string());
    }

    fn next(&self) -> Value {
        self.from.recv_timeout(Duration::from_secs(30)).expect("a message within 30 s")
    }

    /// Sends a request; returns its id.
    fn ask(&mut self, method: &str, mut params: Value) -> u64 {
        self.count += 1;
        if self.era == Era::Modern {
            let meta = params["_meta"].take();
            params["_meta"] = self.meta.clone();
            if let Some(token) = meta.get("progressToken") {
                params["_meta"]["progressToken"] = token.clone();
            }
        }
        self.send(&json!({ "jsonrpc": "2.0", "id": self.count, "method": method, "params": params }));
        self.count
    }

    /// The answer to a request. What comes in between is told.
    fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.next();
            match (message.get("method"), &message["id"]) {
                (None, found) if *found == id => return message,
                (Some(_), Value::Null) => self.told.push(message),
                _ => panic!("unexpected: {message}"),
            }
        }
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        self.answer(id)
    }

    /// The result of a tool.
    fn call(&mut self, name: &str, arguments: Value) -> Value {
        let message = self.request("tools/call", json!({ "name": name, "arguments": arguments }));
        assert!(message["result"].is_object(), "{name}: {message}");
        self.checked(name, message["result"].clone())
    }

    /// A result as its tool promises: its schema, the same text, and what the era wants.
    fn checked(&mut self, name: &str, result: Value) -> Value {
        if self.schemas.is_empty() {
            for tool in self.request("tools/list", json!({}))["result"]["tools"].as_array().expect("tools") {
                self.schemas.insert(tool["name"].as_str().expect("a name").into(), tool["outputSchema"].clone());
            }
        }
        let document = &result["structuredContent"];
        fits(document, &self.schemas[name]).unwrap_or_else(|why| panic!("{name}: {why}\n{document}"));
        let text = result["content"][0]["text"].as_str().expect("text");
        assert_eq!(serde_json::from_str::<Value>(text).expect("JSON"), *document, "{name}");
        assert!(text.len() < 12_000, "{name}: {} bytes", text.len());
        match self.era {
            Era::Modern => {
                assert_eq!(
                    (&result["resultType"], &result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"]),
                    (&json!("complete"), &json!("recant"))
                );
            }
            Era::Legacy => assert!(result.get("resultType").is_none(), "{result}"),
        }
        result
    }

    /// Asks the server to end, by a signal.
    fn end(&mut self) {
        let server = rustix::process::Pid::from_child(&self.server);
        rustix::process::kill_process(server, rustix::process::Signal::TERM).expect("a server to end");
        let start = Instant::now();
        while self.server.try_wait().expect("its end").is_none() {
            assert!(start.elapsed() < Duration::from_secs(10), "it goes on");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(self.server.wait().expect("its end").code(), Some(143));
    }

    /// Closes its input; true if it ends by itself.
    fn close(mut self) -> bool {
        drop(self.to.take());
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(20) {
            if let Some(status) = self.server.try_wait().expect("its end") {
                return status.success();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        false
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.to.take());
        drop(self.server.kill());
        drop(self.server.wait());
    }
}

/// A small part of JSON Schema: what recant's own schemas use.
fn fits(value: &Value, schema: &Value) -> Result<(), String> {
    let is = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("a type {other}"),
    };
    for key in schema.as_object().expect("a schema").keys() {
        assert!(["type", "properties", "required", "items", "anyOf"].contains(&key.as_str()), "{key}");
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !types.is_empty() && !types.iter().any(|name| is(name)) {
        return Err(format!("{value} is no {types:?}"));
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let why: Vec<String> = any.iter().filter_map(|one| fits(value, one).err()).collect();
        if why.len() == any.len() {
            return Err(why.join("; "));
        }
    }
    if let (Some(list), Some(items)) = (value.as_array(), schema.get("items")) {
        list.iter().try_for_each(|item| fits(item, items))?;
    }
    let Some(keys) = value.as_object() else { return Ok(()) };
    for key in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !keys.contains_key(key) {
            return Err(format!("no {key}"));
        }
    }
    for (key, value) in keys {
        if let Some(schema) = schema["properties"].get(key) {
            fits(value, schema).map_err(|why| format!("{key}: {why}"))?;
        }
    }
    Ok(())
}

fn document(result: &Value) -> &Value {
    &result["structuredContent"]
}

/// The document of a call that did what it was asked.
#[track_caller]
fn done(result: Value) -> Value {
    assert_eq!(result["isError"], false, "{result}");
    document(&result).clone()
}

/// The document of a call that did not.
#[track_caller]
fn refused(result: Value) -> Value {
    assert_eq!(result["isError"], true, "{result}");
    document(&result).clone()
}

/// A world with a session that holds an edit of `a.txt` and a new `b.txt`.
fn held() -> (World, String) {
    let world = World::new();
    let id = world.edited("a.txt");
    world.stage_write(&id, "b.txt", "b");
    (world, id)
}

#[test]
fn a_client_of_either_era_finds_the_same_tools() {
    let world = World::new();
    let mut lists = Vec::new();
    for era in ERAS {
        let mut client = Client::new(&world, era);
        let listed = client.request("tools/list", json!({}))["result"].clone();
        if era == Era::Modern {
            assert_eq!((&listed["resultType"], &listed["cacheScope"]), (&json!("complete"), &json!("public")));
            assert!(listed["ttlMs"].is_u64(), "{listed}");
            let told = client.request("server/discover", json!({}))["result"].clone();
            assert_eq!(told["supportedVersions"], json!(["2026-07-28"]));
            assert!(told["capabilities"]["tools"].is_object() && told["instructions"].is_string(), "{told}");
        }
        lists.push(listed["tools"].clone());
        assert!(client.close());
    }
    assert_eq!(lists[0], lists[1]);
    let names: Vec<&str> = lists[0].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(
        names.join(" "),
        "hold_run status diff steps rewind snapshot_create snapshot_list snapshot_diff turns log commit rollback redo snapshot_restore"
    );
    for tool in lists[0].as_array().unwrap() {
        let decides = ["commit", "rollback", "redo", "snapshot_restore"].contains(&tool["name"].as_str().unwrap());
        assert_eq!(tool["_meta"]["anthropic/requiresUserInteraction"] == true, decides, "{tool}");
        assert_eq!(tool["annotations"]["destructiveHint"], decides, "{tool}");
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{tool}");
    }
}

#[test]
fn what_is_no_message_of_the_protocol_is_answered_by_an_error() {
    let world = World::new();
    let start = || Client::start(world.call(["mcp"]).command(), Era::Legacy);
    let mut client = start();
    let code = |client: &Client| client.next()["error"]["code"].as_i64();
    for (line, want) in [
        ("{", -32700),
        ("[]", -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
        // Neither opened nor with its version.
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"server/discover"}"#, -32602),
    ] {
        client.line(line);
        assert_eq!(code(&client), Some(want), "{line}");
    }
    assert_eq!(client.request("ping", json!({}))["result"], json!({}));
    // The newest with a handshake, for a version that has none or is not known.
    for (asked, want) in
        [("2025-11-25", "2025-11-25"), ("2025-03-26", "2025-03-26"), ("2024-11-05", "2025-11-25"), ("2026-07-28", "2025-11-25")]
    {
        let mut client = start();
        let opened = client.request("initialize", json!({ "protocolVersion": asked, "capabilities": {} }));
        assert_eq!(opened["result"]["protocolVersion"], want);
        for (method, params, want) in [
            ("initialize", json!({}), -32600),
            ("resources/list", json!({}), -32601),
            ("server/discover", json!({}), -32601),
            ("tools/call", json!({ "name": "commit_all" }), -32602),
            ("tools/call", json!({}), -32602),
            ("tools/list", json!({ "cursor": "x" }), -32602),
        ] {
            assert_eq!(client.request(method, params)["error"]["code"], want, "{method}");
        }
        // A batch: each message is answered.
        client.line(r#"[{"jsonrpc":"2.0","id":"x","method":"ping"},{"jsonrpc":"2.0","method":"notifications/none"},7]"#);
        assert_eq!((client.next()["id"].as_str(), code(&client)), (Some("x"), Some(-32600)));
    }
    let mut client = Client::new(&world, Era::Modern);
    client.meta["io.modelcontextprotocol/protocolVersion"] = "2030-01-01".into();
    let unknown = client.request("tools/list", json!({}))["error"].clone();
    assert_eq!(
        (&unknown["code"], &unknown["data"]),
        (&json!(-32022), &json!({ "supported": ["2026-07-28"], "requested": "2030-01-01" }))
    );
    client.meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28" });
    assert_eq!(client.request("tools/list", json!({}))["error"]["code"], -32602);
}

#[test]
fn a_command_is_held_and_told_in_short() {
    for era in ERAS {
        let world = World::new();
        world.write("a.txt", "old\n");
        let mut client = Client::new(&world, era);
        let line = r"echo new > a.txt; seq 1 100; printf 'x\033[2J\377\n' >&2; printf last >&2; exit 3";
        let ran = done(client.call("hold_run", json!({ "shell": line })));
        assert_eq!(
            (&ran["result"], &ran["changes"], &ran["step"], &ran["ending"]["exited"]),
            (&json!("pending"), &json!(1), &json!(1), &json!(3))
        );
        assert_eq!(ran["output"]["stdout"], (81..=100).map(|n| format!("{n}\n")).collect::<String>());
        // A user is given a hint behind it.
        let stderr = ran["output"]["stderr"].as_str().unwrap();
        assert_eq!(stderr.split("{\"schema\"").next(), Some("x^[[2J<FF>\nlast"));
        assert_eq!((&ran["output"]["stdout_bytes"], &ran["output"]["cut"]), (&json!(292), &json!(true)));
        assert_eq!(world.read("a.txt"), "old\n");
        // The next one goes on in the session, which is named after the client.
        let name = ran["session_name"].as_str().unwrap().to_owned();
        assert!(name.starts_with("test-client-"), "{name}");
        let more = done(client.call("hold_run", json!({ "command": ["cp", "a.txt", "c"] })));
        assert_eq!((&more["session"], &more["step"], &more["output"]["cut"]), (&ran["session"], &json!(2), &json!(false)));
        world.mkdir("below");
        let below = done(client.call("hold_run", json!({ "command": ["pwd"], "cwd": "below" })));
        assert_eq!(below["output"]["stdout"], format!("{}\n", world.path("below").display()));
        let other = done(client.call("hold_run", json!({ "command": ["touch", "d"], "session": "other" })));
        assert_ne!(other["session"], ran["session"]);
        assert!(!world.exists("c") && !world.exists("d"));
        // Agents are told apart by the client's name.
        let entry = world.call(["show", &name, "--json"]).run().ok().json();
        assert_eq!(entry["session"]["by"]["agent"], "test-client", "{entry}");
        let failed = refused(client.call("hold_run", json!({ "command": ["no-such-program"] })));
        assert_eq!(failed["kind"], "not_found");
        for (wrong, why) in [
            (json!({}), "give command"),
            (json!({ "command": ["a"], "shell": "b" }), "give command"),
            (json!({ "command": "ls" }), "a list of texts"),
            (json!({ "shell": "true", "session": "--commit" }), "begins with '-'"),
            (json!({ "shell": "true", "commit": true }), "no argument"),
            (json!({ "shell": "true", "cwd": "none" }), "no directory"),
        ] {
            let told = refused(client.call("hold_run", wrong));
            assert!(told["kind"] == "usage" && told["message"].as_str().unwrap().contains(why), "{told}");
        }
    }
}

#[test]
fn progress_is_told_to_who_wants_it_and_a_cancelled_run_keeps_its_step() {
    runs_that_take_time(Era::Modern);
}

#[test]
fn progress_and_cancellation_are_the_same_for_older_clients() {
    runs_that_take_time(Era::Legacy);
}

/// Waits until session `s` has a change of this file: its command has begun.
fn until_held(world: &World, name: &str) {
    until(name, || world.recant("diff s --name-only").stdout().contains(name));
}

fn runs_that_take_time(era: Era) {
    let world = World::new();
    let mut client = Client::new(&world, era);
    let call = |shell: &str| json!({ "name": "hold_run", "arguments": { "shell": shell, "session": "s" } });
    let mut asked = call("sleep 1.3");
    asked["_meta"] = json!({ "progressToken": "p" });
    let id = client.ask("tools/call", asked);
    client.answer(id);
    let told: Vec<Value> = client.told.drain(..).collect();
    assert!(told.iter().any(|told| told["method"] == "notifications/progress"), "{told:?}");
    assert!(told.iter().all(|told| told["params"]["progressToken"] == "p"), "{told:?}");
    // Two at once: one waits for the other.
    let ids = [client.ask("tools/call", call("touch one; sleep 0.2")), client.ask("tools/call", call("touch two"))];
    let mut answers = [client.next(), client.next()];
    answers.sort_by_key(|answer| answer["id"].as_u64());
    assert_eq!(answers.clone().map(|answer| answer["id"].as_u64()), ids.map(Some));
    assert!(answers.iter().all(|answer| answer["result"]["isError"] == false), "{answers:?}");
    // The time of a command, and what it leaves running.
    let start = Instant::now();
    let ended =
        done(client.call("hold_run", json!({ "shell": "touch three; sleep 60 & sleep 61", "session": "s", "timeout": 1 })));
    assert_eq!((&ended["timed_out"], &ended["ending"]["signaled"]), (&json!(true), &json!(15)));
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    // A cancelled call is not answered; what it wrote is held.
    let id = client.ask("tools/call", call("touch four; sleep 60"));
    until_held(&world, "four");
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }));
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "unknown" } }));
    let start = Instant::now();
    let steps = done(client.call("hold_run", json!({ "shell": "touch five", "session": "s" })));
    assert_eq!((&steps["step"], &steps["changes"]), (&json!(5), &json!(5)), "{steps}");
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    // Nor is one whose client leaves.
    client.ask("tools/call", call("touch six; sleep 60"));
    until_held(&world, "six");
    let start = Instant::now();
    assert!(client.close() && start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    let shown = world.recant("diff s --name-only --json").ok().json();
    assert_eq!(shown["paths"].as_array().map(Vec::len), Some(6), "{shown}");
    assert!(!world.exists("one"));
}

#[test]
fn a_command_that_does_not_end_when_it_is_asked_to_is_killed_and_held() {
    let world = World::new();
    let mut client = Client::new(&world, Era::Modern);
    let told = refused(
        client.call("hold_run", json!({ "shell": "trap '' TERM; touch x; sleep 60; sleep 60", "session": "s", "timeout": 1 })),
    );
    assert!(told["message"].as_str().is_some_and(|why| why.contains("was killed")), "{told}");
    assert_eq!(done(client.call("diff", json!({ "session": "s" })))["total"], 1);
}

#[test]
fn a_server_that_is_asked_to_end_keeps_what_its_commands_have_written() {
    let world = World::new();
    let mut client = Client::new(&world, Era::Modern);
    client.ask("tools/call", json!({ "name": "hold_run", "arguments": { "shell": "touch made; sleep 60", "session": "s" } }));
    until_held(&world, "made");
    client.end();
    let shown = world.recant("diff s --name-only --json").ok();
    assert!(shown.err.is_empty(), "it still runs: {shown}");
    assert_eq!(shown.json()["paths"].as_array().map(Vec::len), Some(1), "{shown}");
}

#[test]
fn every_tool_that_looks_gives_what_its_schema_promises() {
    for era in ERAS {
        let world = World::new();
        let mut client = Client::new(&world, era);
        // An empty store, too.
        done(client.call("status", json!({})));
        done(client.call("log", json!({})));
        for name in ["diff", "steps", "turns"] {
            refused(client.call(name, json!({})));
        }
        let snapshot = done(client.call("snapshot_create", json!({ "message": "--x", "label": "start", "dir": "." })));
        assert_eq!((&snapshot["n"], &snapshot["result"]), (&json!(0), &json!("created")));
        done(client.call("hold_run", json!({ "shell": "echo one > one; echo two > two", "session": "s" })));
        done(client.call("hold_run", json!({ "shell": "rm one; seq 1 50 > many", "session": "s" })));
        let diff = done(client.call("diff", json!({})));
        assert_eq!((&diff["total"], &diff["patch"]["lines"].as_array().unwrap().len()), (&json!(2), &20));
        assert_eq!(done(client.call("diff", json!({ "session": "s", "paths": ["two"] })))["total"], 1);
        assert_eq!(done(client.call("diff", json!({ "session": "s", "step": 1 })))["total"], 2);
        assert_eq!(done(client.call("diff", json!({ "session": "s", "since": 1 })))["total"], 2);
        assert_eq!(done(client.call("steps", json!({ "session": "s" })))["head"], 2);
        assert_eq!(done(client.call("rewind", json!({ "session": "s", "step": 1 })))["step"], 1);
        assert_eq!(done(client.call("steps", json!({ "session": "s" })))["head"], 1);
        assert_eq!(done(client.call("log", json!({ "session": "s" })))["entries"][0]["verb"], "rewind 1");
        assert_eq!(done(client.call("log", json!({ "paths": ["two"] })))["touched"][0]["standing"], "held");
        // It is a path, and not the session.
        refused(client.call("log", json!({ "session": "none" })));
        assert_eq!(done(client.call("log", json!({ "paths": ["s"] })))["touched"], json!([]));
        assert_eq!(done(client.call("snapshot_list", json!({})))["snapshots"][0]["message"], "--x");
        world.write("real", "real\n");
        let changed = done(client.call("snapshot_diff", json!({ "snapshot": "start" })));
        assert_eq!((&changed["total"], &changed["changes"][0]["insertions"]), (&json!(1), &json!(1)));
        assert!(changed["patch"]["lines"].as_array().unwrap().contains(&json!("+real")), "{changed}");
        assert_eq!(done(client.call("snapshot_diff", json!({ "snapshot": "0", "paths": ["real"] })))["total"], 1);
        // What is real is not gone back from so.
        done(client.call("rewind", json!({ "session": "s", "step": 2 })));
        world.recant("commit s").ok();
        let committed = refused(client.call("rewind", json!({ "session": "s", "step": 0 })));
        assert!(
            world.exists("many") && committed["message"].as_str().is_some_and(|why| why.contains("it is committed")),
            "{committed}"
        );
        world.recant("rollback s").ok();
        let agent = Agent::begin(&world, "claude", "s");
        agent.prompt("edit");
        agent.edit("edited", "x");
        agent.stop();
        assert_eq!(done(client.call("turns", json!({ "agent": "claude" })))["total"], 1);
        assert_eq!(done(client.call("status", json!({})))["sessions"]["rolled_back"], 1);
    }
}

#[test]
fn lists_and_patches_come_in_parts_and_each_item_once() {
    let world = World::new();
    let mut client = Client::new(&world, Era::Modern);
    let line = "for i in $(seq 100 144); do echo $i > a-rather-long-name-of-a-file-that-takes-room-$i; done";
    done(client.call("hold_run", json!({ "shell": line, "session": "s" })));
    world.recant("commit s").ok();
    for n in 0..22 {
        done(client.call("snapshot_create", json!({ "message": format!("{n}"), "label": format!("l{n}") })));
    }
    world.recant("rollback s").ok();
    let mut pages = |tool: &str, key: &str, arguments: Value| {
        let (mut items, mut cursor, mut pages) = (Vec::new(), Value::Null, 0);
        loop {
            let mut arguments = arguments.clone();
            arguments["cursor"] = cursor;
            let page = done(client.call(tool, arguments));
            items.extend(page[key].as_array().unwrap().clone());
            pages += 1;
            cursor = page["next"].clone();
            if cursor.is_null() {
                assert_eq!(page["total"], items.len(), "{tool}");
                let texts: std::collections::BTreeSet<String> = items.iter().map(Value::to_string).collect();
                assert_eq!(texts.len(), items.len(), "{tool}");
                return (items.len(), pages);
            }
        }
    };
    assert_eq!(pages("snapshot_list", "snapshots", json!({})), (22, 2));
    assert_eq!(pages("snapshot_diff", "changes", json!({ "snapshot": "last" })), (45, 3));
    let (count, several) = pages("diff", "changes", json!({ "session": "s" }));
    assert!(count == 45 && several > 1, "{several}");
    let (mut lines, mut cursor) = (Vec::new(), json!(null));
    while lines.is_empty() || !cursor.is_null() {
        let page = done(client.call("diff", json!({ "session": "s", "cursor": cursor })));
        assert!(page["patch"]["lines"].as_array().unwrap().len() <= 20);
        lines.extend(page["patch"]["lines"].as_array().unwrap().iter().map(|line| line.as_str().unwrap().to_owned()));
        cursor = page["patch"]["next"].clone();
    }
    assert_eq!(lines.join("\n") + "\n", world.recant("diff s").ok().stdout());
    for cursor in ["x", "000000000000", "p", "p-1"] {
        refused(client.call("snapshot_list", json!({ "cursor": cursor })));
        refused(client.call("diff", json!({ "session": "s", "cursor": cursor })));
    }
}

#[test]
fn a_persons_tool_gives_the_command_to_type() {
    for era in ERAS {
        let world = World::new();
        let id = world.edited("a.txt");
        let mut client = Client::new(&world, era);
        let told = refused(client.call("commit", json!({ "session": "last" })));
        assert_eq!(told["command"], format!("recant commit {}", &id[16..]));
        assert_eq!(
            told["would"]["paths"],
            json!([{ "path": world.path("a.txt"), "done": "modified", "kind": "file" }]),
            "{told}"
        );
        assert_eq!(world.read("a.txt"), "old");
        let typed = |told: &Value| {
            let words = told["command"].as_str().unwrap().strip_prefix("recant ").unwrap().to_owned();
            world.recant(&words).ok();
        };
        typed(&told);
        assert_eq!(world.read("a.txt"), "new");
        let told = refused(client.call("rollback", json!({ "session": &id, "paths": ["a.txt"] })));
        assert_eq!(told["command"], format!("recant rollback {} {}", &id[16..], world.path("a.txt").display()));
        typed(&told);
        typed(&refused(client.call("redo", json!({ "session": &id }))));
        done(client.call("snapshot_create", json!({})));
        world.write("a.txt", "later");
        let told = refused(client.call("snapshot_restore", json!({ "snapshot": "last" })));
        assert_eq!(world.read("a.txt"), "later");
        typed(&told);
        assert_eq!(world.read("a.txt"), "new");
        // Of a part the command names the session: the part of a dry run is gone.
        let two = world.begin();
        world.stage(&two, ["write b.txt b", "write c.txt c"]);
        let told = refused(client.call("commit", json!({ "session": &two, "paths": ["b.txt"] })));
        assert_eq!(told["command"], format!("recant commit {} {}", &two[16..], world.path("b.txt").display()), "{told}");
        typed(&told);
        assert!(world.exists("b.txt") && !world.exists("c.txt"));
        let told = refused(client.call("rollback", json!({ "session": &id, "paths": ["a.txt:1"] })));
        assert_eq!(told["command"], format!("recant rollback {} {}:1", &id[16..], world.path("a.txt").display()), "{told}");
        // What cannot be done is said at once.
        let nothing = refused(client.call("commit", json!({ "session": &id })));
        assert!(nothing.get("command").is_none() && nothing["message"].as_str().unwrap().contains("nothing"), "{nothing}");
        refused(client.call("snapshot_restore", json!({ "snapshot": "last" })));
        refused(client.call("rollback", json!({ "session": "none" })));
        refused(client.call("rollback", json!({ "session": &id, "paths": ["none"] })));
        world.write("a.txt", "theirs");
        let conflict = refused(client.call("rollback", json!({ "session": &id })));
        assert_eq!((&conflict["kind"], conflict.get("command")), (&json!("conflict"), None), "{conflict}");
    }
}

#[test]
fn a_client_of_an_agent_that_is_known_has_its_word() {
    let world = World::new();
    let mut client = Client::new(&world, Era::Modern);
    for (name, want) in [("codex-mcp-client", "codex"), ("Claude Code", "claude"), ("codexy", "codexy"), ("", "mcp")] {
        client.meta["io.modelcontextprotocol/clientInfo"]["name"] = name.into();
        let ran = done(client.call("hold_run", json!({ "shell": format!("touch x-{want}") })));
        assert!(ran["session_name"].as_str().is_some_and(|name| name.starts_with(&format!("{want}-"))), "{ran}");
        let shown = world.call(["show", ran["session"].as_str().expect("a session"), "--json"]).run().ok().json();
        assert_eq!(shown["session"]["by"]["agent"], want, "{shown}");
    }
}

#[test]
fn inside_a_run_the_person_outside_decides() {
    let (world, id) = held();
    let open = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "capabilities": {} } });
    let call = |n: u64, name: &str, arguments: Value| json!({ "jsonrpc": "2.0", "id": n, "method": "tools/call", "params": { "name": name, "arguments": arguments } });
    let mut lines = vec![open, call(2, "commit", json!({ "session": id })), call(3, "hold_run", json!({ "shell": "touch x" }))];
    let look = ["status", "diff", "steps", "turns", "log", "snapshot_list", "snapshot_create"];
    lines.extend(look.iter().zip(4..).map(|(name, n)| call(n, name, json!({}))));
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    world.write("input", input);
    let line = format!("{} mcp < input", recant());
    let said = world.call(["run", "--session", "s", "--", "sh", "-c", &line]).run().ok();
    let mut answers = said.json_lines();
    answers.sort_by_key(|answer| answer["id"].as_u64());
    let told = |n: usize| answers[n]["result"]["structuredContent"].clone();
    assert!(told(1)["message"].as_str().unwrap().contains("inside the run of session"), "{said}");
    assert!(told(1)["remedy"].as_str().unwrap().contains("the person outside does that: recant review"), "{said}");
    assert!(told(2)["message"].as_str().unwrap().contains("run it by yourself"), "{said}");
    for (name, n) in look.iter().zip(3..) {
        assert_eq!(answers[n]["result"]["isError"], true, "{name}: {said}");
    }
    assert_eq!(world.read("a.txt"), "old");
}

#[test]
fn a_server_is_of_one_machine_and_of_the_store_that_is_named() {
    let world = World::new();
    let said = world.recant("-H web1 mcp").with(2);
    assert!(said.stderr().contains("ssh HOST recant mcp"), "{said}");
    let mut client = Client::with(&world, Era::Modern, &["--store", "../elsewhere", "mcp"]);
    done(client.call("hold_run", json!({ "shell": "touch x", "session": "s" })));
    assert!(world.root().join("elsewhere/sessions").is_dir() && !world.store().exists());
    let told = refused(client.call("commit", json!({ "session": "s" })));
    assert!(told["command"].as_str().unwrap().starts_with("recant --store "), "{told}");
    // A host of the environment is for what a person types.
    let command = world.call(["mcp"]).env("RECANT_HOST", "web1").command();
    let mut client = Client::start(command, Era::Modern);
    done(client.call("hold_run", json!({ "shell": "touch x", "session": "s" })));
    assert!(world.store().join("sessions").is_dir());
}

#[test]
fn no_snapshot_that_a_person_took_is_pruned_for_an_agents() {
    let world = World::new();
    world.config("[snapshot]\nkeep = 3\n");
    for n in 0..3 {
        world.write("a.txt", format!("{n}"));
        world.recant("snapshot create").ok();
    }
    let mut client = Client::new(&world, Era::Modern);
    for n in 3..8 {
        world.write("a.txt", format!("{n}"));
        done(client.call("snapshot_create", json!({})));
    }
    let numbers = || -> Vec<u64> {
        let listed = world.recant("snapshot list --json").ok().json();
        let mut numbers: Vec<u64> =
            listed["snapshots"].as_array().unwrap().iter().map(|row| row["n"].as_u64().unwrap()).collect();
        numbers.sort_unstable();
        numbers
    };
    assert_eq!(numbers(), [0, 1, 2, 5, 6, 7]);
    // The person's own next one lets the first of his own go.
    world.write("a.txt", "8");
    world.recant("snapshot create").ok();
    assert_eq!(numbers(), [1, 2, 5, 6, 7, 8]);
}

#[test]
fn a_session_in_the_log_is_a_session_and_a_path_is_a_path() {
    let world = World::new();
    let mut client = Client::new(&world, Era::Modern);
    done(client.call("hold_run", json!({ "shell": "touch x", "session": "s" })));
    world.write("file", "x");
    let both = refused(client.call("log", json!({ "session": "s", "paths": ["x"] })));
    assert_eq!(both["kind"], "usage");
    assert!(both["remedy"].as_str().is_some_and(|remedy| remedy.contains("alone")), "{both}");
    for no_session in ["file", "./file", "."] {
        let told = refused(client.call("log", json!({ "session": no_session })));
        assert!(told["message"].as_str().is_some_and(|why| why.contains("no session")), "{told}");
    }
    assert!(done(client.call("log", json!({ "session": "s" })))["entries"].is_array());
}

#[test]
fn a_cursor_into_a_patch_that_is_not_there_is_refused() {
    let world = World::new();
    let mut client = Client::new(&world, Era::Modern);
    done(client.call("hold_run", json!({ "shell": "seq 50 > many", "session": "s" })));
    done(client.call("snapshot_create", json!({})));
    let told = refused(client.call("diff", json!({ "session": "none", "cursor": "p20" })));
    assert!(told["message"].as_str().is_some_and(|why| why.contains("none")), "{told}");
    refused(client.call("snapshot_diff", json!({ "snapshot": "99", "cursor": "p20" })));
    for cursor in ["p18446744073709551615", "p99999999999", "p4294967295", "p99"] {
        let told = refused(client.call("diff", json!({ "session": "s", "cursor": cursor })));
        assert!(told["message"].is_string(), "{told}");
    }
    assert_eq!(done(client.call("diff", json!({ "session": "s", "cursor": "p20" })))["patch"]["line"], 20);
}

#[test]
fn output_that_is_cut_says_so_and_notes_are_counted() {
    let world = World::new();
    let mut client = Client::new(&world, Era::Modern);
    // Shown harmless it is longer than it was.
    let line = r"for i in $(seq 25); do printf '\001\001\001\001\n'; done";
    let ran = done(client.call("hold_run", json!({ "shell": line })));
    assert_eq!((&ran["output"]["stdout_bytes"], &ran["output"]["cut"]), (&json!(125), &json!(true)), "{ran}");
    let ran = done(client.call("hold_run", json!({ "shell": r"printf '\001\001\n'" })));
    assert_eq!((&ran["output"]["stdout"], &ran["output"]["cut"]), (&json!("^A^A\n"), &json!(false)), "{ran}");
    let line = r#"for i in $(seq 50); do echo '{"schema":2,"note":"n"}' >&2; done"#;
    let ran = done(client.call("hold_run", json!({ "shell": line })));
    assert_eq!(ran["notes"].as_array().map(Vec::len), Some(20), "{ran}");
    assert!(ran["more"]["notes"].as_u64().is_some_and(|more| more >= 30), "{ran}");
}

#[test]
fn a_command_ends_with_a_server_that_is_killed() {
    let world = World::new();
    let mut client = Client::new(&world, Era::Modern);
    client.ask("tools/call", json!({ "name": "hold_run", "arguments": { "shell": "touch made; sleep 60", "session": "s" } }));
    until_held(&world, "made");
    client.server.kill().expect("a server to kill");
    let start = Instant::now();
    loop {
        let shown = world.recant("diff s --name-only --json").ok();
        if shown.err.is_empty() {
            assert_eq!(shown.json()["paths"].as_array().map(Vec::len), Some(1), "{shown}");
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(15), "it still runs: {shown}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_command_whose_time_was_over_before_it_could_start_is_told_so() {
    let world = World::new();
    let mut client = Client::new(&world, Era::Modern);
    let call = |shell: &str| json!({ "name": "hold_run", "arguments": { "shell": shell, "session": "s" } });
    client.ask("tools/call", call("touch made; sleep 60"));
    until_held(&world, "made");
    let told = refused(client.call("hold_run", json!({ "shell": "touch x", "session": "s", "timeout": 1 })));
    assert!(told["state"].as_str().is_some_and(|state| state.contains("not started")), "{told}");
}

#[test]
fn long_words_in_lists_are_cut() {
    let world = World::new();
    let mut client = Client::new(&world, Era::Modern);
    for _ in 0..3 {
        done(client.call("snapshot_create", json!({ "message": "ä".repeat(5000) })));
    }
    let listed = done(client.call("snapshot_list", json!({})));
    assert_eq!(listed["snapshots"][0]["message"], format!("{}…", "ä".repeat(200)));
    done(client.call("hold_run", json!({ "shell": format!("touch x; : {}", "x".repeat(20_000)), "session": "s" })));
    let touched = done(client.call("log", json!({ "paths": ["x"] })));
    assert!(touched["touched"][0]["command"].as_str().is_some_and(|command| command.chars().count() <= 201), "{touched}");
}
