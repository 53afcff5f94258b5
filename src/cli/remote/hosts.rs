//! Parses `-H`: one machine, or a list with files and groups of Ansible's inventory in it.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::cli::problem::Problem;
use crate::config::Remote;
use crate::error::{At, Kind};
use crate::remote::host::Target;

/// The machines of a call.
#[derive(Debug, PartialEq, Eq)]
pub enum Hosts {
    /// One machine, named alone: the call is as if it ran here.
    One(Target),
    /// A list, even of one: the output of each is kept apart.
    Many(Vec<Target>),
}

/// Reads the value of `-H`: names with commas between them, `@FILE`, `@ansible:GROUP`. Each machine counts once, in the order of the
/// names.
pub fn read(words: &str, remotes: &BTreeMap<String, Remote>) -> Result<Hosts, Problem> {
    if words.is_empty() {
        let problem = Problem::new(Kind::Usage, "-H names no machine: it is empty");
        return Err(problem.remedy("an unset variable? -H local is this machine"));
    }
    if !words.contains(',') && !words.starts_with('@') {
        return Ok(Hosts::One(Target::parse(words, remotes)?));
    }
    let mut targets = Vec::new();
    for word in words.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        match word.strip_prefix('@') {
            None => targets.push(Target::parse(word, remotes)?),
            Some(list) => match list.strip_prefix("ansible:") {
                Some(group) => targets.extend(Inventory::ask()?.group(group, remotes)?),
                None => targets.extend(of_file(list, remotes)?),
            },
        }
    }
    let mut seen = BTreeSet::new();
    targets.retain(|target| seen.insert(target.name.clone()));
    match targets.is_empty() {
        true => Err(Problem::new(Kind::Usage, format!("-H {words}: no machine is named"))),
        false => Ok(Hosts::Many(targets)),
    }
}

/// Reads a file with one machine a line; '#' begins a comment.
fn of_file(path: &str, remotes: &BTreeMap<String, Remote>) -> Result<Vec<Target>, Problem> {
    let text = std::fs::read_to_string(path).at("read the list of machines", path)?;
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let named = (1..).zip(lines).filter(|(_, line)| !line.is_empty());
    let wrong = |n: u32, problem: Problem| Problem { message: format!("{path}:{n}: {}", problem.message), ..problem }.path(path);
    named.map(|(n, line)| Target::parse(line, remotes).map_err(|error| wrong(n, error.into()))).collect()
}

/// The output of `ansible-inventory --list`.
struct Inventory {
    groups: Map<String, Value>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Group {
    hosts: Vec<String>,
    children: Vec<String>,
}

impl Inventory {
    const PROGRAM: &str = "ansible-inventory";

    /// Runs ansible-inventory, which finds the inventory by its own settings.
    fn ask() -> Result<Self, Problem> {
        let refused = |why: String| {
            Problem::refused(format!("{}: {why}", Self::PROGRAM))
                .remedy("ansible-inventory --list has to print the inventory as JSON")
        };
        let mut command = Command::new(Self::PROGRAM);
        let output = command.arg("--list").stdin(Stdio::null()).stderr(Stdio::inherit()).output();
        let output = output.map_err(|error| refused(format!("it cannot be started: {}", crate::error::reason(&error))))?;
        if !output.status.success() {
            return Err(refused(format!("it ended with status {}", crate::remote::far::status(output.status))));
        }
        Self::parse(&output.stdout).map_err(|error| refused(format!("what it prints is no inventory: {error}")))
    }

    fn parse(json: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(json).map(|groups| Self { groups })
    }

