//! The steps that a commit leaves behind.

use crate::error::Error;
use crate::session::Session;

/// The steps that a commit leaves behind: those that are not below the head can be gone back to only until then.
#[derive(Debug, Clone, Copy)]
pub struct Behind {
    pub count: u64,
    pub newest: u32,
}

impl Behind {
    /// `None` if the session is committed already, cannot be, or has no such steps.
    ///
    /// # Errors
    /// The steps cannot be read.
    pub fn of(session: &Session) -> Result<Option<Self>, Error> {
        let header = &session.header;
        if header.steps.is_none() || header.counts.ever_in > 0 || header.discarded.is_some() || header.counts.changes == 0 {
            return Ok(None);
        }
        let (list, chain) = (session.steps()?, header.chain());
        // A step at which a part left holds nothing of its own.
        let holds = |n: &u32| list.get(header, *n).is_ok_and(|step| step.parted.is_none());
        let behind: Vec<u32> = list.kept(header).into_iter().filter(|n| !chain.contains(n)).filter(holds).collect();
        Ok(behind.iter().max().map(|newest| Self { count: behind.len() as u64, newest: *newest }))
    }
}
