//! The screen of `review`: the changes of a session as a tree, their differences, and what a person decides about them.
//!
//! In: a [`World`](world::World) that looks, plans and acts. Out: its acts, in the order in which the person confirmed them. The room draws
//! and reads keys; it changes nothing itself, and reads contents in a thread of its own.
//!
//! What always holds:
//! - An act is carried out for the picks that its question showed, and only while they stand as they were shown.
//! - The terminal is as before when the screen ends: also after an error, a panic, a signal, and while it is stopped.
//! - No key waits for a content that is read.

mod confirmation;
mod cursor;
mod decisions;
mod draw;
mod event_loop;
mod key_input;
mod keys;
mod loader;
mod outline;
mod rows;
mod selection;
pub mod sheet;
mod side_list;
mod state;
mod terminal;
mod theme;

pub use event_loop::show;

#[cfg(test)]
mod tests;
mod viewed_place;
pub mod world;
