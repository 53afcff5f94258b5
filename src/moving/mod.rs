//! Sessions that move: one stream out of a store, and into another one, on this machine or elsewhere.
//!
//! In: a session of which nothing is on the tree, or a stream. Out: the stream, or a pending session with the same id. With its
//! checkpoint a committed session moves to where the tree is, too: the originals travel, and it is committed there. The tree is only looked at. What always holds:
//! - **M1** A session appears only once the digest at the stream's end has proved all of it, and it is durable: until then its
//!   folder is `.new-<id>`, which nobody reads and the next sweep takes.
//! - **M2** Nothing of a stream is used as a path but below the folder that was made for it, where content is named by a number;
//!   every path, id, name and size is checked before it is used (docs/ARCHITECTURE.md, I14).
//! - **M3** A `before` travels as a state with its digest, never as a fingerprint. Of a captured change it is taken at the
//!   export, from an original whose fingerprint still holds; another is a conflict of the export. At the import all are compared
//!   with the tree there, and said.

mod error;
mod export;
mod import;
mod mark;
mod originals;
mod stream;

pub use export::{Exported, With, export};
pub use import::{Arrived, Mapping, conflicts, import};
pub use mark::mark;
