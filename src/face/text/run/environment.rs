//! Facts of the environment for a run: sockets that stay real by default, and the history of a shell.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::capture::{Network, Pass};
use crate::verb::Histories;
use crate::verb::error::SSH_AGENT;

fn var(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Sockets that stay real by default, if they exist: many programs fail without them. Not X11's, whose clients may type into the windows of
/// all others. Name services ask the machine's network, so they stay with it alone.
pub fn usual_passes(network: Network) -> Vec<Pass> {
    let names = [("/run/nscd/socket", "name service"), ("/run/systemd/resolve/io.systemd.Resolve", "name service")];
    let named = names.map(|(path, why)| (PathBuf::from(path), why)).into_iter().filter(|_| network == Network::Open);
    let agent = var("SSH_AUTH_SOCK").map(|path| (path.into(), SSH_AGENT));
    let wayland = var("WAYLAND_DISPLAY")
        .map(|name| (PathBuf::from(var("XDG_RUNTIME_DIR").unwrap_or_default()).join(name), "$WAYLAND_DISPLAY"));
    let all = named.chain(agent).chain(wayland);
    let there = all.filter(|(path, _)| path.is_absolute() && path.exists());
    there.map(|(path, why)| Pass { path, why: why.into() }).collect()
}

/// The usual places of a shell's history. `None` for a shell that keeps none unless it is told to.
pub fn histories(shell: &OsStr) -> Option<Histories> {
    let home = dirs::home_dir()?;
    let directory = |name: &str| var(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let files =
        |usual: Vec<PathBuf>| Histories { paths: directory("HISTFILE").map_or(usual, |file| vec![file]), are_directories: false };
    Some(match Path::new(shell).file_name()?.to_str()? {
        "bash" => files(vec![home.join(".bash_history")]),
        "ksh" => files(vec![home.join(".sh_history")]),
        // The user's .zshrc decides; these are usual.
        "zsh" => {
            let own = directory("ZDOTDIR").unwrap_or_else(|| home.clone());
            let state = directory("XDG_STATE_HOME").unwrap_or_else(|| home.join(".local/state"));
            let in_own = [".zsh_history", ".histfile", ".zhistory"].map(|name| own.join(name));
            files([&in_own[..], &[state.join("zsh/history")]].concat())
        }
        "fish" => {
            let data = directory("XDG_DATA_HOME").unwrap_or_else(|| home.join(".local/share"));
            Histories { paths: vec![data.join("fish")], are_directories: true }
        }
        _ => return None,
    })
}
