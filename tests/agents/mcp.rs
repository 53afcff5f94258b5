//! `recant mcp`, spoken to by hand in both eras of the protocol: every tool.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use crate::agent;
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
        Self { server, to, from, era, meta, count: 0, told: Vec::new() }
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
        self.checked(name, &message["result"])
    }

    /// A result as every tool gives it: one line of JSON, once, in which each key tells something.
    fn checked(&self, name: &str, result: &Value) -> Value {
        assert!(result.get("structuredContent").is_none() && result["isError"] != false, "{result}");
        let text = result["content"][0]["text"].as_str().expect("text");
        assert!(result["content"].as_array().is_some_and(|parts| parts.len() == 1) && !text.contains('\n'), "{name}: {text}");
        let document: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}: no JSON ({error}): {text}"));
        tells(&document).unwrap_or_else(|key| panic!("{name}: {key} tells nothing: {text}"));
        assert!(document.get("schema").is_none(), "{text}");
        // A page, escaped for JSON.
        assert!(text.len() < 20_000, "{name}: {} bytes", text.len());
        match self.era {
            Era::Modern => {
                assert_eq!(
                    (&result["resultType"], &result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"]),
                    (&json!("complete"), &json!("recant"))
                );
            }
            Era::Legacy => assert!(result.get("resultType").is_none(), "{result}"),
        }
        json!({ "isError": result["isError"] == true, "document": document })
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

/// The first key that tells nothing is the error.
fn tells(value: &Value) -> Result<(), String> {
    match value {
        Value::Object(keys) => keys.iter().try_for_each(|(key, value)| match value {
            Value::Null | Value::Bool(false) => Err(key.clone()),
            Value::Array(items) if items.is_empty() => Err(key.clone()),
            Value::Object(keys) if keys.is_empty() => Err(key.clone()),
            value => tells(value),
        }),
        Value::Array(items) => items.iter().try_for_each(tells),
        _ => Ok(()),
    }
}

fn document(result: &Value) -> &Value {
    &result["document"]
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
    let tools = lists[0].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names.join(" "), "hold_run sessions changes diff cat steps rewind fork discard snapshot await commit log");
    let bytes = lists[0].to_string().len();
    assert!(bytes <= 8_000, "a model reads {bytes} bytes before its first call");
    for tool in tools {
        assert!(tool.get("outputSchema").is_none(), "{tool}");
        assert_ne!(tool["annotations"]["destructiveHint"], true, "{tool}");
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
        let line = r"echo new > a.txt; echo one; printf 'x\033[2J\377\n' >&2; printf last >&2; exit 3";
        let ran = done(client.call("hold_run", json!({ "shell": line })));
        assert_eq!((&ran["step"], &ran["exited"], &ran["changed"]), (&json!(1), &json!(3), &json!(1)), "{ran}");
        assert_eq!(ran["changes"], json!([{ "path": "a.txt", "change": "modified" }]), "{ran}");
        // A user is given a hint behind it, which is a note.
        assert_eq!((&ran["stdout"], &ran["stderr"]), (&json!("one\n"), &json!("x^[[2J<FF>\nlast")), "{ran}");
        assert_eq!(world.read("a.txt"), "old\n");
        // The next one goes on in the session, which is named after the client, and tells its own changes alone.
        let shown = world.call(["show", ran["session"].as_str().unwrap(), "--json"]).run().ok().json();
        assert!(shown["session"]["name"].as_str().is_some_and(|name| name.starts_with("test-client-")), "{shown}");
        assert_eq!(shown["session"]["by"]["agent"], "test-client", "{shown}");
        let more = done(client.call("hold_run", json!({ "shell": "cp a.txt c" })));
        assert_eq!((&more["session"], &more["step"]), (&ran["session"], &json!(2)));
        assert_eq!(more["changes"], json!([{ "path": "c", "change": "created" }]));
        // What has no row is counted apart.
        let timed = done(client.call("hold_run", json!({ "shell": "touch -d yesterday a.txt", "session": "times" })));
        assert_eq!((&timed["changed"], &timed["times"], timed.get("changes")), (&json!(1), &json!(1), None), "{timed}");
        done(client.call("hold_run", json!({ "shell": "true", "session": "other" })));
        let other = done(client.call("hold_run", json!({ "shell": "touch d", "session": "other" })));
        assert_ne!(other["session"], ran["session"]);
        assert!(!world.exists("c") && !world.exists("d"));
        let by_last = done(client.call("hold_run", json!({ "shell": "true", "session": "last" })));
        assert_eq!(by_last["session"], other["session"], "{by_last}");
        for (wrong, why) in [
            (json!({}), "give shell"),
            (json!({ "shell": "b", "cursor": "1.stdout.0" }), "give shell"),
            (json!({ "command": ["ls"] }), "not an argument"),
            (json!({ "shell": "true", "session": "--commit" }), "begins with '-'"),
        ] {
            let told = refused(client.call("hold_run", wrong));
            assert!(told["kind"] == "usage" && told["message"].as_str().unwrap().contains(why), "{told}");
        }
    }
}

#[test]
fn a_command_that_changes_and_prints_nothing_costs_next_to_nothing() {
    let world = World::new();
    for era in ERAS {
        let mut client = Client::new(&world, era);
        assert_eq!(done(client.call("hold_run", json!({ "shell": "true" }))), json!({ "exited": 0 }));
        done(client.call("hold_run", json!({ "shell": "touch x" })));
        let id = client.ask("tools/call", json!({ "name": "hold_run", "arguments": { "shell": "true" } }));
        let line = client.answer(id).to_string();
        assert!(line.len() <= if era == Era::Legacy { 200 } else { 300 }, "{} bytes: {line}", line.len());
        done(client.call("discard", json!({})));
    }
}

