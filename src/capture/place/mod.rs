//! Decides, place by place, what is captured, and how: from mountinfo, the bound sockets and the directories as they are. Reads only.
//!
//! In: a [`Request`](layout::Request). Out: the checked list of mounts, a [`Plan`](plan::Plan), and its coverage.

pub mod choose;
pub mod covers;
pub mod files;
pub mod known;
pub mod layout;
pub mod mounted_file;
pub mod pieces;
pub mod pieces_of;
pub mod plan;
pub mod scratch;
pub mod sockets;
pub mod split;
