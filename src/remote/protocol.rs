//! The numbers that both sides of a connection know.

/// The version of the protocol, which docs/remote.md describes.
pub const PROTOCOL: u32 = 3;

/// The exit status of a far side without a recant of this protocol. A verb may end with it, too: then the far side is asked.
pub const MISSING: u8 = 213;