#[test]
fn sources_come_first_and_what_programs_made_is_told_together() {
    let world = World::new();
    agent::repository(&world);
    let git = "git -c user.name=a -c user.email=a@b.c";
    std::fs::create_dir_all(world.path("src")).unwrap();
    for n in 0..40 {
        world.write(format!("src/file{n}"), "1\n");
    }
    agent::run(&world, &format!("git add .; {git} commit -qm one"));
    let mut client = Client::new(&world, Era::Modern);
    let line = format!(
        "for n in $(seq 0 39); do echo 2 >> src/file$n; done; mkdir -p node_modules/a new made; \
         for n in 1 2 3; do echo > node_modules/a/$n; echo > new/$n; done; echo '#!/bin/sh' > .git/hooks/pre-push; \
         git checkout -qb topic; {git} commit -qam two; {git} commit -q --allow-empty -m three"
    );
    let ran = done(client.call("hold_run", json!({ "shell": line })));
    assert!(ran["changed"].as_u64().is_some_and(|count| count > 60), "{ran}");
    let hook = json!({ "path": ".git/hooks/pre-push", "change": "created", "danger": "git runs it" });
    assert_eq!((&ran["changes"][0], ran["changes"].to_string().len() <= 1_024), (&hook, true), "{ran}");
    let changes = done(client.call("changes", json!({})));
    let rows = changes["changes"].as_array().unwrap();
    assert_eq!((rows.len(), &changes["total"], changes.get("next")), (45, &json!(45), None), "{changes}");
    assert_eq!((&rows[0]["path"], &rows[0]["insertions"]), (&json!(".git/hooks/pre-push"), &json!(1)));
    assert_eq!(rows[1], json!({ "path": "made", "change": "created", "kind": "directory" }));
    assert_eq!(rows[2], json!({ "path": "src/file0", "change": "modified", "insertions": 1 }));
    assert_eq!(rows[42], json!({ "path": "new/", "change": "created", "files": 3, "bytes": 3 }));
    assert_eq!(rows[43], json!({ "path": "node_modules/", "kind": "dependencies", "created": 5, "bytes": 3 }));
    let git = json!([
        { "act": "head", "branch": "topic" }, { "act": "branch_created", "branch": "topic" },
        { "act": "commits", "branch": "topic", "count": 2 }, { "act": "index" }
    ]);
    assert_eq!((&rows[44]["path"], &rows[44]["git"]), (&json!(".git/"), &git));
    // So is the answer of commit.
    let awaited = done(client.call("commit", json!({})));
    assert_eq!(
        awaited["changes"][0],
        json!({ "path": ".git/hooks/pre-push", "change": "created", "danger": "git runs it" }),
        "{awaited}"
    );
    // So the patch is of sources, with all else named before it.
    let patch =
        |client: &mut Client, arguments: Value| done(client.call("diff", arguments))["patch"].as_str().unwrap().to_owned();
    let sources = patch(&mut client, json!({}));
    assert!(sources.starts_with("# .git/hooks/pre-push: git runs it\n# node_modules/: dependencies: 5 created"), "{sources}");
    assert!(
        sources.contains("summed up: full shows them\n") && sources.contains("+++ b/") && !sources.contains("b/.git/objects")
    );
    for arguments in [json!({ "full": true }), json!({ "paths": ["node_modules"] })] {
        let all = patch(&mut client, arguments);
        assert!(all.contains("/node_modules/a/1\n") || all.contains("/.git/HEAD"), "{all}");
    }
    // What is named is told by its parts; all in pages if it is asked for, each path once.
    let named = done(client.call("changes", json!({ "paths": ["node_modules"] })));
    assert_eq!((&named["total"], &named["changes"][1]["path"]), (&json!(2), &json!("node_modules/a/")), "{named}");
    let (mut paths, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let page = done(client.call("changes", json!({ "full": true, "cursor": cursor })));
        assert!(page.to_string().len() < 5 << 10, "{page}");
        paths.extend(page["changes"].as_array().unwrap().iter().map(|row| row["path"].to_string()));
        cursor = page["next"].clone();
        if cursor.is_null() {
            assert_eq!(page["total"], paths.len());
            break;
        }
    }
    let (count, all) = (paths.len(), world.recant("diff last --name-only --json").ok().json());
    paths.sort();
    paths.dedup();
    assert_eq!((paths.len(), Some(count)), (count, all["paths"].as_array().map(Vec::len)), "{paths:?}");
}

/// Pages with an equal end have equal cursors: which of the calls is meant is asked, and the session that a call meant stays meant.
#[test]
fn a_cursor_is_of_the_session_that_gave_it() {
    let world = World::new();
    let mut client = Client::new(&world, Era::Modern);
    for (session, last) in [("sa", "in-a"), ("sb", "in-b")] {
        let shell = format!("for i in $(seq 100 250); do echo > same_$i; done; echo > {last}");
        done(client.call("hold_run", json!({ "shell": shell, "session": session })));
    }
    // Without a session it is sb.
    let first = done(client.call("changes", json!({ "full": true })));
    done(client.call("hold_run", json!({ "shell": "true", "session": "sa" })));
    let second = done(client.call("changes", json!({ "cursor": first["next"] })));
    let of = |page: &Value, name: &str| page.to_string().contains(name);
    assert!(!of(&first, "in-a") && !of(&second, "in-a"), "{second}");
    // The same of the other one.
    let other = done(client.call("changes", json!({ "full": true, "session": "sa" })));
    assert_eq!(other["next"], first["next"], "or this test is about nothing");
    let said = client.call("changes", json!({ "cursor": other["next"] }));
    assert!(said.to_string().contains("several calls gave this cursor"), "{said}");
    let page = done(client.call("changes", json!({ "cursor": other["next"], "session": "sa" })));
    assert!(!of(&page, "in-b"), "{page}");
}

