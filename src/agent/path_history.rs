//! The turns that changed a path: `agents/turns/<key>/<n>.jsonl` of the store, where the key is that of the directory's snapshots.

use std::collections::BTreeSet;
use std::io::Read;

use super::turn::{Head, Turn, Wrote};
use super::turn_files::lines;
use crate::error::Error;
use crate::fs::{AbsPath, Dir};
use crate::snapshot::key;
use crate::tree::Mention;

/// A turn, with the paths asked for that it wrote.
#[derive(Debug)]
pub struct Touched {
    pub head: Head,
    /// The indices of the paths asked for that it wrote to.
    pub asked: BTreeSet<usize>,
    /// The number of paths that it wrote there.
    pub paths: u64,
}

const TURNS: &[u8] = b"agents/turns";

/// The turns that wrote to one of these paths or below it, in no order.
///
/// # Errors
/// A directory of turns cannot be read.
pub fn touched(store: &Dir, paths: &[Mention]) -> Result<Vec<Touched>, Error> {
    let all = match store.open_below(TURNS) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        all => all?,
    };
    // Those above the paths are known by their keys.
    let above: Vec<(String, AbsPath)> = paths
        .iter()
        .flat_map(|path| std::iter::successors(Some(path.path().clone()), AbsPath::parent))
        .map(|directory| (key(&directory), directory))
        .collect();
    let mut found = Vec::new();
    for name in all.names()? {
        let Ok(dir) = all.at(&name).open_dir() else { continue };
        let known = above.iter().find(|(key, _)| key.as_bytes() == name).map(|(_, directory)| directory);
        let mut mentions: Option<Vec<(usize, Mention)>> = known.map(|directory| within(directory, paths));
        for file in dir.names()?.iter().filter(|name| name.ends_with(b".jsonl")) {
            let mut bytes = Vec::new();
            let Ok(mut opened) = dir.at(file).open_file() else { continue };
            if opened.read_to_end(&mut bytes).is_err() {
                continue;
            }
            let mentions = match &mut mentions {
                Some(mentions) => mentions,
                // Of another directory: only if that lies below a path.
                None => match head(&bytes) {
                    Some(head) => mentions.insert(within(&head.directory, paths)),
                    None => continue,
                },
            };
            if mentions.is_empty() {
                break;
            }
            found.extend(of_turn(&bytes, mentions));
        }
    }
    Ok(found)
}

/// The paths as a turn of the directory has them.
fn within(directory: &AbsPath, paths: &[Mention]) -> Vec<(usize, Mention)> {
    let inner = |path: &AbsPath| match path.below(directory) {
        None if !directory.is_under(path) => None,
        below => AbsPath::parse([b"/", below.unwrap_or_default()].concat()).ok(),
    };
    paths.iter().enumerate().filter_map(|(n, path)| Some((n, Mention::of(&inner(path.path())?)))).collect()
}

fn head(bytes: &[u8]) -> Option<Head> {
    Turn::of(lines(bytes).take(1)).map(|turn| turn.head)
}

fn of_turn(bytes: &[u8], paths: &[(usize, Mention)]) -> Option<Touched> {
    if !paths.iter().any(|(_, path)| path.is_in(bytes)) {
        return None;
    }
    let turn = Turn::of(lines(bytes))?;
    let of = |wrote: &Wrote| paths.iter().find(|(_, path)| wrote.path.is_under(path.path())).map(|(n, _)| *n);
    let asked: Vec<usize> = turn.own().filter_map(of).collect();
    let (head, paths) = (turn.head, asked.len() as u64);
    (paths > 0).then(|| Touched { head, paths, asked: asked.into_iter().collect() })
}
