//! Shows changes to people, one after the other: as a patch, as counts, or in another program.

use super::super::problem::Problem;
use super::super::{Call, args, text};
use super::tool::{self, Tool};
use super::{patch, stat};
use crate::diff::patch::{Form, Words, differs_in_space_alone};
use crate::diff::view::View;

/// The place where changes are shown, and what is left to be told at the end.
pub struct Showing<'c> {
    call: &'c Call,
    much: &'c args::Much,
    form: Form,
    tool: Option<Tool<'c>>,
    rows: Vec<stat::Row>,
    has_begun: bool,
    /// Files that differ in white space alone, and are not shown.
    spaces: u64,
    /// Changes that a commit or rollback would refuse.
    pub conflicts: u64,
}

impl<'c> Showing<'c> {
    /// Opens a pager, or makes a directory for a tool.
    pub fn begin(call: &'c Call, much: &'c args::Much) -> Result<Self, Problem> {
        let args::Form { word_diff, unified, ignore_space, tool } = &much.form;
        let words = match word_diff {
            true => Words::Inline,
            false if call.out.is_colored() => Words::Marked,
            false => Words::Unmarked,
        };
        let usual = Form::default();
        let context = unified.and_then(|lines| usize::try_from(lines).ok()).unwrap_or(usual.context);
        let tool = tool.as_ref().map(|name| Tool::begin(call, name.as_deref())).transpose()?;
        if tool.is_none() {
            page(call);
        }
        let form = Form { context, ignore_space: *ignore_space, words };
        Ok(Self { call, much, form, tool, rows: Vec::new(), has_begun: false, spaces: 0, conflicts: 0 })
    }

    /// True if remarks and renames are shown.
    pub fn is_patch(&self) -> bool {
        self.tool.is_none() && !self.much.stat
    }

    /// Shows a change.
    pub fn add(&mut self, view: &View<'_>) -> Result<(), Problem> {
        self.conflicts += u64::from(view.conflict);
        if self.form.ignore_space && differs_in_space_alone(view) {
            self.spaces += 1;
            return Ok(());
        }
        match &mut self.tool {
            Some(tool) => tool.add(view)?,
            None if self.much.stat => self.rows.push(stat::row(self.call, view, self.form)),
            None => patch::print(self.call, view, self.form),
        }
        // The others may take a while.
        if !std::mem::replace(&mut self.has_begun, true) {
            self.call.out.flush();
        }
        Ok(())
    }

    /// Shows what waited for the last change. `again` is this call with other options.
    pub fn end(self, again: impl Fn(&str) -> String) -> Result<(), Problem> {
        if let Some(tool) = self.tool {
            tool.run(&again(""))?;
        } else if self.much.stat {
            stat::table(self.call, &self.rows, self.much.all, &again(" --stat --all"));
        }
        if self.spaces > 0 {
            let differ = if self.spaces == 1 { "differs" } else { "differ" };
            self.call.out.note(format_args!("{} {differ} in white space alone", text::count(self.spaces, "file")));
        }
        Ok(())
    }
}

/// Refuses what cannot be shown as asked for.
pub fn check(call: &Call, much: &args::Much) -> Result<(), Problem> {
    much.form.tool.as_ref().map_or(Ok(()), |name| tool::refuse(call, name.as_deref()))
}

/// Sends text through the pager of differences.
pub fn page(call: &Call) {
    call.out.page(call.config.pager_of_diff());
}
