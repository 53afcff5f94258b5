//! Checkpoints: what commit took off the tree. A manifest tells what was at each path and where it lies; blobs are the originals
//! themselves, named by the hash of their content. Used by `engine`, `compare` and the rooms above them.
//!
//! In: what the engine moved out. Out: the place of an original, and whether it is whole. What always holds:
//! - **I17** A blob's name is the SHA-256 of its content when it was taken, or that and `.<n>`; it is re-hashed before use.
//! - **I18** A line of the manifest names its blob by hash and number, never by a path from the file (docs/ARCHITECTURE.md, I14).

mod limits;
pub mod make_originals;
pub mod manifest;
pub mod verify;

pub use limits::{Large, Limits, Tally};
pub use manifest::{DirectoryTime, Former, Kept, Manifest, NEW, Original, Reading, Writing, keeps_overwritten, name_written};
pub use verify::{Fault, Verdict};