    /// The machines of a group and of the groups in it, each once.
    fn group(&self, name: &str, remotes: &BTreeMap<String, Remote>) -> Result<Vec<Target>, Problem> {
        if !self.groups.contains_key(name) {
            let known = self.groups.keys().filter(|name| *name != "_meta").map(String::as_str).collect::<Vec<_>>().join(", ");
            return Err(Problem::refused(format!("the inventory has no group {name:?}; it has {known}")));
        }
        let (mut todo, mut seen, mut hosts) = (vec![name.to_owned()], BTreeSet::new(), Vec::new());
        while let Some(name) = todo.pop() {
            // A group may be in several others.
            if !seen.insert(name.clone()) {
                continue;
            }
            let group = self.groups.get(&name).and_then(|group| Group::deserialize(group).ok()).unwrap_or_default();
            hosts.extend(group.hosts);
            todo.extend(group.children.into_iter().rev());
        }
        hosts.iter().map(|host| self.host(host, remotes)).collect()
    }

    fn host(&self, name: &str, remotes: &BTreeMap<String, Remote>) -> Result<Target, Problem> {
        let value = |keys: [&str; 2]| {
            let vars = &self.groups.get("_meta")?["hostvars"][name];
            keys.iter().find_map(|key| match &vars[key] {
                Value::String(text) => Some(text.clone()),
                Value::Number(number) => Some(number.to_string()),
                _ => None,
            })
        };
        let address = value(["ansible_host", "ansible_ssh_host"]);
        let port = value(["ansible_port", "ansible_ssh_port"]).map(|port| {
            let wrong = || Problem::refused(format!("the inventory's port {port:?} of {name} is no number up to 65535"));
            port.parse().map_err(|_| wrong())
        });
        let user = value(["ansible_user", "ansible_ssh_user"]);
        Ok(Target::with(name, address.as_deref().unwrap_or(name), user, port.transpose()?, remotes)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"{
        "_meta": {"hostvars": {"web1": {"ansible_host": "10.0.0.1", "ansible_user": "deploy", "ansible_port": 2222},
                               "web2": {"ansible_port": "23"}, "odd": {"ansible_host": "{{ x }}"}}},
        "all": {"children": ["web", "db", "ungrouped"]}, "web": {"hosts": ["web1", "web2"]}, "db": {"hosts": ["db1"], "children": ["web"]},
        "ungrouped": {"hosts": ["odd"]}
    }"#;

    fn group(name: &str) -> Result<Vec<String>, String> {
        let inventory = Inventory::parse(LIST.as_bytes()).unwrap();
        let remotes = BTreeMap::from([("db1".to_owned(), Remote { store: Some("/s".into()), ..Remote::default() })]);
        let shown = |target: Target| {
            let Target { name, host, user, port, store, .. } = target;
            format!("{name} {}@{host}:{} {}", user.unwrap_or_default(), port.unwrap_or(0), store.unwrap_or_default())
        };
        inventory.group(name, &remotes).map(|targets| targets.into_iter().map(shown).collect()).map_err(|problem| problem.message)
    }

    #[test]
    fn a_group_has_the_machines_of_those_in_it_with_ansible_s_own_address() {
        assert_eq!(group("web").unwrap(), ["web1 deploy@10.0.0.1:2222 ", "web2 @web2:23 "]);
        assert_eq!(group("db").unwrap(), ["db1 @db1:0 /s", "web1 deploy@10.0.0.1:2222 ", "web2 @web2:23 "]);
        assert_eq!(group("nowhere").unwrap_err(), "the inventory has no group \"nowhere\"; it has all, db, ungrouped, web");
        assert_eq!(group("all").unwrap_err(), "\"odd\" is no host: that is no host's name");
    }

    #[test]
    fn a_list_is_many_however_long_and_names_each_once() {
        let many = |words: &str| match read(words, &BTreeMap::new()) {
            Ok(Hosts::Many(targets)) => targets.into_iter().map(|target| target.name).collect(),
            other => vec![format!("{other:?}")],
        };
        assert_eq!(many("a,b:22, a,,c"), ["a", "b:22", "c"]);
        assert!(matches!(read("a", &BTreeMap::new()), Ok(Hosts::One(_))));
        assert_eq!(read(",", &BTreeMap::new()).unwrap_err().kind, Kind::Usage);
        assert_eq!(read("@/nowhere/list", &BTreeMap::new()).unwrap_err().kind, Kind::Refused);
    }
}
