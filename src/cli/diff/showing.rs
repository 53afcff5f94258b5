//! Shows changes to people, one after the other: as a patch, as counts, or in another program.

use std::fmt::Display;

use super::super::call::Call;
use super::super::{args, text};
use super::html::{self, Of, Page};
use super::tool::{self, Tool};
use super::{patch, stat};
use crate::diff::patch::{Form, Words, differs_in_space_alone};
use crate::diff::view::View;
use crate::error::Error;

/// The place where changes are shown, and what is left to be told at the end.
pub struct Showing<'c> {
    call: &'c Call,
    much: &'c args::Much,
    form: Form,
    tool: Option<Tool<'c>>,
    page: Option<Page<'c>>,
    rows: Vec<stat::Row>,
    has_begun: bool,
    /// Files that differ in white space alone, and are not shown.
    spaces: u64,
    /// Changes that a commit or rollback would refuse.
    pub conflicts: u64,
}

impl<'c> Showing<'c> {
    /// Opens a pager, makes a directory for a tool, or begins a page; `of` tells what that is of.
    pub fn begin(call: &'c Call, much: &'c args::Much, of: impl FnOnce() -> Result<Of, Error>) -> Result<Self, Error> {
        let args::Form { word_diff, unified, ignore_space, tool } = &much.form;
        let words = match word_diff {
            true => Words::Inline,
            false if call.out.is_colored() => Words::Marked,
            false => Words::Unmarked,
        };
        let usual = Form::default();
        let context = unified.and_then(|lines| usize::try_from(lines).ok()).unwrap_or(usual.context);
        let tool = tool.as_ref().map(|name| Tool::begin(call, name.as_deref())).transpose()?;
        if tool.is_none() && !much.html {
            page(call);
        }
        let form = Form { context, ignore_space: *ignore_space, words };
        let page = if much.html { Some(Page::begin(call, form, of()?)) } else { None };
        Ok(Self { call, much, form, tool, page, rows: Vec::new(), has_begun: false, spaces: 0, conflicts: 0 })
    }

    /// True if remarks and renames are shown.
    pub fn is_patch(&self) -> bool {
        self.tool.is_none() && !self.much.stat
    }

    pub fn add(&mut self, view: &View<'_>) -> Result<(), Error> {
        self.conflicts += u64::from(view.conflict);
        if self.form.ignore_space && differs_in_space_alone(view) {
            self.spaces += 1;
            return Ok(());
        }
        match (&mut self.tool, &mut self.page) {
            (Some(tool), _) => tool.add(view)?,
            (None, Some(page)) => return page.add(view),
            (None, None) if self.much.stat => self.rows.push(stat::row(self.call, view, self.form)),
            (None, None) => patch::print(&self.call.out, view, self.form),
        }
        // The others may take a while.
        if !std::mem::replace(&mut self.has_begun, true) {
            self.call.out.flush();
        }
        Ok(())
    }

    /// Puts on a page what has to be minded, with its word.
    pub fn note(&mut self, word: &str, text: impl Display) {
        if let Some(page) = &mut self.page {
            page.note(word, text.to_string());
        }
    }

    /// Shows what waited for the last change. `again` is this call with other options.
    pub fn end(mut self, again: impl Fn(&str) -> String) -> Result<(), Error> {
        let differ = if self.spaces == 1 { "differs" } else { "differ" };
        let spaces = format!("{} {differ} in white space alone", text::count(self.spaces, "file"));
        if self.spaces > 0 {
            self.note("not shown", &spaces);
        }
        if let Some(page) = self.page {
            page.end()?;
        } else if let Some(tool) = self.tool {
            tool.run(&again(""))?;
        } else if self.much.stat {
            stat::table(self.call, &self.rows, &again(" --stat -v"));
        }
        if self.spaces > 0 {
            self.call.out.note(spaces);
        }
        Ok(())
    }
}

/// Refuses what cannot be shown as asked for.
pub fn check(call: &Call, much: &args::Much) -> Result<(), Error> {
    if much.html {
        return html::refuse(call);
    }
    much.form.tool.as_ref().map_or(Ok(()), |name| tool::refuse(call, name.as_deref()))
}

/// Sends text through the pager of differences.
pub fn page(call: &Call) {
    call.out.page(call.config.pager_of_diff());
}
