//! Where this binary lies on another machine.

/// The folder of versions, below the far side's home. In no cache: what is started here from elsewhere is for no confined command to write
/// (`run --in` leaves ~/.cache writable). ~/.local/lib is for what belongs to one program and one processor: file-hierarchy(7).
pub const PLACE: &str = ".local/lib/recant/bin";
/// This one's.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");
