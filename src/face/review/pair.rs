//! Two sessions on the screen: in what their heads differ.

use std::sync::Arc;

use super::error_lines::look as look_by;
use super::error_lines::said;
use super::session::OfStates;
use super::session::opened;
use crate::compare::States;
use crate::error::Error;
use crate::face::screen::world::{AllowedActs, Look, Open, ViewedChanges};
use crate::fs::AbsPath;
use crate::session::{Id, Side};
use crate::tree::Hash;

pub fn look(store: AbsPath, old: Id, new: Id) -> Look {
    look_by(move |mark| {
        let opened = opened(&store)?;
        let (first, second) = (opened.session(&old)?, opened.session(&new)?);
        let now = Hash::of(format!("{:?}{:?}", first.header, second.header).as_bytes());
        if mark == Some(now) {
            return Ok(None);
        }
        let (changes, others) = (first.changes()?, second.changes()?);
        let differences = States::of([(&first, &changes), (&second, &others)])?.between(&changes, &others)?;
        let list = differences.changes.list;
        let sides = vec![Side::Never; list.len()];
        Ok(Some(ViewedChanges {
            title: format!("sessions {} and {}", old.tail(), new.tail()),
            state: format!("- is {}, + is {}", old.tail(), new.tail()),
            about: String::new(),
            notes: Vec::new(),
            may: AllowedActs::default(),
            mark: now,
            is_running: false,
            contents: contents(store.clone(), old.clone(), new.clone()),
            changes: Arc::new(list),
            sides: Arc::new(sides),
        }))
    })
}

fn contents(store: AbsPath, old: Id, new: Id) -> Open {
    Arc::new(move |serve| {
        let mut served = || -> Result<(), Error> {
            let opened = opened(&store)?;
            let (first, second) = (opened.session(&old)?, opened.session(&new)?);
            let (changes, others) = (first.changes()?, second.changes()?);
            let mut states = States::of([(&first, &changes), (&second, &others)])?;
            let differences = states.between(&changes, &others)?;
            serve(&mut OfStates { states, differences: &differences });
            Ok(())
        };
        served().map_err(said)
    })
}