#[test]
fn of_output_the_last_lines_are_given_and_the_rest_by_a_cursor() {
    let world = World::new();
    let mut client = Client::new(&world, Era::Modern);
    let ran = done(client.call("hold_run", json!({ "shell": "seq 1 2000; echo err >&2" })));
    let whole: String = (1..=2000).map(|n| format!("{n}\n")).collect();
    let tail = ran["stdout"].as_str().unwrap();
    assert!(whole.ends_with(tail) && tail.starts_with("1592\n") && tail.len() <= 2048, "{ran}");
    assert_eq!(
        (&ran["stdout_bytes"], &ran["stdout_cursor"], &ran["stderr"]),
        (&json!(8893), &json!("1.stdout.0"), &json!("err\n"))
    );
    assert!(ran.get("stderr_cursor").is_none(), "{ran}");
    let (mut text, mut cursor) = (String::new(), ran["stdout_cursor"].clone());
    while cursor.is_string() {
        let page = done(client.call("hold_run", json!({ "cursor": cursor, "tail": 3000 })));
        text.push_str(page["stdout"].as_str().unwrap());
        cursor = page["next"].clone();
    }
    assert_eq!(text, whole);
    let some = done(client.call("hold_run", json!({ "cursor": "1.stdout.8888", "tail": 10 })));
    assert_eq!(some, json!({ "stdout": "2000\n" }));
    let all = done(client.call("hold_run", json!({ "shell": "seq 1 2000", "tail": 10_000 })));
    assert_eq!((&all["stdout"], all.get("stdout_cursor")), (&json!(whole), None));
    // A stream has a page at most.
    for line in ["seq 1 20000", r"head -c 20000 /dev/zero | tr '\0' '\001'"] {
        let most = done(client.call("hold_run", json!({ "shell": line, "tail": 100_000 })));
        let bytes = most["stdout"].to_string().len();
        assert!((15_000..=16_500).contains(&bytes) && most["stdout_cursor"].is_string(), "{bytes} bytes");
    }
    let none = done(client.call("hold_run", json!({ "shell": "seq 1 2000", "tail": 0 })));
    assert_eq!((none.get("stdout"), &none["stdout_bytes"]), (None, &json!(8893)), "{none}");
    for wrong in ["1", "9.stdout.0", "1.stdout.9000", "1.out.0", "-1.stdout.0"] {
        assert!(refused(client.call("hold_run", json!({ "cursor": wrong })))["message"].is_string());
    }
    // Shown harmless it is longer than it was, and none of it is left out.
    let ran = done(client.call("hold_run", json!({ "shell": r"printf '\001\001\n'" })));
    assert_eq!((&ran["stdout"], ran.get("stdout_bytes")), (&json!("^A^A\n"), None), "{ran}");
    let line = r#"for i in $(seq 50); do echo '{"schema":2,"note":"n"}' >&2; done"#;
    let ran = done(client.call("hold_run", json!({ "shell": line })));
    assert_eq!(ran["notes"].as_array().map(Vec::len), Some(20), "{ran}");
    assert!(ran["more"]["notes"].as_u64().is_some_and(|more| more >= 30), "{ran}");
}

#[test]
fn what_a_command_left_running_is_named_and_ends_with_its_time() {
    let world = World::new();
    let mut client = Client::new(&world, Era::Modern);
    let start = Instant::now();
    let ran = done(client.call("hold_run", json!({ "shell": "sleep 60 & echo started", "session": "s", "timeout": 1 })));
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    assert_eq!((&ran["timed_out"], &ran["exited"], &ran["stdout"]), (&json!(true), &json!(0), &json!("started\n")));
    assert_eq!(ran["notes"], json!(["ended, because the command left it running: sleep"]), "{ran}");
}

#[test]
fn a_call_without_a_session_means_that_of_the_last_command_also_after_a_restart() {
    let world = World::new();
    let mut client = Client::new(&world, Era::Modern);
    let told = refused(client.call("changes", json!({})));
    assert!(told["remedy"].as_str().is_some_and(|remedy| remedy.contains("hold_run")), "{told}");
    let one = done(client.call("hold_run", json!({ "shell": "echo 1 > f", "session": "one" })))["session"].clone();
    let ran = done(client.call("hold_run", json!({ "shell": "echo 2 > g", "session": "two" })));
    let two = ran["session"].clone();
    // In words of these tools: nobody can type a command here.
    assert!(ran["notes"][0].as_str().is_some_and(|note| note.contains("is pending") && !note.contains("recant")), "{ran}");
    world.recant("run -q --session persons -- touch h").ok();
    assert_eq!(done(client.call("changes", json!({})))["session"], two);
    done(client.call("hold_run", json!({ "shell": "true", "session": "one" })));
    assert_eq!(done(client.call("steps", json!({})))["session"], one);
    // Nothing is held by it: it is no session.
    done(client.call("hold_run", json!({ "shell": "true", "session": "three" })));
    assert_eq!(done(client.call("cat", json!({ "path": "f" }))), json!({ "text": "1\n", "session": one }));
    assert!(client.close());
    let mut again = Client::new(&world, Era::Modern);
    let listed = done(again.call("sessions", json!({})));
    let names: Vec<&str> = listed["sessions"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["persons", "two", "one"], "{listed}");
    assert_eq!(done(again.call("changes", json!({})))["session"], two);
    let ran = done(again.call("hold_run", json!({ "shell": "cat g" })));
    assert_eq!((&ran["session"], &ran["stdout"]), (&two, &json!("2\n")), "{ran}");
    let two_is = two.as_str().unwrap();
    assert_eq!(ran["notes"], json!([format!("this goes on in {two_is}, the newest session that you made here")]));
    assert!(done(again.call("hold_run", json!({ "shell": "cat g" }))).get("notes").is_none());
    // What others made is not meant.
    let meta = json!({ "name": "Other", "version": "1" });
    let mut other = Client::new(&world, Era::Modern);
    other.meta["io.modelcontextprotocol/clientInfo"] = meta;
    refused(other.call("diff", json!({})));
    let own = done(other.call("hold_run", json!({ "shell": "touch i" })));
    assert_ne!(own["session"], two, "{own}");
}

