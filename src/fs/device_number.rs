//! The number of a device, which tells file systems apart.

/// A device number: major, minor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Dev(pub u32, pub u32);
