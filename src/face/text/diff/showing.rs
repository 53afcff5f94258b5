//! Shows changes to people, one after the other: as a patch, as counts, or in another program.

use std::fmt::Display;

use super::html::{self, Of, Page};
use super::stat::{self, Together};
use super::tool::{self, Held, Tool};
use crate::compare::{Form, View, Words, differs_in_space_alone};
use crate::error::Error;
use crate::face::call::Call;
use crate::face::text::patch;
use crate::face::{args, figures};
use crate::verb::HeldEdited;

/// Changes that are being shown, and what is left to be told at the end.
struct Showing<'c> {
    call: &'c Call,
    form: Form,
    place: Place<'c>,
    together: Together,
    has_begun: bool,
    /// Files that differ in white space alone, and are not shown.
    spaces: u64,
    /// Changes that a commit or rollback would refuse.
    conflicts: u64,
}

/// The place where changes are shown.
enum Place<'c> {
    Patch,
    Counts(Vec<stat::Row>),
    Page(Box<Page<'c>>),
    Tool(Box<Tool<'c>>),
}

impl<'c> Showing<'c> {
    /// Opens a pager, makes a directory for a tool, or begins a page; `of` tells what that is of.
    fn begin(
        call: &'c Call,
        (much, together, held): (&args::Much, Together, Option<Held>),
        of: impl FnOnce() -> Result<Of, Error>,
    ) -> Result<Self, Error> {
        let args::Form { word_diff, unified, ignore_space, tool } = &much.form;
        let words = match word_diff {
            true => Words::Inline,
            false if call.out.is_colored() => Words::Marked,
            false => Words::Unmarked,
        };
        let context = unified.and_then(|lines| usize::try_from(lines).ok()).unwrap_or(Form::default().context);
        let form = Form { context, ignore_space: *ignore_space, words };
        if tool.is_none() && !much.html {
            page(call);
        }
        let place = match tool {
            Some(name) => Place::Tool(Box::new(Tool::begin(call, name.as_deref(), held)?)),
            None if much.html => Place::Page(Box::new(Page::begin(call, form, of()?))),
            None if much.stat => Place::Counts(Vec::new()),
            None => Place::Patch,
        };
        Ok(Self { call, form, place, together, has_begun: false, spaces: 0, conflicts: 0 })
    }

    /// True if remarks and renames are shown.
    fn is_patch(&self) -> bool {
        matches!(self.place, Place::Patch | Place::Page(_))
    }

    fn add(&mut self, view: &View<'_>) -> Result<(), Error> {
        self.conflicts += u64::from(view.conflict);
        if self.form.ignore_space && differs_in_space_alone(view) {
            self.spaces += 1;
            return Ok(());
        }
        match &mut self.place {
            Place::Tool(tool) => tool.add(view)?,
            Place::Page(page) => return page.add(view),
            Place::Counts(rows) => rows.push(stat::row(self.call, view, self.form)),
            Place::Patch => patch::print(&self.call.out, view, self.form),
        }
        // The others may take a while.
        if !std::mem::replace(&mut self.has_begun, true) {
            self.call.out.flush();
        }
        Ok(())
    }

    /// Puts on a page what has to be minded, with its word.
    fn note(&mut self, word: &str, text: impl Display) {
        if let Place::Page(page) = &mut self.place {
            page.note(word, text.to_string());
        }
    }

    /// Shows what waited for the last change. `again` is this call with other options.
    fn end(mut self, again: impl Fn(&str) -> String) -> Result<(), Error> {
        let differ = if self.spaces == 1 { "differs" } else { "differ" };
        let spaces = format!("{} {differ} in white space alone", figures::count(self.spaces, "file"));
        if self.spaces > 0 {
            self.note("not shown", &spaces);
        }
        match self.place {
            Place::Page(page) => page.end()?,
            Place::Tool(tool) => {
                if let Some(edited) = tool.run(&again(""))? {
                    self.call.out.note(tool::edited(&self.call.out, &edited));
                }
            }
            Place::Counts(rows) => stat::table(self.call, rows, self.together, &again(" --stat -v")),
            Place::Patch => {}
        }
        if self.spaces > 0 {
            self.call.out.note(spaces);
        }
        Ok(())
    }
}

/// Shows a change. Returns false once nobody reads any more.
pub type Show<'s> = dyn FnMut(&View<'_>) -> Result<bool, Error> + 's;

/// Opens in the program of the settings what `each` passes on; `held` may be written to. `patch` is the command for what that cannot show.
/// Returns what was written.
///
/// # Errors
/// No program is named, or it cannot be run; those of `each`.
pub fn in_tool(
    call: &Call,
    held: Option<Held>,
    each: impl FnOnce(&mut Show<'_>) -> Result<u64, Error>,
    patch: &str,
) -> Result<Option<HeldEdited>, Error> {
    tool::refuse(call, None)?;
    let mut tool = Tool::begin(call, None, held)?;
    each(&mut |view| tool.add(view).map(|()| true))?;
    tool.run(patch)
}

/// Shows all changes that `each` passes on, told whether remarks and renames are shown; it returns the number of those that are not listed.
/// `together`: what counts tell together beside that; `held`: what a tool may write to. `of` tells what a page is of, `again` is this call with other options. Returns the number of changes that a commit or rollback would
/// refuse.
///
/// # Errors
/// Those of `each`; a page or a tool cannot be made.
pub fn all(
    call: &Call,
    shown: (&args::Much, Together, Option<Held>),
    of: impl FnOnce() -> Result<Of, Error>,
    each: impl FnOnce(bool, &mut Show<'_>) -> Result<u64, Error>,
    again: impl Fn(&str) -> String,
) -> Result<u64, Error> {
    let mut showing = Showing::begin(call, shown, of)?;
    if matches!(showing.place, Place::Patch) {
        showing.together.remarks.iter().for_each(|text| patch::remark(&call.out, text));
    }
    let times = each(showing.is_patch(), &mut |view| {
        showing.add(view)?;
        Ok(!call.out.is_closed())
    })?;
    let conflicts = showing.conflicts;
    let folded = times_folded(times);
    if times > 0 {
        showing.note("not listed", &folded);
    }
    showing.end(again)?;
    if times > 0 {
        call.out.note(folded);
    }
    Ok(conflicts)
}

/// The words for changes that are not listed.
fn times_folded(times: u64) -> String {
    format!("{} of the mtime alone (--all lists them)", figures::count(times, "change"))
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
