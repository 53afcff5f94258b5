//! Times of files that go back: make, cargo and ninja build anew what is older than its sources, so that a source that goes back with its old
//! time would leave in place what was built from what the agent wrote. tsc, go and bundlers look at the content.

use super::project_walk::Look;
use crate::fs::{AbsPath, Dir, Sort, Time};
use crate::snapshot::{Compared, Difference, whole};
use crate::tree::State;

/// A directory in which something was built that is newer than sources beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    pub path: AbsPath,
    /// The number of files beside it that get the present time.
    pub touched: u64,
}

/// The most objects in a directory that are asked for their times.
const MOST: usize = 5_000;

/// Gives the present time to the files that go back beside newer built directories, and returns these. Beside: in the directory that one lies
/// in, or deeper.
pub fn build_anew(compared: &mut Compared, now: &Look, directory: &AbsPath) -> Vec<Built> {
    let mut found = Vec::new();
    for path in now.built() {
        let Some(beside) = path.parent() else { continue };
        let is_beside =
            |d: &&mut Difference| d.path.is_under(&beside) && d.then.as_ref().is_some_and(State::is_file) && !d.is_metadata();
        let sources: Vec<&mut Difference> = compared.differences.iter_mut().filter(is_beside).collect();
        let Some(newest) = whole(directory, path).ok().filter(|_| !sources.is_empty()).and_then(|path| newest(&path)) else {
            continue;
        };
        let mut touched = 0;
        for state in sources.into_iter().filter_map(|d| d.then.as_mut()).filter(|state| state.meta.mtime < newest) {
            state.meta.mtime = crate::fs::now();
            touched += 1;
        }
        if touched > 0 {
            found.push(Built { path: path.clone(), touched });
        }
    }
    found
}

/// The latest time of a file in a directory, as far as it is looked for.
fn newest(path: &AbsPath) -> Option<Time> {
    let (mut waiting, mut newest, mut left) = (vec![Dir::open(path.as_path()).ok()?], None, MOST);
    while let Some(dir) = waiting.pop() {
        for name in dir.names().unwrap_or_default() {
            left = match left.checked_sub(1) {
                Some(left) => left,
                None => return newest,
            };
            match dir.at(&name).stat() {
                Ok(Some(stat)) if stat.sort == Sort::Directory => waiting.extend(dir.at(&name).open_dir()),
                Ok(Some(stat)) => newest = newest.max(Some(stat.mtime)),
                _ => {}
            }
        }
    }
    newest
}
