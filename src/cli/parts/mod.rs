//! Parts of a session: blocks of a file, its metadata, whole changes. `commit`, `discard` and `rollback` take them by the words `PATH:2,5-7`,
//! or ask block by block.

mod ask;
pub mod commit;
pub mod discard;
pub mod edit;
pub mod piece;
pub mod rollback;
pub mod select;
pub mod show;