#[test]
fn commands_at_once_run_beside_each_other() {
    let world = World::new();
    let mut client = Client::new(&world, Era::Modern);
    let call = |shell: &str| json!({ "name": "hold_run", "arguments": { "shell": shell, "session": "s" } });
    // Each waits for the file of the other.
    let one = client.ask("tools/call", call("touch one; until test -e two; do sleep 0.05; done"));
    until_held(&world, "one");
    let two = client.ask("tools/call", call("touch two; until test -e one; do sleep 0.05; done"));
    let mut answers = [client.next(), client.next()];
    answers.sort_by_key(|answer| answer["id"].as_u64());
    let [one, two] = [(one, &answers[0]), (two, &answers[1])].map(|(id, answer)| {
        assert_eq!(answer["id"], id);
        done(client.checked("hold_run", &answer["result"]))
    });
    assert_eq!((&one["exited"], &one["step"], &one["changed"]), (&json!(0), &json!(1), &json!(2)), "{one}");
    assert_eq!((&two["exited"], &two["beside"], &two["session"]), (&json!(0), &json!(true), &one["session"]), "{two}");
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
    done(client.call("hold_run", json!({ "shell": "touch one", "session": "s" })));
    done(client.call("hold_run", json!({ "shell": "touch two", "session": "s" })));
    // The time of a command, and what it leaves running.
    let start = Instant::now();
    let ended =
        done(client.call("hold_run", json!({ "shell": "touch three; sleep 60 & sleep 61", "session": "s", "timeout": 1 })));
    assert_eq!((&ended["timed_out"], &ended["signaled"]), (&json!(true), &json!(15)));
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    // A cancelled call is not answered; what it wrote is held.
    let id = client.ask("tools/call", call("touch four; sleep 60"));
    until_held(&world, "four");
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }));
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "unknown" } }));
    let start = Instant::now();
    // It joins the one that still ends, or is a step of its own.
    done(client.call("hold_run", json!({ "shell": "touch five", "session": "s" })));
    until("five changes", || done(client.call("changes", json!({ "session": "s" })))["total"] == 5);
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
    let line = "trap '' TERM; echo begun; touch x; sleep 60; sleep 60";
    let start = Instant::now();
    let told = done(client.call("hold_run", json!({ "shell": line, "session": "s", "timeout": 1 })));
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    assert_eq!((&told["timed_out"], &told["signaled"], &told["stdout"]), (&json!(true), &json!(9), &json!("begun\n")), "{told}");
    assert_eq!((&told["step"], &told["changed"]), (&json!(1), &json!(1)), "{told}");
    assert_eq!(done(client.call("changes", json!({ "session": "s" })))["session"], told["session"]);
    // Without a time there is no end of it.
    let none = refused(client.call("hold_run", json!({ "shell": "touch never", "session": "t", "timeout": 0 })));
    assert!(none["kind"] == "usage" && none["message"].as_str().unwrap().contains("1 second"), "{none}");
    assert_eq!(done(client.call("sessions", json!({})))["total"], 1);
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
fn every_tool_that_looks_or_holds_does_its_work() {
    for era in ERAS {
        let world = World::new();
        let mut client = Client::new(&world, era);
        // An empty store, too.
        for name in ["sessions", "log"] {
            done(client.call(name, json!({})));
        }
        for (name, more) in [("changes", json!({})), ("diff", json!({})), ("steps", json!({})), ("cat", json!({ "path": "x" }))] {
            refused(client.call(name, more));
        }
        world.write("one", "old\n");
        let snapshot = done(client.call("snapshot", json!({ "message": "--x", "label": "start" })));
        assert_eq!((&snapshot["n"], &snapshot["result"]), (&json!(0), &json!("created")));
        let id = done(client.call("hold_run", json!({ "shell": "echo one > one; echo two > two", "session": "s" })))["session"]
            .clone();
        done(client.call("hold_run", json!({ "shell": "rm one; seq 1 50 > many", "session": "s" })));
        let changes = done(client.call("changes", json!({})));
        assert_eq!((&changes["total"], &changes["session"], &changes["status"]), (&json!(3), &id, &json!("pending")));
        assert_eq!(done(client.call("changes", json!({ "session": "s", "paths": ["two"] })))["total"], 1);
        assert_eq!(done(client.call("changes", json!({ "step": 1 })))["total"], 2);
        assert_eq!(done(client.call("changes", json!({ "since": 1 })))["total"], 2);
        let patch = done(client.call("diff", json!({ "session": "s" })));
        assert_eq!(patch, json!({ "patch": world.recant("diff s").ok().stdout() }));
        let step = done(client.call("diff", json!({ "step": 1, "paths": ["one"] })));
        assert!(step["patch"].as_str().is_some_and(|patch| patch.ends_with("-old\n+one\n")), "{step}");
        assert_eq!(done(client.call("cat", json!({ "path": "two" })))["text"], "two\n");
        assert_eq!(done(client.call("cat", json!({ "path": "one", "before": true })))["text"], "old\n");
        assert_eq!(done(client.call("steps", json!({})))["head"], 2);
        assert_eq!(done(client.call("rewind", json!({ "step": 1 })))["step"], 1);
        assert_eq!(done(client.call("steps", json!({ "session": "s" })))["head"], 1);
        assert_eq!(done(client.call("log", json!({ "session": "s" })))["entries"][0]["verb"], "rewind 1");
        assert_eq!(done(client.call("log", json!({ "paths": ["two"] })))["touched"][0]["standing"], "held");
        // It is a path, and not the session.
        refused(client.call("log", json!({ "session": "none" })));
        assert!(done(client.call("log", json!({ "paths": ["s"] }))).get("touched").is_none());
        let forked = done(client.call("fork", json!({ "step": 2, "name": "t" })));
        assert_eq!((&forked["of"], &forked["step"]), (&id, &json!(2)), "{forked}");
        assert_eq!(done(client.call("discard", json!({ "session": "t", "paths": ["many"] })))["left"], 2);
        let discarded = done(client.call("discard", json!({ "session": "t" })));
        assert_eq!(discarded["discarded"][0]["session"], forked["session"], "{discarded}");
        world.write("real", "real\n");
        let changed = done(client.call("diff", json!({ "snapshot": "start" })));
        assert!(changed["patch"].as_str().is_some_and(|patch| patch.ends_with("+real\n")), "{changed}");
        refused(client.call("diff", json!({ "snapshot": "99" })));
        for wrong in [json!({ "snapshot": "start", "session": "s" }), json!({ "step": 1, "since": 1 })] {
            assert_eq!(refused(client.call("diff", wrong))["kind"], "usage");
        }
        // What is real is not gone back from so.
        done(client.call("rewind", json!({ "session": "s", "step": 2 })));
        world.recant("commit s").ok();
        let committed = refused(client.call("rewind", json!({ "session": "s", "step": 0 })));
        assert!(
            world.exists("many") && committed["message"].as_str().is_some_and(|why| why.contains("it is committed")),
            "{committed}"
        );
        assert!(!committed.to_string().contains("recant "), "no command line: {committed}");
        let sessions = done(client.call("sessions", json!({})));
        assert_eq!(sessions["sessions"].as_array().map(Vec::len), Some(2), "{sessions}");
        // The name is free again.
        assert_ne!(done(client.call("hold_run", json!({ "shell": "touch more" })))["session"], id);
    }
}

