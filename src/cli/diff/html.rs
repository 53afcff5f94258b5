//! `diff --html`: one page of all changes, in a file or on standard output.
//!
//! The head of a page needs the counts of all of them. So the files are spooled as they are read, and only what is
//! kept of each ([`Entry`]) is in memory.

use std::fs::File;
use std::io::BufRead;
use std::path::Path;

use super::super::problem::Problem;
use super::super::{Call, args, text};
use super::spool::Spool;
use crate::diff::html::file::{self, Common, Entry};
use crate::diff::html::page::{self, About};
use crate::diff::patch::Form;
use crate::diff::view::View;
use crate::error::{At, Kind, command};
use crate::fs::dir::{Dir, Entry as Name, Sort};
use crate::fs::interrupt::{self, Asked};
use crate::fs::path::Shown;

/// The subject of a page, and what its files have in common.
#[derive(Default)]
pub struct Of {
    /// For what stands above the files.
    pub about: About,
    /// For the files.
    pub common: Common,
}

/// A page that is being made.
pub struct Page<'c> {
    call: &'c Call,
    output: Option<Output>,
    of: Of,
    files: Spool<'c>,
    entries: Vec<Entry>,
}

impl<'c> Page<'c> {
    /// Begins a page. Errors: the file for it cannot be one.
    pub fn begin(call: &'c Call, much: &args::Much, form: Form, mut of: Of) -> Result<Self, Problem> {
        let output = much.output.as_deref().map(Output::find).transpose()?;
        of.common.form = form;
        Ok(Self { call, output, of, files: Spool::new(&call.fs), entries: Vec::new() })
    }

    /// Adds a change.
    pub fn add(&mut self, view: &View<'_>) -> Result<(), Problem> {
        let mut part = String::new();
        self.entries.push(file::write(&mut part, &self.of.common, view, self.entries.len() + 1));
        self.files.add(part.as_bytes())
    }

    /// Adds what has to be minded, with its word.
    pub fn note(&mut self, word: &str, text: String) {
        self.of.about.notes.push((word.into(), text));
    }

    /// Writes the page out.
    pub fn end(self) -> Result<(), Problem> {
        let Self { call, output, of, files, entries } = self;
        let (head, foot) = (page::head(&of.about, &entries), page::foot(&of.about, entries.is_empty()));
        let Some(output) = output else {
            call.out.bytes(head.as_bytes());
            each_part(&files, &mut |part| {
                call.out.bytes(part);
                Ok(!call.out.is_closed())
            })?;
            call.out.bytes(foot.as_bytes());
            return Ok(());
        };
        let bytes = output.write(call, |put| {
            put(head.as_bytes())?;
            each_part(&files, &mut |part| put(part).map(|()| true))?;
            put(foot.as_bytes())
        })?;
        let paths = text::count(entries.len() as u64, "path");
        call.out.note(format_args!("{}: a page of {paths}, {}", output.shown(), text::bytes(bytes)));
        Ok(())
    }
}

/// Passes what was spooled to `take`, until that returns false.
fn each_part(files: &Spool<'_>, take: &mut dyn FnMut(&[u8]) -> Result<bool, Problem>) -> Result<(), Problem> {
    let mut reader = files.read();
    loop {
        let part = reader.fill_buf().at("read", "the page")?;
        let length = part.len();
        if length == 0 || !take(part)? {
            return Ok(());
        }
        reader.consume(length);
    }
}

/// The file for a page.
struct Output {
    dir: Dir,
    name: Vec<u8>,
    /// The mode of the file that is replaced.
    mode: Option<u32>,
}

impl Output {
    fn find(path: &Path) -> Result<Self, Problem> {
        let shown = Shown(path.as_os_str().as_encoded_bytes()).to_string();
        let refused = |why: &str| Problem::refused(format!("{shown}: {why}")).remedy("name a file: -o FILE");
        let ends_in_slash = path.as_os_str().as_encoded_bytes().ends_with(b"/");
        let absolute = std::path::absolute(path).at("find", &shown)?;
        let (Some(above), Some(name)) = (absolute.parent(), absolute.file_name().filter(|_| !ends_in_slash)) else {
            return Err(refused("it is a directory"));
        };
        let (dir, name) = (Dir::open(above)?, name.as_encoded_bytes().to_vec());
        let there = dir.at(&name).stat()?;
        match there.map(|stat| stat.sort) {
            Some(Sort::Directory) => Err(refused("it is a directory")),
            Some(Sort::Symlink) => Err(refused("it is a link: only a file is replaced")),
            Some(sort) if sort != Sort::File => Err(refused("it is no regular file")),
            _ => Ok(Self { dir, name, mode: there.map(|stat| stat.mode & 0o777) }),
        }
    }

    fn shown(&self) -> String {
        Shown(self.dir.path().join(String::from_utf8_lossy(&self.name).as_ref()).as_os_str().as_encoded_bytes()).to_string()
    }

    /// Writes the file as a whole: it is the old one until it is the new one. Returns its size.
    fn write(&self, call: &Call, fill: impl FnOnce(&mut Put<'_>) -> Result<(), Problem>) -> Result<u64, Problem> {
        // A signal ends it, but not before the temporary file is removed.
        let _noting = interrupt::note(Asked::Stops);
        let temporary = format!(".recant-{}-{}", std::process::id(), crate::fs::now().ns).into_bytes();
        let (temporary, at) = (self.dir.at(&temporary), self.dir.at(&self.name));
        let written = self.make(call, temporary, fill).and_then(|bytes| {
            call.fs.rename_over(temporary, at)?;
            Ok(bytes)
        });
        if written.is_err() {
            // The error is that of the page.
            drop(call.fs.unlink_if_there(temporary));
        }
        written
    }

    fn make(&self, call: &Call, at: Name<'_>, fill: impl FnOnce(&mut Put<'_>) -> Result<(), Problem>) -> Result<u64, Problem> {
        let file: File = call.fs.create(at, self.mode.map_or(0o666, |mode| mode | 0o200))?;
        let mut bytes = 0;
        fill(&mut |part| {
            interrupt::check().at("write", "the page")?;
            bytes += part.len() as u64;
            Ok(call.fs.write(&file, part, at)?)
        })?;
        if let Some(mode) = self.mode {
            call.fs.set_mode_of(&file, mode, at)?;
        }
        // D1: a power cut must not leave the name on an empty file in place of the page that was there.
        call.fs.sync(&file, at)?;
        Ok(bytes)
    }
}

/// Writes a part of a page.
type Put<'p> = dyn FnMut(&[u8]) -> Result<(), Problem> + 'p;

/// Refuses a call for which no page can be made.
pub fn refuse(call: &Call, much: &args::Much) -> Result<(), Problem> {
    let usage = |message: &str, remedy: String| Err(Problem::new(Kind::Usage, message).remedy(remedy));
    if !call.out.is_text() {
        return usage("a page is no JSON", command("diff --json shows the changes"));
    }
    match &much.output {
        Some(_) if call.is_far => {
            usage("with -H no file is written on the other machine", "redirect the page to a file here: --html > FILE".into())
        }
        None if call.out.is_for_people() => {
            usage("a page is nothing for a terminal", "name a file for it: --html -o FILE".into())
        }
        _ => Ok(()),
    }
}
