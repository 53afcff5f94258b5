//! The place of this binary on another machine.

/// The directory of versions, below the far side's home. Not in a cache: no confined command may write what is started here from elsewhere
/// (`run --in` leaves ~/.cache writable). ~/.local/lib is for what belongs to one program and one processor: file-hierarchy(7).
pub const PLACE: &str = ".local/lib/recant/bin";
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");
