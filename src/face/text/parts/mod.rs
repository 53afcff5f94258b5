//! Parts of a session: blocks of a file, its metadata, whole changes. `commit`, `discard` and `rollback` take them by the words `PATH:2,5-7`,
//! or ask block by block.

pub mod ask;
pub mod block;
pub mod edit;
pub mod show;
