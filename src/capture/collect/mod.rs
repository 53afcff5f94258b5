//! Reads the uppers of a run into changes: compares each object of an upper with the one below it, in a sealed upper or on the real tree.
//! That tree is the overlay's lowest layer again, now that the mounts are gone.
//!
//! Takes stored facts alone, so that what a killed recant left is read in the same way. No recursion, and paths only below held
//! directories: a path is limited by its length alone. Comparing decides, never overlayfs' notes: an upper holds files equal to
//! their originals (opened for writing, chmod and back), and `opaque` means only that a directory was renamed. Its notes are used where
//! there is no other sign: whiteouts, opaque directories, and `origin`.

mod capabilities;
mod change_of_name;
mod collect_run;
mod copied_file;
mod covered_directories;
pub mod cut_off_rename;
mod deletions;
pub mod facts;
mod foreign_changes;
pub mod keep_originals;
mod lost_mounts;
pub mod net_with_step;
pub mod open_up;
mod overlay_notes;
pub mod renamed_directories;
mod same_content;
mod split_uppers;
pub mod tree_below;
mod unchanged_objects;
mod upper_reader;
mod walk_upper;

pub use collect_run::{Collected, clear, clear_work, collect, finish, read_so_far};
