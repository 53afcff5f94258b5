//! `config`: the settings in force, and where each comes from.

use serde::Serialize;

use super::desk::Desk;
use crate::settings::{Setting, Value};

/// The settings in force, as JSON has them: docs/json.md.
#[derive(Debug, Serialize)]
pub struct InForce {
    /// The file, or where it would be; `None` if no home directory is known.
    pub file: Option<String>,
    /// True if the file exists.
    pub found: bool,
    pub settings: Vec<Setting>,
}

/// Lists the settings in force. Takes those of `environment` in place of the file's.
pub fn config(desk: &Desk, environment: Vec<Setting>) -> InForce {
    let mut settings = desk.config.list();
    for own in environment {
        settings.iter_mut().filter(|setting| setting.key == own.key).for_each(|setting| *setting = own.clone());
    }
    // Without a pager of its own, a difference is paged as anything else.
    if let Some(pager) = settings.iter().find(|setting| setting.key == "pager").cloned() {
        let is_unset = |setting: &&mut Setting| setting.key == "diff.pager" && setting.value == Value::None;
        settings.iter_mut().filter(is_unset).for_each(|setting| *setting = Setting { key: "diff.pager".into(), ..pager.clone() });
    }
    InForce { file: desk.config.file.as_ref().map(|file| file.display().to_string()), found: desk.config.found, settings }
}