#[test]
fn lists_patches_and_files_come_in_pages_and_each_part_once() {
    let world = World::new();
    let mut client = Client::new(&world, Era::Modern);
    let line = "for i in $(seq 100 144); do seq 100 > a-rather-long-name-of-a-file-that-takes-room-$i; done; seq 10000 > ö";
    done(client.call("hold_run", json!({ "shell": line, "session": "s" })));
    for n in 0..45 {
        done(client.call("rewind", json!({ "session": "s", "step": n % 2 })));
    }
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
    let (count, several) = pages("log", "entries", json!({ "session": "s" }));
    assert!(count >= 44 && several > 1, "{count} {several}");
    done(client.call("rewind", json!({ "session": "s", "step": 1 })));
    let mut pages = |tool: &str, key: &str, arguments: Value| {
        let (mut text, mut cursor, mut pages) = (String::new(), Value::Null, 0);
        loop {
            let mut arguments = arguments.clone();
            arguments["cursor"] = cursor;
            let page = done(client.call(tool, arguments));
            assert!(page[key].is_string() && page[key].to_string().len() <= 2 + (16 << 10), "{page}");
            text.push_str(page[key].as_str().unwrap());
            pages += 1;
            cursor = page["next"].clone();
            if cursor.is_null() {
                return (text, pages);
            }
        }
    };
    let (patch, calls) = pages("diff", "patch", json!({ "session": "s" }));
    assert_eq!(patch, world.recant("diff s").ok().stdout());
    assert!(calls <= patch.len() / 12_000 + 1, "{calls} calls for {} bytes", patch.len());
    assert_eq!(
        pages("cat", "text", json!({ "session": "s", "path": "ö" })).0,
        (1..=10_000).map(|n| format!("{n}\n")).collect::<String>()
    );
    for cursor in ["x", "b1946ac92492", "p20", "-1", "99999999", "18446744073709551616"] {
        refused(client.call("log", json!({ "cursor": cursor })));
        refused(client.call("diff", json!({ "session": "s", "cursor": cursor })));
        let told = refused(client.call("changes", json!({ "session": "s", "cursor": cursor })));
        assert!(!told.to_string().contains("--after"), "{told}");
    }
}

#[test]
fn a_page_of_a_text_that_has_changed_before_it_is_refused() {
    let world = World::new();
    let mut client = Client::new(&world, Era::Modern);
    done(client.call("hold_run", json!({ "shell": "for i in 1 2 3 4; do seq 5000 > $i; done", "session": "s" })));
    let first = |client: &mut Client, tool: &str, more: Value| {
        let page = done(client.call(tool, more.clone()));
        let mut asked = more;
        asked["cursor"] = page["next"].clone();
        asked
    };
    let asked = first(&mut client, "diff", json!({ "session": "s" }));
    let of_file = first(&mut client, "cat", json!({ "session": "s", "path": "3" }));
    // What goes behind it moves nothing.
    world.recant("discard -y s 4").ok();
    done(client.call("diff", asked.clone()));
    world.recant("discard -y s 1").ok();
    let told = refused(client.call("diff", asked));
    assert!(told["message"].as_str().unwrap().contains("the text has changed since"), "{told}");
    done(client.call("cat", of_file.clone()));
    for line in ["seq 2 5001 > 3", "echo > 3"] {
        done(client.call("hold_run", json!({ "shell": line, "session": "s" })));
        let told = refused(client.call("cat", of_file.clone()));
        assert!(told["message"].as_str().unwrap().contains("the text has changed since"), "{told}");
    }
}

