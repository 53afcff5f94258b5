//! Decides, place by place, what is captured, and how: from mountinfo, the bound sockets and the directories as they are. Reads only.
//!
//! In: a [`Request`](layout::Request). Out: the checked list of mounts, a [`Plan`](mount_plan::Plan), and its coverage.

pub mod choose_files;
pub mod choose_pieces;
pub mod choose_places;
pub mod choosing;
pub mod copy_mounted_file;
pub mod covers;
pub mod lay_pieces;
mod lay_uppers;
pub mod layout;
pub mod mount_plan;
mod own_places;
pub mod pieces;
pub mod scratch;
pub mod sockets;
