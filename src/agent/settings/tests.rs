//! Generated texts, with a fixed seed: what is added can be cut out again, and is found and removed by what it says.

use super::super::known::Agent;
use super::*;

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }

    fn percent(&mut self, n: u64) -> bool {
        self.below(100) < n
    }
}

/// Writes a document as somebody may have typed it.
struct Writer {
    dice: Dice,
    text: String,
    /// All in one line: no line comments.
    flat: bool,
    nl: &'static str,
    unit: &'static str,
    /// True if a list or object that hooks are put into was empty: nothing in the text tells that it was there.
    has_empty: bool,
}

type Part = Box<dyn FnOnce(&mut Writer)>;

impl Writer {
    fn space(&mut self, depth: usize) {
        if self.flat {
            let space = self.dice.of(&["", " ", "  ", " /* a */ "]);
            self.text.push_str(space);
            return;
        }
        if self.dice.percent(15) {
            let comment = self.dice.of(&[" // \"hooks\": {", " /* , ] } */", "\t// , recant hook claude"]);
            self.text.push_str(comment);
        }
        for _ in 0..=self.dice.below(2) {
            self.text.push_str(self.nl);
        }
        for _ in 0..depth {
            self.text.push_str(self.unit);
        }
        if self.dice.percent(5) {
            self.text.push(' ');
        }
    }

    fn container(&mut self, depth: usize, [open, close]: [char; 2], items: Vec<Part>) {
        self.text.push(open);
        let n = items.len();
        for (i, item) in items.into_iter().enumerate() {
            self.space(depth + 1);
            item(self);
            if i + 1 < n || self.dice.percent(15) {
                let comma = self.dice.of(&[",", ",", " ,", " /* c */,"]);
                self.text.push_str(comma);
            }
        }
        if n > 0 || self.dice.percent(30) {
            self.space(depth);
        }
        self.text.push(close);
    }

    fn key(&mut self, key: &str) {
        let colon = self.dice.of(&[": ", ":", " : "]);
        self.text.push_str(&format!("\"{key}\"{colon}"));
    }

    fn value(&mut self) {
        let value =
            self.dice.of(&["1", "\"a\\\"]}\"", "null", "[]", "{}", "[1, 2]", "{\"hooks\": {\"Stop\": []}}", "\"// no comment\""]);
        self.text.push_str(value);
    }

    /// The entries of an event: those of others.
    fn list(&mut self, depth: usize) {
        let n = self.dice.of(&[0, 1, 1, 2, 3]);
        self.has_empty |= n == 0;
        let foreign = |w: &mut Self| {
            let entry = w.dice.of(&[
                r#"{"matcher": "Bash", "hooks": [{"type": "command", "command": "lint"}]}"#,
                r#"{"hooks":[]}"#,
                r#"{"type":"command","bash":"recant hook claude; lint"}"#,
            ]);
            w.text.push_str(entry);
        };
        self.container(depth, ['[', ']'], (0..n).map(|_| Box::new(foreign) as Part).collect());
    }

    fn hooks(&mut self, agent: Agent, depth: usize) {
        let mut events: Vec<String> = hooked(agent).map(str::to_owned).collect();
        events.retain(|_| self.dice.percent(30));
        if self.dice.percent(30) {
            events.push("Other".into());
        }
        self.has_empty |= events.is_empty();
        let item = |event: String| -> Part {
            Box::new(move |w| {
                w.key(&event);
                let had = w.has_empty;
                w.list(depth + 1);
                // Nothing is put there.
                w.has_empty = if event == "Other" { had } else { w.has_empty };
            })
        };
        self.container(depth, ['{', '}'], events.into_iter().map(item).collect());
    }

    fn document(&mut self, agent: Agent) {
        let (before, with_hooks) = (self.dice.below(3), self.dice.percent(60));
        let mut items: Vec<Part> = Vec::new();
        let other = |i: u64| -> Part {
            Box::new(move |w| {
                w.key(&format!("key{i}"));
                w.value();
            })
        };
        items.extend((0..before).map(other));
        if with_hooks {
            items.push(Box::new(move |w| {
                w.key("hooks");
                w.hooks(agent, 1);
            }));
        }
        items.extend((10..10 + self.dice.below(2)).map(other));
        self.has_empty |= items.is_empty();
        if !self.flat && self.dice.percent(20) {
            self.text.push_str("// settings");
            self.text.push_str(self.nl);
        }
        self.container(0, ['{', '}'], items);
        let end = self.dice.of(&["", "\n", "\r\n", " \n\n"]);
        self.text.push_str(end);
    }
}

/// The agents with JSON, and its form.
fn forms() -> Vec<(Agent, Form)> {
    let form =
        |agent: &Agent| Some((*agent, agent.settings.files[0].1)).filter(|(_, form)| matches!(form, Form::Groups | Form::Flat));
    Agent::ALL.iter().filter_map(form).collect()
}

fn agent(word: &str) -> Agent {
    Agent::of(word).unwrap()
}

fn hooked(agent: Agent) -> impl Iterator<Item = &'static str> {
    agent.facts().events.iter().filter(|event| event.hook.is_some()).map(|event| event.name)
}