#[test]
fn commit_gives_the_command_for_the_person() {
    for era in ERAS {
        let world = World::new();
        let mut client = Client::new(&world, era);
        world.write("a.txt", "old");
        done(client.call("hold_run", json!({ "shell": "printf new > a.txt", "session": "s" })));
        let told = done(client.call("commit", json!({})));
        let id = told["session"].as_str().unwrap().to_owned();
        assert_eq!((&told["result"], &told["would"]), (&json!("awaiting_person"), &json!({ "modified": 1 })), "{told}");
        assert_eq!(told["command"], format!("recant commit {}@1", &id[16..]));
        assert_eq!(world.read("a.txt"), "old");
        // The person gets what was asked for, or is told that there is more.
        done(client.call("hold_run", json!({ "shell": "touch more", "session": "s" })));
        let words = |told: &Value| told["command"].as_str().unwrap().strip_prefix("recant ").unwrap().to_owned();
        world.recant(&words(&told));
        assert!(!world.exists("more"), "it was added later");
        let told = done(client.call("commit", json!({ "paths": ["a.txt"] })));
        assert_eq!(told["command"], format!("recant commit {}@2 {}", &id[16..], world.path("a.txt").display()), "{told}");
        let waiting = done(client.call("await", json!({ "timeout": 0 })));
        assert_eq!((&waiting["result"], &waiting["command"]), (&json!("undecided"), &json!("recant review s")), "{waiting}");
        let id = client.ask("tools/call", json!({ "name": "await", "arguments": {}, "_meta": { "progressToken": "p" } }));
        // The client's person reads it.
        assert_eq!(client.next()["params"]["message"], "waits for a person: recant review s");
        world.recant(&format!("{} -m first", words(&told))).ok();
        let answer = client.answer(id);
        let decided = done(client.checked("await", &answer["result"]));
        assert_eq!((&decided["held"], &decided["acts"][0]["act"]), (&json!(1), &json!("commit")), "{decided}");
        assert_eq!(decided["acts"][0]["reason"], "first", "{decided}");
        assert!(world.read("a.txt") == "new" && !world.exists("more"));
        // What cannot be done is said at once.
        refused(client.call("commit", json!({ "session": "none" })));
        refused(client.call("commit", json!({ "paths": ["none"] })));
        let staged = world.begin();
        world.stage(&staged, ["write b.txt b"]);
        let told = done(client.call("commit", json!({ "session": &staged })));
        assert_eq!(told["command"], format!("recant commit {}", &staged[16..]));
        world.write("b.txt", "theirs");
        let conflict = refused(client.call("commit", json!({ "session": &staged })));
        assert_eq!(conflict["kind"], "conflict", "{conflict}");
        assert_eq!(conflict["command"], format!("recant diff {} --conflicts", &staged[16..]), "{conflict}");
    }
}

