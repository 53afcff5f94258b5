//! `diff --html`: one page of all changes, on standard output.
//!
//! The head of a page needs the counts of all of them. So the files are spooled as they are read, and only what is
//! kept of each ([`Entry`]) is in memory.

use std::io::BufRead;

use super::spool::Spool;
use crate::compare::html::{file_part, page};
use crate::compare::{About, Common, Entry, Form, View};
use crate::error::{At, Error, command};
use crate::face::call::Call;

/// The subject of a page, and what its files have in common.
#[derive(Default)]
pub struct Of {
    pub about: About,
    pub common: Common,
}

/// A page that is being made.
pub struct Page<'c> {
    call: &'c Call,
    of: Of,
    files: Spool<'c>,
    entries: Vec<Entry>,
}

impl<'c> Page<'c> {
    pub fn begin(call: &'c Call, form: Form, mut of: Of) -> Self {
        of.common.form = form;
        Self { call, of, files: Spool::new(&call.fs), entries: Vec::new() }
    }

    pub fn add(&mut self, view: &View<'_>) -> Result<(), Error> {
        let mut part = String::new();
        self.entries.push(file_part::write(&mut part, &self.of.common, view, self.entries.len() + 1));
        self.files.add(part.as_bytes())
    }

    /// Adds what has to be minded, with its word.
    pub fn note(&mut self, word: &str, text: String) {
        self.of.about.notes.push((word.into(), text));
    }

    pub fn end(self) -> Result<(), Error> {
        let Self { call, of, files, entries } = self;
        let (head, foot) = (page::head(&of.about, &entries), page::foot(&of.about, entries.is_empty()));
        call.out.bytes(head.as_bytes());
        let mut reader = files.read();
        while !call.out.is_closed() {
            let part = reader.fill_buf().at("read", "the page")?;
            let length = part.len();
            if length == 0 {
                break;
            }
            call.out.bytes(part);
            reader.consume(length);
        }
        call.out.bytes(foot.as_bytes());
        Ok(())
    }
}

/// Refuses a call for which no page can be made.
pub fn refuse(call: &Call) -> Result<(), Error> {
    let (message, remedy) = match () {
        () if !call.out.is_text() => ("a page is not JSON", command("diff --json") + " shows the changes"),
        () if call.out.is_for_people() => ("a page is not for a terminal", "redirect it to a file: --html > FILE".into()),
        () => return Ok(()),
    };
    Err(Error::usage(message).with_remedy(remedy))
}
