//! `run --stop`: ends a service of a session.

use crate::error::Error;
use crate::verb::desk::Desk;
use crate::verb::resolve::service_rows::StoppedService;
use crate::verb::resolve::services;
use crate::verb::resolve::wanted_act::Want;

/// Stops the service `name` of the session that `key` means.
///
/// # Errors
/// No such service runs; a person began it, and an agent calls.
pub fn stop(desk: &Desk, key: &str, name: &str) -> Result<StoppedService, Error> {
    let store = desk.store_with(key)?;
    let id = desk.find(store, Some(key), Want::GoOn)?;
    services::stop(desk, store, &id, name)
}
