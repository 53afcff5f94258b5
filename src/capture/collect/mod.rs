//! Reads the uppers of a run into changes: compares each object of an upper with the one below it, in a sealed upper or on the real tree.
//! That tree is the overlay's lowest layer again, now that the mounts are gone.
//!
//! Takes stored facts alone, so that what a killed recant left is read in the same way. No recursion, and paths only below held
//! directories: a path is limited by its length alone. Comparing decides, never overlayfs' notes: an upper holds files equal to
//! their originals (opened for writing, chmod and back), and `opaque` means only that a directory was renamed. Its notes are used where
//! there is no other sign: whiteouts, opaque directories, and `origin`.
//!
//! Files: `facts` is what is known of the run; `walk` goes through an upper; `judge` compares one name, `file` a mounted file; `lost_mounts`
//! drops changes in mounts whose directory the command removed; `split_uppers` knows uppers made before the command; `redirect` fills in
//! renamed directories; `below` is what a run's upper lies
//! over; `compose` adds the changes to those of earlier steps; `modes` opens up what the command closed; `foreign` finds what others changed
//! meanwhile; `needless` removes what is no change; `notes` reads overlayfs' notes; `same` compares content;
//! `originals` keeps what was there before.

pub mod below;
mod collected;
pub mod compose;
pub mod facts;
mod file;
mod foreign;
mod found;
mod judge;
mod lost_mounts;
pub mod modes;
mod needless;
mod notes;
pub mod originals;
pub mod redirect;
mod same;
mod split_uppers;
mod walk;

pub use collected::{Collected, clear, clear_work, collect, finish, read_so_far};
