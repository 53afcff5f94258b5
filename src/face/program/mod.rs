//! The call of a process: from its words to a verb's face, and from its end to an exit status. Also
//! what a shell is offered to complete, and the process of a run's proxy.

pub mod complete;
pub mod dispatch;
pub mod misuse;
mod proxy;
pub mod start;