#[test]
fn in_conflict_commit_gives_the_command_that_merges_or_shows_both_sides() {
    for era in ERAS {
        let world = World::new();
        let lines = |first: &str, last: &str| format!("{first}\n2\n3\n4\n5\n6\n7\n8\n{last}\n");
        world.write("a.txt", lines("1", "9")).mkdir("cache");
        let caches = |text: &str| {
            for n in 0..30 {
                world.write(format!("cache/{n}.pyc"), text);
            }
        };
        caches("old");
        let mut client = Client::new(&world, era);
        done(client.call(
            "hold_run",
            json!({ "shell": "sed -i s/1/one/ a.txt; for f in cache/*; do echo new > $f; done", "session": "s" }),
        ));
        world.write("a.txt", lines("1", "nine"));
        let told = refused(client.call("commit", json!({})));
        let id = told["session"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned();
        assert_eq!(
            (&told["kind"], &told["command"]),
            (&json!("conflict"), &json!(format!("recant commit {}@1 --merge", &id[16..])))
        );
        assert_eq!(
            (told["conflicts"].as_array().map(Vec::len), &told["conflicts"][0]["path"]),
            (Some(1), &json!("a.txt")),
            "{told}"
        );
        // It shows what is held all the same, from the original that is kept.
        let patch = done(client.call("diff", json!({ "paths": ["a.txt"] })))["patch"].as_str().unwrap().to_owned();
        assert!(
            patch.contains("changed since: conflict\n") && patch.contains("-1\n+one\n") && !patch.contains("nine"),
            "{patch}"
        );
        assert_eq!(done(client.call("cat", json!({ "path": "a.txt", "before": true })))["text"], lines("1", "9"));
        // What does not merge is looked at. Many that say the same are one row.
        world.write("a.txt", lines("uno", "9"));
        caches("theirs");
        let told = refused(client.call("commit", json!({})));
        assert_eq!(told["command"], format!("recant diff {} --conflicts", &id[16..]), "{told}");
        let rows = told["conflicts"].as_array().unwrap();
        // A minute may end between two of them.
        assert!(rows.len() <= 3 && rows.iter().any(|row| row["path"] == "cache/") && told.get("paths").is_none(), "{told}");
        assert!(told["remedy"].as_str().unwrap().contains("your person") && told.to_string().len() < 1_000, "{told}");
        let part = refused(client.call("commit", json!({ "paths": ["a.txt"] })));
        assert!(
            part["command"].as_str().unwrap().ends_with(&format!(" --conflicts {}", world.path("a.txt").display())),
            "{part}"
        );
        // The command does what it says.
        world.write("a.txt", lines("1", "nine"));
        caches("old");
        let told = refused(client.call("commit", json!({ "paths": ["a.txt"] })));
        assert!(told["command"].as_str().unwrap().contains("--merge"), "{told}");
        world.recant(told["command"].as_str().unwrap().strip_prefix("recant ").unwrap()).ok();
        assert_eq!(world.read("a.txt"), lines("one", "nine"));
    }
}

#[test]
fn commands_go_on_in_a_fork() {
    let world = World::new();
    for (era, name) in [(Era::Legacy, json!("again")), (Era::Modern, Value::Null)] {
        let mut client = Client::new(&world, era);
        let first = done(client.call("hold_run", json!({ "shell": "echo 1 > f" })));
        let fork = done(client.call("fork", json!({ "name": name })));
        assert_ne!(fork["session"], first["session"]);
        let ran = done(client.call("hold_run", json!({ "shell": "cat f; echo 2 > f" })));
        assert_eq!((&ran["session"], &ran["stdout"]), (&fork["session"], &json!("1\n")), "{ran}");
        assert_eq!(done(client.call("cat", json!({ "path": "f" }))), json!({ "text": "2\n", "session": fork["session"] }));
        assert_eq!(done(client.call("cat", json!({ "path": "f", "session": first["session"] })))["text"], "1\n");
        done(client.call("discard", json!({})));
        done(client.call("discard", json!({ "session": first["session"] })));
    }
}

#[test]
fn each_refusal_says_what_helps_against_it() {
    let world = World::new();
    world.write("same", "x");
    let mut client = Client::new(&world, Era::Modern);
    done(client.call("hold_run", json!({ "shell": "seq 5000 > one; seq 5000 > two", "session": "s" })));
    let told = refused(client.call("rewind", json!({ "step": 7 })));
    assert_eq!(told["remedy"], "steps lists them", "{told}");
    let told = refused(client.call("cat", json!({ "path": "same" })));
    assert!(told["message"].as_str().unwrap().contains("does not change it"), "{told}");
    assert!(told["remedy"].as_str().unwrap().contains("hold_run"), "{told}");
    let told = refused(client.call("hold_run", json!({ "cursor": "x" })));
    assert!(told["kind"] == "usage" && told.get("remedy").is_none(), "{told}");
    // The cursor alone is enough for the next page; after a restart the other arguments are wanted, too.
    for (tool, arguments) in
        [("diff", json!({ "full": true, "session": "s" })), ("cat", json!({ "path": "one", "session": "s" }))]
    {
        let first = done(client.call(tool, arguments.clone()));
        let alone =
            if tool == "cat" { json!({ "cursor": first["next"], "path": "one" }) } else { json!({ "cursor": first["next"] }) };
        let next = done(client.call(tool, alone));
        let mut whole = arguments.clone();
        whole["cursor"] = first["next"].clone();
        assert_eq!(next, done(client.call(tool, whole)), "{tool}");
    }
    let first = done(client.call("diff", json!({ "full": true })));
    let other = json!({ "cursor": first["next"], "paths": ["two"] });
    let told = refused(client.call("diff", other));
    assert!(told["message"].as_str().unwrap().contains("the other arguments"), "{told}");
    assert!(told["remedy"].as_str().unwrap().contains("call without cursor"), "{told}");
    // What is committed is so by somebody.
    world.recant("commit s -m enough").ok();
    let told = refused(client.call("commit", json!({})));
    assert!(told["message"].as_str().unwrap().contains("the last act was a commit by a person"), "{told}");
    assert_eq!(told["acts"][0]["reason"], "enough", "{told}");
}

#[test]
fn commit_does_what_the_persons_policy_allows_and_no_more() {
    for era in ERAS {
        let world = World::new();
        world.mkdir("docs").write("a.txt", "old").config("[agent.policy]\ncommit = ['docs/*']\nmax_files = 2\n");
        // The store is a person's.
        world.recant("snapshot create").ok();
        let mut client = Client::new(&world, era);
        done(client.call("hold_run", json!({ "shell": "printf new > a.txt; touch docs/1 b", "session": "s" })));
        let told = done(client.call("commit", json!({})));
        let id = told["session"].as_str().unwrap().to_owned();
        assert_eq!(
            (&told["result"], &told["would"]),
            (&json!("awaiting_person"), &json!({ "created": 1, "modified": 1 })),
            "{told}"
        );
        assert_eq!(told["committed"]["paths"], json!({ "created": 1 }), "{told}");
        assert_eq!(told["waits"][0], json!({ "path": world.path("a.txt"), "why": "no glob of agent.policy names it" }), "{told}");
        assert!(world.exists("docs/1") && !world.exists("b") && world.read("a.txt") == "old");
        assert_eq!(told["command"], format!("recant commit {}@2", &id[16..]));
        let told = done(client.call("commit", json!({ "paths": ["b"] })));
        assert_eq!((&told["result"], told.get("committed")), (&json!("awaiting_person"), None), "{told}");
        done(client.call("hold_run", json!({ "shell": "touch docs/2", "session": "t" })));
        let told = done(client.call("commit", json!({})));
        assert_eq!((&told["result"], told.get("command"), told.get("waits")), (&json!("committed"), None, None), "{told}");
        done(client.call("hold_run", json!({ "shell": "touch docs/3", "session": "u" })));
        let told = done(client.call("commit", json!({})));
        assert!(told["waits"][0]["why"].as_str().is_some_and(|why| why.contains("max_files is 2")), "{told}");
        assert!(world.exists("docs/2") && !world.exists("docs/3"));
        world.write("docs/4", "");
        world.recant(told["command"].as_str().unwrap().strip_prefix("recant ").unwrap()).ok();
        done(client.call("hold_run", json!({ "shell": "echo x > docs/4", "session": "v" })));
        world.write("docs/4", "theirs");
        assert_eq!(refused(client.call("commit", json!({})))["kind"], "conflict");
    }
}

#[test]
fn a_client_of_an_agent_that_is_known_has_its_word() {
    let world = World::new();
    for (name, want) in [("codex-mcp-client", "codex"), ("Claude Code", "claude"), ("codexy", "codexy"), ("", "mcp")] {
        let mut client = Client::new(&world, Era::Modern);
        client.meta["io.modelcontextprotocol/clientInfo"]["name"] = name.into();
        let ran = done(client.call("hold_run", json!({ "shell": format!("touch x-{want}") })));
        let shown = world.call(["show", ran["session"].as_str().expect("a session"), "--json"]).run().ok().json();
        assert!(shown["session"]["name"].as_str().is_some_and(|name| name.starts_with(&format!("{want}-"))), "{shown}");
        assert_eq!(shown["session"]["by"]["agent"], want, "{shown}");
    }
}

#[test]
fn inside_a_run_the_person_outside_decides() {
    let (world, id) = held();
    let open = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "capabilities": {} } });
    let call = |n: u64, name: &str, arguments: Value| json!({ "jsonrpc": "2.0", "id": n, "method": "tools/call", "params": { "name": name, "arguments": arguments } });
    let mut lines = vec![open, call(2, "commit", json!({ "session": id })), call(3, "hold_run", json!({ "shell": "touch x" }))];
    let look = ["sessions", "changes", "diff", "steps", "log", "snapshot"];
    lines.extend(look.iter().zip(4..).map(|(name, n)| call(n, name, json!({}))));
    let decided = [("rewind", json!({ "step": 0 })), ("fork", json!({})), ("discard", json!({})), ("await", json!({}))];
    lines.extend(decided.iter().zip(10..).map(|((name, arguments), n)| call(n, name, arguments.clone())));
    lines.extend([call(14, "cat", json!({ "path": "made" })), call(15, "cat", json!({ "path": "a.txt", "before": true }))]);
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    world.write("input", input);
    // A session of its own inside changes nothing about whose `cat` is meant.
    let line = format!("echo in > made; echo in > a.txt; {0} run -q -- touch inner; {0} mcp < input", recant());
    let said = world.call(["run", "--session", "s", "--", "sh", "-c", &line]).run().ok();
    let mut answers = said.json_lines();
    answers.sort_by_key(|answer| answer["id"].as_u64());
    let told = |n: usize| -> Value {
        serde_json::from_str(answers[n]["result"]["content"][0]["text"].as_str().expect("text")).expect("JSON")
    };
    assert!(told(1)["message"].as_str().unwrap().contains("inside the run of session"), "{said}");
    assert!(told(1)["remedy"].as_str().unwrap().contains("a person does that outside: recant review"), "{said}");
    assert!(told(2)["message"].as_str().unwrap().contains("run it without hold_run"), "{said}");
    for (name, n) in look.iter().zip(3..) {
        let looks = *name != "snapshot";
        assert_eq!(answers[n]["result"]["isError"] == true, !looks, "{name}: {said}");
    }
    for ((name, _), n) in decided.iter().zip(9..) {
        let told = told(n);
        assert!(told["message"].as_str().unwrap().contains("a person decides"), "{name}: {told}");
        assert!(told["remedy"].as_str().unwrap().contains("recant review"), "{name}: {told}");
    }
    assert_eq!((&told(13)["text"], &told(14)["text"]), (&json!("in\n"), &json!("old")), "{said}");
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
    let told = done(client.call("commit", json!({ "session": "s" })));
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
        done(client.call("snapshot", json!({})));
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
    for no_session in ["file", "./file", "."] {
        let told = refused(client.call("log", json!({ "session": no_session })));
        assert!(told["message"].as_str().is_some_and(|why| why.contains("no session")), "{told}");
    }
    assert_eq!(done(client.call("log", json!({ "session": "s" }))), json!({ "total": 0 }));
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
fn hold_run_joins_a_service_of_its_session() {
    let world = World::new();
    let mut client = Client::new(&world, Era::Modern);
    done(client.call("hold_run", json!({ "shell": "echo 1 > one", "session": "s" })));
    let words = ["run", "--session", "s", "--serve", "web", "--", "sh", "-c", "cat one > seen; exec sleep 60"];
    world.call(words).run().ok();
    for (n, seen) in [(2, "1\n"), (3, "2\n")] {
        let ran = done(client.call("hold_run", json!({ "shell": format!("cat seen; echo {n} > seen"), "session": "s" })));
        assert_eq!((&ran["beside"], &ran["stdout"]), (&json!(true), &json!(seen)), "{ran}");
    }
    assert_eq!(world.recant("run --session s --stop web").ok().stdout(), "web is stopped (SIGTERM)\n");
    let steps = done(client.call("steps", json!({ "session": "s" })));
    assert_eq!((&steps["head"], &steps["total"]), (&json!(2), &json!(2)), "{steps}");
}

#[test]
fn long_words_in_lists_are_cut() {
    let world = World::new();
    let mut client = Client::new(&world, Era::Modern);
    done(client.call("hold_run", json!({ "shell": format!("touch x; : {}", "ä".repeat(20_000)), "session": "s" })));
    let touched = done(client.call("log", json!({ "paths": ["x"] })));
    assert!(touched["touched"][0]["command"].as_str().is_some_and(|command| command.chars().count() <= 201), "{touched}");
}
