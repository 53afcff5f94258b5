//! Globs of paths.

use std::path::Path;

/// Places where leftovers of programs do not matter: caches, histories, temporary files.
pub const MINOR: [&str; 6] = ["~/.cache", "~/.local/state", "~/.*_history", "~/.lesshst", "/tmp", "/var/tmp"];

/// A glob of `commit.deny` or `commit.minor` in its final form: `~/` expanded, without a slash at its end.
pub fn glob(text: &str, home: Option<&Path>) -> Result<String, String> {
    let plain = text.trim_end_matches('/');
    let whole = match (plain.strip_prefix("~/"), home.and_then(Path::to_str)) {
        (Some(below), Some(home)) => format!("{}/{below}", globset::escape(home)),
        (Some(_), None) => return Err("no home directory is known".into()),
        (None, _) => plain.to_owned(),
    };
    if whole.is_empty() {
        return Err("it means every path there is".into());
    }
    if whole.starts_with('!') {
        return Err("'!' takes nothing out here".into());
    }
    if whole.contains('/') && !whole.starts_with('/') && !whole.starts_with("**/") {
        return Err("with a '/' in it, a glob starts with '/', '~/' or '**/'".into());
    }
    path_glob(&whole).map_err(|error| error.kind().to_string())?;
    Ok(whole)
}

/// Matches whole paths by a glob of [`Config::deny`](super::Config::deny) or [`Config::minor`](super::Config::minor).
pub fn path_glob(glob: &str) -> Result<globset::Glob, globset::Error> {
    let anywhere = if glob.contains('/') { glob.to_owned() } else { format!("**/{glob}") };
    globset::GlobBuilder::new(&anywhere).literal_separator(true).backslash_escape(true).build()
}
