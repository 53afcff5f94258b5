//! Scopes of Landlock (landlock(7)): they keep a command to its own abstract sockets, which lie in no file system.

use landlock::{Ruleset, RulesetAttr, RulesetCreatedAttr, Scope};

use super::raw_calls;

/// The first version of Landlock that can keep a command to its own abstract sockets and processes: Linux 6.12.
pub const SCOPES: i32 = 6;

/// True if this kernel can close abstract sockets of programs outside to a run.
pub fn is_there() -> bool {
    raw_calls::landlock_version().is_ok_and(|version| version >= SCOPES)
}

/// Closes abstract sockets of programs outside, of which the mounts of a run know nothing, to this process and all that it will start; needs
/// CAP_SYS_ADMIN. An older kernel, or one without Landlock, leaves them open.
pub fn close_to_others() -> std::io::Result<()> {
    let denied = |error: landlock::RulesetError| std::io::Error::other(error.to_string());
    if is_there() {
        let rules = Ruleset::default().scope(Scope::AbstractUnixSocket).and_then(Ruleset::create).map_err(denied)?;
        rules.no_new_privs(false).restrict_self().map_err(denied)?;
    }
    Ok(())
}
