//! Finds out whether this process runs inside a capture: by its mounts, never by the environment.

use std::sync::OnceLock;

use super::door;
use crate::fs::{AbsPath, Mount, mounts};

/// The prefix of the source of each mount of a run; the session's id follows.
pub const MARK: &str = "recant:";

/// The capture that a process is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inside {
    /// The id of the session that holds the changes.
    pub session: String,
    /// The run's own store, in the place of the one that is hidden; `None` if it has none.
    pub store: Option<AbsPath>,
    /// The directory in which the door lies; `None` if there is none.
    pub door: Option<AbsPath>,
}

/// The capture that this process is in, `None` outside. An unreadable mountinfo counts as outside: a run that is then tried fails closed.
pub fn capture() -> Option<&'static Inside> {
    static INSIDE: OnceLock<Option<Inside>> = OnceLock::new();
    INSIDE.get_or_init(find_capture).as_ref()
}

/// The id of the session that captures this process, `None` outside.
pub fn inside() -> Option<String> {
    capture().map(|capture| capture.session.clone())
}

fn find_capture() -> Option<Inside> {
    if !may_be_inside() {
        return None;
    }
    let mounts = mounts::read().ok()?;
    // The mount that hides the store is always there: a read-only tmpfs of no size. The run's own store lies on it.
    let hides = |m: &&Mount| m.fs_type == "tmpfs" && m.read_only() && m.source.starts_with(MARK.as_bytes());
    let hiding: Vec<&Mount> = mounts.iter().filter(hides).collect();
    let own = hiding.iter().find_map(|m| mounts.iter().find(|over| over.parent == m.id && over.point == m.point));
    let session = String::from_utf8_lossy(&hiding.first()?.source[MARK.len()..]).into_owned();
    let door = hiding.iter().map(|m| &m.point).find(|point| point.as_path().join(door::NAME).symlink_metadata().is_ok());
    Some(Inside { session, store: own.map(|own| own.point.clone()), door: door.cloned() })
}

/// True if this may be a run: root's has an overlay as its root, a user's has a user namespace. With neither, the mounts need not be read:
/// with hundreds of them, that takes longer than all else before recant begins.
fn may_be_inside() -> bool {
    const OVERLAY: u32 = 0x794c_7630;
    let is_overlay = |found: rustix::fs::StatFs| u32::try_from(found.f_type).is_ok_and(|kind| kind == OVERLAY);
    // An unreadable file proves nothing.
    let is_first =
        std::fs::read_to_string("/proc/self/uid_map").is_ok_and(|map| map.split_ascii_whitespace().eq(["0", "0", "4294967295"]));
    !is_first || rustix::fs::statfs("/").map_or(true, is_overlay)
}
