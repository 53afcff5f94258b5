//! Values in words, a file a verb or family; and the words that several of them have.

pub mod heads;
pub mod parts;
pub mod patch;
pub mod recovered;
pub mod said;
pub mod waiting;
