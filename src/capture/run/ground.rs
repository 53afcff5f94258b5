//! The ground that a command runs on.

use super::confine::Confinement;
use super::ids::Ids;
use crate::capture::place::layout::Route;
use crate::capture::place::mount_plan::Laid;

/// The ground that a command runs on.
#[derive(Debug, Clone, Copy)]
pub enum Ground<'a> {
    /// Overlays: its changes are held.
    Captured(&'a Laid),
    /// The real tree, where it may write to some directories: nothing is held.
    Confined(&'a Confinement),
}

impl<'a> Ground<'a> {
    pub(crate) fn laid(self) -> Option<&'a Laid> {
        match self {
            Ground::Captured(laid) => Some(laid),
            Ground::Confined(_) => None,
        }
    }

    /// The ids that are mapped into its namespaces, if it may have some that map.
    pub fn ids(self) -> Option<&'a Ids> {
        match self {
            Ground::Captured(laid) => Some(&laid.plan.ids),
            Ground::Confined(confinement) => confinement.ids(),
        }
    }

    /// True if it takes a user namespace.
    pub fn is_user_s(self) -> bool {
        self.laid().is_some_and(|laid| laid.plan.route == Route::User)
    }
}
