//! `agent export`: a plugin for Claude Code, or an extension for Gemini CLI, as a directory to be published.

use serde::Serialize;
use serde_json::json;

use crate::agent::known::Agent;
use crate::agent::settings::of_plugin;
use crate::cli::args::ExportAgent;
use crate::cli::place::{absolute, whole};
use crate::cli::problem::Problem;
use crate::cli::{Call, Ended};
use crate::error::{Error, Kind, shell_word};
use crate::fs::dir::Dir;
use crate::fs::path::AbsPath;

/// `{"schema":2,"agent":…,"directory":…,"files":[…],"changed":…}`.
#[derive(Serialize)]
struct Whole<'a> {
    agent: Agent,
    directory: &'a AbsPath,
    files: Vec<&'static str>,
    /// False if all of it was there already.
    changed: bool,
}

const VERSION: &str = env!("CARGO_PKG_VERSION");
const DESCRIPTION: &str =
    "Takes a snapshot of the project before each turn, so that any turn can be taken back: recant agent undo";
const README: &str = include_str!("export.md");
/// The directories that files are written into.
const DIRECTORIES: [&str; 2] = [".claude-plugin", "hooks"];

/// The files of an agent's plugin.
fn files(agent: Agent) -> Result<Vec<(&'static str, String)>, Problem> {
    let pretty = |value: serde_json::Value| format!("{value:#}\n");
    let hooks = ("hooks/hooks.json", of_plugin(agent));
    match agent {
        Agent::Claude => {
            let plugin = json!({ "name": "recant", "version": VERSION, "description": DESCRIPTION, "license": "Apache-2.0", "author": { "name": "recant" } });
            let listed = json!({ "name": "recant", "source": "./", "description": DESCRIPTION });
            let market = json!({ "name": "recant", "owner": { "name": "recant" }, "metadata": { "description": DESCRIPTION }, "plugins": [listed] });
            Ok(vec![
                (".claude-plugin/plugin.json", pretty(plugin)),
                (".claude-plugin/marketplace.json", pretty(market)),
                hooks,
                ("README.md", README.replace("AGENT", agent.name())),
            ])
        }
        Agent::Gemini => {
            let extension = json!({ "name": "recant", "version": VERSION, "description": DESCRIPTION });
            Ok(vec![("gemini-extension.json", pretty(extension)), hooks, ("README.md", README.replace("AGENT", agent.name()))])
        }
        _ => Err(Problem::new(Kind::Usage, format!("{} takes no plugin of hooks from a directory", agent.name()))
            .remedy(format!("recant agent install {} writes its settings", agent.word()))),
    }
}

/// Writes the plugin.
pub fn export(call: &Call, args: &ExportAgent) -> Result<Ended, Problem> {
    let agent = args.agent;
    let files = files(agent)?;
    let directory = absolute(&whole(&args.dir)?)?;
    let there = there(&directory)?;
    let is_same = |(name, text): &(&str, String)| there.iter().any(|(found, bytes)| found == name && bytes == text.as_bytes());
    if let Some((name, _)) =
        there.iter().find(|(name, bytes)| !files.iter().any(|(own, text)| own == name && text.as_bytes() == bytes))
    {
        let why = format!("{directory} holds something else: {name}");
        return Err(Problem::refused(why).path(&directory).remedy("name a new or empty directory; nothing is overwritten"));
    }
    let changed = !files.iter().all(is_same);
    let missing: Vec<_> = files.iter().filter(|file| !is_same(file)).collect();
    write(call, &directory, &missing)?;
    if !call.out.is_text() {
        call.out.document(&Whole { agent, directory: &directory, files: files.iter().map(|(name, _)| *name).collect(), changed });
        return Ok(Ended::Done);
    }
    let shown = call.out.shown(&directory);
    missing.iter().for_each(|(name, _)| call.out.line(format_args!("created   {shown}/{name}")));
    if !changed {
        call.out.note(format_args!("{shown} has all of it already; nothing was changed"));
    }
    let word = shell_word(directory.as_bytes());
    call.out.note(match agent {
        Agent::Claude => format!("to try it: claude --plugin-dir {word}; to check it: claude plugin validate {word}"),
        _ => format!("to try it: gemini extensions link {word}; to check it: gemini extensions validate {word}"),
    });
    Ok(Ended::Done)
}

/// The content of the directory: each name, two levels deep, with the content of a file. None if it is missing.
fn there(directory: &AbsPath) -> Result<Vec<(String, Vec<u8>)>, Problem> {
    let path = directory.as_path();
    if path.symlink_metadata().is_err() {
        return Ok(Vec::new());
    }
    let dir = Dir::open(path)?;
    let mut found = Vec::new();
    for name in dir.names()? {
        let shown = String::from_utf8_lossy(&name).into_owned();
        match dir.at(&name).open_dir() {
            Ok(inner) if DIRECTORIES.contains(&&*shown) => {
                for name in inner.names()? {
                    let bytes = std::fs::read(inner.path().join(&*String::from_utf8_lossy(&name))).unwrap_or_default();
                    found.push((format!("{shown}/{}", String::from_utf8_lossy(&name)), bytes));
                }
            }
            _ => found.push((shown.clone(), std::fs::read(path.join(&shown)).unwrap_or_default())),
        }
    }
    Ok(found)
}

/// Writes files, durably, each whole.
fn write(call: &Call, directory: &AbsPath, files: &[&(&str, String)]) -> Result<(), Error> {
    let mut made = Vec::new();
    let top = made_directory(call, directory, &mut made)?;
    for (name, text) in files {
        let (dir, name) = match name.split_once('/') {
            Some((inner, name)) => {
                (made_directory(call, &crate::agent::settings::places::below(directory, inner), &mut made)?, name)
            }
            None => (top.again()?, *name),
        };
        let at = dir.at(name.as_bytes());
        let file = call.fs.create(at, 0o644)?;
        call.fs.write(&file, text.as_bytes(), at)?;
        // I2: what was reported as written lasts.
        call.fs.sync(&file, at)?;
        call.fs.sync_dir(&dir)?; // D2
    }
    made.iter().rev().try_for_each(|dir| call.fs.sync_dir(dir))?; // D3
    Ok(())
}

/// A directory, made with those above it if it is missing. `made` gets the directories in which one was made.
fn made_directory(call: &Call, path: &AbsPath, made: &mut Vec<Dir>) -> Result<Dir, Error> {
    if let Ok(dir) = Dir::open(path.as_path()) {
        return Ok(dir);
    }
    if let Some(parent) = path.parent() {
        let above = made_directory(call, &parent, made)?;
        call.fs.mkdir(above.at(path.name()), 0o755)?;
        made.push(above);
    }
    Ok(Dir::open(path.as_path())?)
}
