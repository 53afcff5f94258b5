//! Globs of paths.

use std::path::Path;

/// Places where leftovers of programs do not matter: caches, histories, temporary files.
const MINOR: [&str; 6] = ["~/.cache", "~/.local/state", "~/.*_history", "~/.lesshst", "/tmp", "/var/tmp"];

const NO_EXCEPTION: &str = "'!' has no meaning here";

/// The default of `commit.minor`. Without a home directory it is shorter.
pub fn minor(home: Option<&Path>) -> Vec<String> {
    MINOR.iter().filter_map(|text| glob(text, home).ok()).collect()
}

/// The final form of a glob: `~/` expanded, without a slash at its end. `*` and `?` match within one component, `**` across them. A glob
/// without a '/' matches names at any depth, any other matches whole paths.
///
/// # Errors
/// The glob cannot be meant.
pub fn glob(text: &str, home: Option<&Path>) -> Result<String, String> {
    let plain = text.trim_end_matches('/');
    let whole = match (plain.strip_prefix("~/"), home.and_then(Path::to_str)) {
        (Some(below), Some(home)) => format!("{}/{below}", globset::escape(home)),
        (Some(_), None) => return Err("no home directory is known".into()),
        (None, _) => plain.to_owned(),
    };
    if whole.is_empty() {
        return Err("it matches every path".into());
    }
    if whole.starts_with('!') {
        return Err(NO_EXCEPTION.into());
    }
    if whole.contains('/') && !whole.starts_with('/') && !whole.starts_with("**/") {
        return Err("with a '/' in it, a glob starts with '/', '~/' or '**/'".into());
    }
    path_glob(&whole).map_err(|error| error.kind().to_string())?;
    Ok(whole)
}

/// The final form of a glob of `agent.policy`, which matches whole paths: absolute ones, or paths in the project. `~/` is expanded; a `/` at
/// the end means all that lies in the directory.
///
/// # Errors
/// The glob cannot be meant.
pub fn allowed(text: &str, home: Option<&Path>) -> Result<String, String> {
    if text.starts_with('!') {
        return Err(NO_EXCEPTION.into());
    }
    let is_path = |part: &str| !matches!(part, "" | "." | "..");
    let relative = text.strip_prefix("~/").or(text.strip_prefix('/')).unwrap_or(text);
    if !relative.strip_suffix('/').unwrap_or(relative).split('/').all(is_path) {
        return Err("expected a path without '.', '..' and '//'".into());
    }
    let all = if text.ends_with('/') { "**" } else { "" };
    glob(&format!("/{relative}{all}"), None)?;
    match (text.strip_prefix("~/"), home.and_then(Path::to_str)) {
        (Some(below), Some(home)) => Ok(format!("{}/{below}{all}", globset::escape(home))),
        (Some(_), None) => Err("no home directory is known".into()),
        (None, _) => Ok(format!("{text}{all}")),
    }
}

/// Matches whole paths by a [`glob`].
pub fn path_glob(glob: &str) -> Result<globset::Glob, globset::Error> {
    let anywhere = if glob.contains('/') { glob.to_owned() } else { format!("**/{glob}") };
    globset::GlobBuilder::new(&anywhere).literal_separator(true).backslash_escape(true).build()
}
