//! `--patch`: asks of each block, of metadata and of each change that is whole, whether it is taken. The keys are those of git-add(1).

use std::collections::{BTreeMap, BTreeSet};

use super::{block, edit};
use crate::compare::blocks::choice::Part;
use crate::compare::{Block, Blocks, CHANGED, Choice, Entries, Sources, Taken, Text};
use crate::error::Error;
use crate::face::out::Out;
use crate::fs::Fs;
use crate::session::Change;
use crate::verb::error::patch_unasked;
use crate::verb::{Choosing, Selection, Want};

/// The keys, and what they do; the blocks' own ones last.
const HELP: [(&str, &str); 8] = [
    ("y", "take it"),
    ("n", "leave it"),
    ("a", "take it, and all that follows in this file"),
    ("d", "leave it, and all that follows in this file"),
    ("q", "leave it, and all that follows"),
    ("?", "explain the keys"),
    ("s", "ask line by line"),
    ("e", "edit the block: the lines that are left are taken"),
];

/// The answer of a person about one thing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    Yes,
    No,
    AllHere,
    NoneHere,
    Quit,
    Lines,
    Edit,
}

/// One who asks: what is answered for all that follows is remembered.
struct Asking<'a> {
    out: &'a Out,
    fs: &'a Fs,
    verb: &'static str,
    /// The answer for the rest of this file.
    here: Option<bool>,
    quit: bool,
}

/// Asks what is taken of these changes.
///
/// # Errors
/// There is no terminal (2); a content cannot be read.
pub fn ask(out: &Out, fs: &Fs, choosing: &Choosing<'_>, sources: &mut Sources<'_>) -> Result<Selection, Error> {
    if !out.is_text() {
        return Err(patch_unasked());
    }
    let Choosing { want, changes, sides, wanted } = choosing;
    let verb = match want {
        Want::RollBack => "Take back",
        Want::Discard => "Discard",
        _ => "Commit",
    };
    let mut asking = Asking { out, fs, verb, here: None, quit: false };
    let mut selection = Selection::new();
    for i in wanted {
        if asking.quit {
            break;
        }
        let change = &changes.list[*i];
        asking.here = None;
        let taken = match Entries::of(change, sides[*i], sources)? {
            Entries::Whole(why) => asking.whole(change, why).then_some(Taken::Whole),
            Entries::Changed => {
                asking.out.warn(format_args!("{}: {CHANGED}; it is passed over", change.path));
                None
            }
            Entries::Text(text) => asking.text(change, &text)?,
        };
        selection.extend(taken.map(|taken| (*i, taken)));
    }
    Ok(selection)
}

impl Asking<'_> {
    fn whole(&mut self, change: &Change, why: &str) -> bool {
        let path = self.out.shown(&change.path);
        block::head(self.out, &path, &block::whole(change, why));
        matches!(self.answer(&path, ""), Answer::Yes | Answer::AllHere)
    }

    fn text(&mut self, change: &Change, text: &Text) -> Result<Option<Taken>, Error> {
        let path = self.out.shown(&change.path);
        let blocks = text.blocks();
        let count = blocks.list().len();
        let mut parts = BTreeMap::new();
        for (n, block) in (1..).zip(blocks.list()) {
            if self.quit {
                break;
            }
            if self.here.is_none() {
                block::head(self.out, &format!("{path}:{n}"), &block::place(block));
                block::lines(self.out, &blocks, block);
            }
            let part = self.block(&format!("block {n} of {count} of {path}"), &blocks, block)?;
            parts.extend(part.map(|part| (n, part)));
        }
        let mut meta = false;
        if !self.quit && !text.meta.is_empty() {
            if self.here.is_none() {
                block::metadata(self.out, &path, text);
            }
            meta = matches!(self.answer(&format!("the metadata of {path}"), ""), Answer::Yes | Answer::AllHere);
        }
        Ok(text.taken(Choice::from_iter(parts), meta))
    }

    fn block(&mut self, what: &str, blocks: &Blocks<'_>, block: &Block) -> Result<Option<Part>, Error> {
        loop {
            let lines = match self.answer(what, ",s,e") {
                Answer::Yes | Answer::AllHere => return Ok(Some(Part::All)),
                Answer::No | Answer::NoneHere | Answer::Quit => return Ok(None),
                Answer::Lines => self.lines(blocks, block),
                Answer::Edit => match edit::lines(self.fs, blocks, block)? {
                    Ok(lines) => lines,
                    Err(why) => {
                        self.out.say(why);
                        continue;
                    }
                },
            };
            return Ok((!lines.is_empty()).then_some(Part::Lines(lines)));
        }
    }

    /// Asks of each line of a block.
    fn lines(&mut self, blocks: &Blocks<'_>, block: &Block) -> BTreeSet<usize> {
        let mut chosen = BTreeSet::new();
        let before = self.here;
        for line in 1..=block.lines() {
            if self.quit {
                break;
            }
            if self.here.is_none() {
                block::line(self.out, blocks, block, line);
            }
            if matches!(self.answer(&format!("line {line} of {}", block.lines()), ""), Answer::Yes | Answer::AllHere) {
                chosen.insert(line);
            }
        }
        // What was said for all that follows was said of the lines.
        self.here = before;
        chosen
    }

    /// Asks until there is an answer that fits. `more`: further keys.
    fn answer(&mut self, what: &str, more: &str) -> Answer {
        if let Some(all) = self.here {
            return if all { Answer::AllHere } else { Answer::NoneHere };
        }
        loop {
            self.out.prompt(&format!("{} {what} [y,n,a,d,q{more},?]?", self.verb));
            let mut typed = String::new();
            // If the question or the answer is lost, nothing more is taken.
            let lost = std::io::stdin().read_line(&mut typed).is_ok_and(|read| read == 0);
            let answer = match typed.trim() {
                "y" => Answer::Yes,
                "n" => Answer::No,
                "a" => Answer::AllHere,
                "d" => Answer::NoneHere,
                "q" => Answer::Quit,
                "s" if !more.is_empty() => Answer::Lines,
                "e" if !more.is_empty() => Answer::Edit,
                _ if lost => Answer::Quit,
                _ => {
                    let keys = HELP.len() - if more.is_empty() { 2 } else { 0 };
                    HELP[..keys].iter().for_each(|(key, what)| self.out.say(format_args!("{key}  {what}")));
                    continue;
                }
            };
            match answer {
                Answer::AllHere => self.here = Some(true),
                Answer::NoneHere => self.here = Some(false),
                Answer::Quit => self.quit = true,
                _ => {}
            }
            return answer;
        }
    }
}