#[test]
fn what_is_added_to_generated_json_can_be_cut_out_again_and_is_found_and_removed() {
    let (mut exact, forms) = (0, forms());
    for seed in 0..4_000 {
        let mut dice = Dice(seed);
        let (agent, form) = dice.of(&forms);
        let command = if dice.percent(50) { Command::bare(agent) } else { Command::of_path(agent, "/opt/a b/recant") };
        let flat = dice.percent(20);
        let (nl, unit) = (dice.of(&["\n", "\n", "\r\n"]), dice.of(&["  ", "    ", "\t", " "]));
        let mark = if dice.percent(10) { "\u{feff}" } else { "" };
        let mut writer = Writer { dice, text: mark.to_owned(), flat, nl, unit, has_empty: false };
        writer.document(agent);
        let Writer { text, has_empty, .. } = writer;
        let shown = || format!("seed {seed}, {agent:?}:\n{text}");
        assert_eq!(find(agent, form, &text), Ok(Vec::new()), "{}", shown());
        assert_eq!(remove(agent, form, &text).as_ref(), Ok(&text), "{}", shown());

        let edit = add(agent, form, Some(&text), &command).unwrap_or_else(|wrong| panic!("{wrong}: {}", shown()));
        let after = &edit.after;
        assert_eq!(edit::cut(after, edit.added.clone()).as_ref(), Some(&text), "{}", shown());
        assert_eq!(is_installed(agent, form, after, &command), Ok(true), "{}\n{after}", shown());
        assert_eq!(find(agent, form, after).unwrap().len(), hooked(agent).count(), "{}\n{after}", shown());
        let ends_alike = text.contains("\r\n") && !text.replace("\r\n", "").contains('\n');
        assert!(!ends_alike || !after.replace("\r\n", "").contains('\n'), "{}", shown());
        let removed = remove(agent, form, after).unwrap();
        assert_eq!(find(agent, form, &removed), Ok(Vec::new()), "{}\n{after}", shown());
        if has_empty {
            // What was empty before may be gone: nothing else is.
            assert_eq!(comments(&removed), comments(&text), "{}\n{after}\n{removed}", shown());
        } else {
            exact += 1;
            assert_eq!(removed, text, "{}\n{after}", shown());
        }
    }
    assert!(exact > 2_000, "only {exact} of them are compared to the byte");
}

/// The numbers of comments and keys in a text.
fn comments(text: &str) -> [usize; 5] {
    ["// \"", "// ,", "// no", "/* ", "\"key"].map(|word| text.matches(word).count())
}

#[test]
fn what_is_added_to_toml_can_be_cut_out_again_and_is_found_and_removed() {
    let texts = [
        "",
        "model = \"x\"\n",
        "model = \"x\"",
        "# all mine\r\nmodel = \"x\"\r\n\r\n[a]\r\nb = 1\r\n",
        "[[hooks.Stop]]\nhooks = [{ type = \"command\", command = \"lint\" }]\n\n[hooks.state.\"/a:stop:0:0\"]\ntrusted_hash = \"x\"\n",
        "[hooks]\n[[hooks.PreToolUse]] # mine\nmatcher = \"a\"\n\n[[hooks.PreToolUse.hooks]]\ntype = \"command\"\ncommand = '''\n[[hooks.Stop]]\n'''",
    ];
    for text in texts {
        let command = Command::of_path(agent("codex"), "/opt/a b/recant");
        let edit = add(agent("codex"), Form::Toml, Some(text), &command).unwrap();
        assert_eq!(edit::cut(&edit.after, edit.added.clone()).as_deref(), Some(text));
        assert_eq!(is_installed(agent("codex"), Form::Toml, &edit.after, &command), Ok(true), "{}", edit.after);
        assert_eq!(find(agent("codex"), Form::Toml, &edit.after).unwrap().len(), 8);
        assert_eq!(remove(agent("codex"), Form::Toml, &edit.after).as_deref(), Ok(text), "{}", edit.after);
        assert_eq!(remove(agent("codex"), Form::Toml, text).as_deref(), Ok(text));
    }
    for text in ["hooks = { Stop = [] }\n", "[hooks]\nStop = []\n", "a = \n"] {
        assert!(add(agent("codex"), Form::Toml, Some(text), &Command::bare(agent("codex"))).is_err(), "{text}");
    }
    let shared = "[[hooks.Stop]]\nhooks = [{ type = \"command\", command = \"recant hook codex\" }, { type = \"command\", command = \"x\" }]\n";
    assert_eq!(remove(agent("codex"), Form::Toml, shared).unwrap_err().line, 1);
}

#[test]
fn a_hook_that_stands_with_one_of_others_goes_alone() {
    let text = r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "a"}, {"type": "command", "command": "recant hook claude"}]}]}}"#;
    let left = remove(agent("claude"), Form::Groups, text).unwrap();
    assert_eq!(left, r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "a"}]}]}}"#);
    let first = r#"{"hooks": {"Stop": [{"hooks": [{"command": "recant hook claude"}, {"command": "a"}]}]}}"#;
    assert_eq!(remove(agent("claude"), Form::Groups, first).unwrap(), r#"{"hooks": {"Stop": [{"hooks": [{"command": "a"}]}]}}"#);
}

#[test]
fn a_plugin_names_its_program_and_another_plugin_is_not_replaced() {
    for agent in [agent("opencode"), agent("pi")] {
        let form = agent.settings.files[0].1;
        let command = Command::of_path(agent, "/opt/a \"b\"/recant");
        let edit = add(agent, form, None, &command).unwrap();
        assert_eq!(find(agent, form, &edit.after).unwrap()[0].program, "/opt/a \"b\"/recant");
        assert_eq!(is_installed(agent, form, &edit.after, &command), Ok(true));
        assert_eq!(is_installed(agent, form, &edit.after, &Command::bare(agent)), Ok(false));
        assert_eq!(remove(agent, form, &edit.after).as_deref(), Ok(""));
        assert_eq!(find(self::agent("claude"), form, &edit.after), Ok(Vec::new()));
        assert!(add(agent, form, Some("export const mine = 1\n"), &command).is_err());
    }
}
