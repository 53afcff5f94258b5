//! `config.toml`: its keys, and the value of each.

use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::kind::{Found, Kind, Wrong};
use super::row::Row;
use super::similar_word::edits;
use crate::error::{Error, Kind as OfError, command};

/// A file of settings in which all keys are known.
pub struct File<'a> {
    path: &'a Path,
    text: &'a str,
    /// The directory that `~/` means.
    home: Option<&'a Path>,
    rows: &'a [Row],
    is_agent: &'a dyn Fn(&str) -> bool,
    top: DeTable<'a>,
}

impl<'a> File<'a> {
    /// Parses a file that may have the keys of these rows. `is_agent`: true for the word of an agent, which may have a table.
    ///
    /// # Errors
    /// It is no TOML, or has an unknown key.
    pub fn parse(
        path: &'a Path,
        text: &'a str,
        home: Option<&'a Path>,
        rows: &'a [Row],
        is_agent: &'a dyn Fn(&str) -> bool,
    ) -> Result<Self, Error> {
        let file = |top| Self { path, text, home, rows, is_agent, top };
        let top = DeTable::parse(text).map_err(|error| {
            let at = error.span().unwrap_or_default().start;
            let file = file(DeTable::default());
            file.refused(format_args!("line {}: {}", file.line(at), error.message().lines().next().unwrap_or_default()))
        })?;
        let file = file(top.into_inner());
        file.check(&file.top, "", "")?;
        Ok(file)
    }

    /// The value of a key; `None` if it is not in the file.
    ///
    /// # Errors
    /// It has another type, or cannot be meant.
    pub fn get<K: Kind>(&self, key: &str) -> Result<Option<K::Value>, Error> {
        let (tables, name) = key.rsplit_once('.').unwrap_or(("", key));
        let mut table = Some(&self.top);
        for name in tables.split('.').filter(|name| !name.is_empty()) {
            table = table.and_then(|table| table.get(name)?.get_ref().as_table());
        }
        table.map_or(Ok(None), |table| self.value::<K>(table, name, key))
    }

    /// The value of a key of a table.
    ///
    /// # Errors
    /// It has another type, or cannot be meant.
    pub fn get_in<K: Kind>(&self, table: &DeValue<'_>, name: &str, key: &str) -> Result<Option<K::Value>, Error> {
        table.as_table().map_or(Ok(None), |table| self.value::<K>(table, name, key))
    }

    fn value<K: Kind>(&self, table: &DeTable<'_>, name: &str, key: &str) -> Result<Option<K::Value>, Error> {
        let Some(value) = table.get(name) else { return Ok(None) };
        K::read(&Found { value, home: self.home }).map(Some).map_err(|wrong| self.wrong(key, wrong))
    }

    /// The tables below a table that have names of the person's own, with these.
    pub fn tables(&self, table: &'static str) -> impl Iterator<Item = (&str, &DeValue<'a>)> {
        let is_named = move |name: &str| !self.rows.iter().any(|row| row.key.starts_with(&format!("{table}.{name}.")));
        let below = self.top.get(table).and_then(|table| table.get_ref().as_table());
        let all = below.into_iter().flat_map(|table| table.iter()).map(|(name, value)| (&**name.get_ref(), value.get_ref()));
        all.filter(move |(name, value)| value.is_table() && is_named(name))
    }

    /// Refuses the first key that the table of settings does not have. `known`: what that calls the table above, as in `remotes.NAME`.
    fn check(&self, table: &DeTable<'_>, above: &str, known: &str) -> Result<(), Error> {
        for (name, value) in table.iter() {
            let (name, span) = (&**name.get_ref(), value.span());
            // Machines may have any name.
            let is_name = known == "remotes" || known == "agent" && (self.is_agent)(name);
            let below = |above: &str, name: &str| if above.is_empty() { name.to_owned() } else { format!("{above}.{name}") };
            let (key, known) = (below(above, name), below(known, if is_name { "NAME" } else { name }));
            if self.rows.iter().any(|row| row.key == known) {
                continue;
            }
            let is_table = self.rows.iter().any(|row| row.key.strip_prefix(&*known).is_some_and(|rest| rest.starts_with('.')));
            match value.get_ref() {
                // In an unknown table, a key is reported: that has a nearest known one.
                DeValue::Table(below) if is_table || below.iter().next().is_some() => self.check(below, &key, &known)?,
                _ if is_table => return Err(self.wrong(&key, Wrong::Unwanted { at: span, wanted: "a table".into() })),
                _ => return Err(self.unknown(&known)),
            }
        }
        Ok(())
    }

    fn unknown(&self, key: &str) -> Error {
        let table = |key: &str| key.rsplit_once('.').map(|(table, _)| table.to_owned());
        let likeness = |known: &&str| (unlikeness(known, key), table(known) != table(key));
        let near = self.rows.iter().map(|row| row.key).min_by_key(likeness).unwrap_or_default();
        let error = self.refused(format_args!("unknown key {key:?}; the nearest known one is {near:?}"));
        error.with_remedy(command("config") + " shows the known keys once the file is corrected")
    }

    fn wrong(&self, key: &str, wrong: Wrong) -> Error {
        match wrong {
            Wrong::Unusable(why) => self.refused(format_args!("{key}: {why}")),
            Wrong::Unwanted { at, wanted } => {
                let line = self.line(at.start);
                let found = self.text.get(at).and_then(|found| found.lines().next()).unwrap_or_default();
                let found: String = found.chars().take(40).collect();
                self.refused(format_args!("line {line}: {key}: expected {wanted}, found {found}"))
            }
        }
    }

    fn line(&self, at: usize) -> usize {
        self.text.get(..at).map_or(1, |before| before.matches('\n').count() + 1)
    }

    fn refused(&self, why: std::fmt::Arguments<'_>) -> Error {
        Error::at(OfError::Refused, self.path.display(), why)
    }
}

/// The distance of a known key from an unknown one: as a whole, or of their last parts alone.
fn unlikeness(known: &str, key: &str) -> usize {
    let last = |text: &str| text.rsplit('.').next().map(str::to_owned).unwrap_or_default();
    edits(known, key).min(edits(&last(known), &last(key)) + 1)
}
