//! The ground that a command runs on.

use super::confine::Confinement;
use super::ids::Ids;
use super::join::Joined;
use crate::capture::place::layout::Route;
use crate::capture::place::mount_plan::Laid;

/// The ground that a command runs on.
#[derive(Debug, Clone, Copy)]
pub enum Ground<'a> {
    /// Overlays: its changes are held.
    Captured(&'a Laid),
    /// The real tree, where it may write to some directories: nothing is held.
    Confined(&'a Confinement),
    /// The overlays of another run, which is under way.
    Joined(&'a Joined),
}

impl<'a> Ground<'a> {
    pub(crate) fn laid(self) -> Option<&'a Laid> {
        match self {
            Ground::Captured(laid) => Some(laid),
            Ground::Confined(_) | Ground::Joined(_) => None,
        }
    }

    /// True if its changes are held.
    pub fn is_held(self) -> bool {
        !matches!(self, Ground::Confined(_))
    }

    /// The ids that are mapped into its namespaces, if it may have some that map.
    pub fn ids(self) -> Option<&'a Ids> {
        match self {
            Ground::Captured(laid) => Some(&laid.plan.ids),
            Ground::Confined(confinement) => confinement.ids(),
            Ground::Joined(_) => None,
        }
    }

    /// True if it takes a user namespace.
    pub fn is_user_s(self) -> bool {
        match self {
            Ground::Captured(laid) => laid.plan.route == Route::User,
            Ground::Joined(joined) => joined.is_user_s(),
            Ground::Confined(_) => false,
        }
    }
}
