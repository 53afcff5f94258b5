//! Whether this process runs inside a capture, told by its mounts and never by the environment.

use std::sync::OnceLock;

use crate::fs::mounts;

/// What the source of each mount of a run starts with; the session's id follows.
pub(super) const MARK: &str = "recant:";

/// The id of the session that captures this process, `None` outside. An unreadable mountinfo counts as outside: the run
/// that is then tried fails closed.
pub fn inside() -> Option<String> {
    static INSIDE: OnceLock<Option<String>> = OnceLock::new();
    INSIDE.get_or_init(look).clone()
}

fn look() -> Option<String> {
    let mounts = mounts::read().ok()?;
    // The one that hides the store is always there: a read-only tmpfs of no size.
    let hiding = mounts.iter().find(|m| m.fs_type == "tmpfs" && m.read_only() && m.source.starts_with(MARK.as_bytes()))?;
    Some(String::from_utf8_lossy(&hiding.source[MARK.len()..]).into_owned())
}
