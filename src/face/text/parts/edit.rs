//! A block in the person's editor: the lines that are left are taken, as with `e` of git-add(1).

use std::collections::BTreeSet;
use std::path::Path;

use crate::compare::{Block, Blocks};
use crate::error::{At, Error};
use crate::fs::{Dir, Fs};

const HELP: &str = "# To leave out a line with '-', make its sign a blank; to leave out one with '+', delete it.
# Nothing else may be changed. Lines that start with '#' do not count.
";

/// Lets a person edit a block. Returns the numbers of the lines that are taken; the inner error says, for the person, why what came back
/// is no part of the block.
///
/// # Errors
/// The file for the editor cannot be made, read or removed.
pub fn lines(fs: &Fs, blocks: &Blocks<'_>, block: &Block) -> Result<Result<BTreeSet<usize>, String>, Error> {
    let all: Vec<Vec<u8>> = signed(blocks, block).collect();
    let directory = Dir::open(&std::env::temp_dir())?;
    let name = format!("recant-{}-{}.diff", std::process::id(), crate::fs::now().ns).into_bytes();
    let at = directory.at(&name);
    let file = fs.create(at, 0o600)?;
    let edited = fs.write(&file, &[&all.concat(), HELP.as_bytes()].concat(), at).map_err(Error::from).and_then(|()| {
        let path = std::env::temp_dir().join(String::from_utf8_lossy(&name).as_ref());
        match edit(&path) {
            Err(why) => Ok(Err(why)),
            // An editor may have put another file there.
            Ok(()) => Ok(Ok(std::fs::read(&path).at("read", path.display())?)),
        }
    });
    fs.unlink_if_there(at)?;
    Ok(edited?.and_then(|bytes| chosen(&all, block, &bytes)))
}

/// The lines of a block behind their signs, each with an end.
fn signed(blocks: &Blocks<'_>, block: &Block) -> impl Iterator<Item = Vec<u8>> {
    let with = |sign: &'static [u8]| move |line: &&[u8]| [sign, line.strip_suffix(b"\n").unwrap_or(line), b"\n"].concat();
    blocks.removed(block).iter().map(with(b"-")).chain(blocks.added(block).iter().map(with(b"+"))).collect::<Vec<_>>().into_iter()
}

/// Opens a file in the person's editor, and waits for its end. The error says why nothing is to be taken of it.
pub fn edit(path: &Path) -> Result<(), String> {
    let editor = ["VISUAL", "EDITOR"].into_iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    let editor = editor.unwrap_or_else(|| "vi".into());
    let ended = crate::fs::command("sh").args(["-c", &format!("{editor} \"$1\""), "sh"]).arg(path).status();
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{editor}: {status}: nothing is taken of it")),
        Err(error) => Err(format!("{editor} cannot be started: {error}")),
    }
}

/// The numbers of the lines that an edited block still has.
fn chosen(all: &[Vec<u8>], block: &Block, edited: &[u8]) -> Result<BTreeSet<usize>, String> {
    let mut left = edited.split_inclusive(|byte| *byte == b'\n').filter(|line| !line.starts_with(b"#")).peekable();
    let same = |line: &[u8], other: &[u8]| line.strip_suffix(b"\n").unwrap_or(line) == other.strip_suffix(b"\n").unwrap_or(other);
    let mut chosen = BTreeSet::new();
    for (number, line) in (1..).zip(all) {
        if left.next_if(|next| same(next, line)).is_some() {
            chosen.insert(number);
        } else if number <= block.old.len() {
            let stays = [b" ", &line[1..]].concat();
            let why = || format!("line {number} of the block is missing: to leave it out, make its '-' a blank");
            left.next_if(|next| same(next, &stays)).ok_or_else(why)?;
        }
    }
    match left.next() {
        None => Ok(chosen),
        Some(line) => Err(format!("not a line of the block: {}", crate::fs::Shown(line.trim_ascii_end()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_left_out_as_git_has_it_and_anything_else_is_refused() {
        let all: Vec<Vec<u8>> = ["-a\n", "-b\n", "+A\n", "+B\n"].map(|line| line.as_bytes().to_vec()).to_vec();
        let block = Block { old: 0..2, new: 0..2 };
        for (edited, wanted) in [
            ("-a\n-b\n+A\n+B\n# help\n", Some(vec![1, 2, 3, 4])),
            (" a\n-b\n+B", Some(vec![2, 4])),
            (" a\n b\n", Some(vec![])),
            ("-b\n+A\n", None),
            ("-a\n-b\n+C\n", None),
            ("-a\n-b\n+B\n+A\n", None),
        ] {
            let found = chosen(&all, &block, edited.as_bytes()).ok();
            assert_eq!(found, wanted.map(|numbers| numbers.into_iter().collect()), "{edited}");
        }
    }
}
