//! Sessions that move: as a stream out of a store, and into another one, on this machine or elsewhere. Used by `verb` and `face`.
//!
//! In: a session with nothing on the tree, or a stream. Out: the stream, or a pending session with the same id. A committed session moves
//! with its checkpoint to where the tree is, too: its originals travel, and it is committed there. Only reads the tree. What always holds:
//! - A session appears only once the hash at the stream's end has proved all of it, and it is durable: until then its
//!   directory is `.new-<id>`, which nobody reads and the next sweep removes.
//! - Nothing of a stream is used as a path but below the directory that was made for it, where content is named by a number;
//!   every path, id, name and size is checked before it is used (docs/ARCHITECTURE.md, I14).
//! - A `before` travels as a state with its hash, never as a fingerprint. For a captured change the export computes the
//!   hash, from an original whose fingerprint still holds; any other is a conflict of the export. The import compares all with
//!   the tree there, and reports differences.

mod checkpoint_originals;
mod error;
mod export;
mod import;
mod stream;

pub use export::{Exported, With, export};
pub use import::{Arrived, Mapping, conflicts, import};
