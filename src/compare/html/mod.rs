//! Changes as one page for a browser, without scripts and with nothing to load.
//!
//! A file is written when its change is read ([`mod@file_part`]); what stands above it, when all are known ([`page`]). Text comes on a page
//! through [`escape`] alone.

pub mod escape;
pub mod file_part;
mod first_bytes;
pub mod page;
mod rows;
mod size_limits;
