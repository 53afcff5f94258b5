//! Paths told together: a directory in place of all that lies in it.

use crate::fs::AbsPath;
use crate::session::Changes;

/// The most paths that are told.
const MOST: usize = 8;

/// The places of changes that were decided about, in path order: a directory stands for what lies in it, if nothing of `others` does, nor
/// `cwd`, in which the session was begun. The first ones, if there are many.
pub fn together<'p>(decided: impl Iterator<Item = &'p AbsPath>, others: &Changes, cwd: Option<&AbsPath>) -> Vec<AbsPath> {
    let mut decided: Vec<&AbsPath> = decided.collect();
    decided.sort();
    let is_below = |directory: &AbsPath| directory.depth() > 0 && cwd.is_none_or(|cwd| !cwd.is_under(directory));
    let stands = |directory: &AbsPath| is_below(directory) && count_under(&decided, directory) > 1;
    let mut told: Vec<AbsPath> = Vec::new();
    for path in &decided {
        if told.len() > MOST || told.last().is_some_and(|last| path.is_under(last)) {
            continue;
        }
        let is_all = |directory: &AbsPath| others.under(directory).is_empty();
        let place = path.ancestors().take_while(is_all).filter(stands).last();
        told.push(place.unwrap_or_else(|| AbsPath::clone(path)));
    }
    told.truncate(MOST);
    told
}

fn count_under(sorted: &[&AbsPath], directory: &AbsPath) -> usize {
    let start = sorted.partition_point(|path| *path < directory);
    sorted[start..].partition_point(|path| path.is_under(directory))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Before, Change};

    fn told(decided: &[&str], others: &[&str]) -> Vec<String> {
        let path = |text: &&str| AbsPath::parse(text).unwrap();
        let decided: Vec<AbsPath> = decided.iter().map(path).collect();
        let change = |text: &&str| Change::new(0, path(text), Before { object: None, print: None }, None);
        let mut others = Changes { list: others.iter().map(change).collect(), ..Changes::default() };
        others.list.sort_by(|a, b| a.path.cmp(&b.path));
        together(decided.iter(), &others, Some(&path(&"/p"))).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_directory_is_told_where_nothing_else_lies_in_it() {
        assert_eq!(told(&["/p/tests/a", "/p/tests/b/c"], &["/p/src/a"]), ["/p/tests"]);
        assert_eq!(told(&["/p/tests/a/b", "/p/tests/c"], &["/p/src/a"]), ["/p/tests"]);
        assert_eq!(told(&["/p/tests/a", "/p/tests/b"], &["/p/tests/c"]), ["/p/tests/a", "/p/tests/b"]);
        assert_eq!(told(&["/p/tests/a"], &["/p/src/a"]), ["/p/tests/a"], "one path is told itself");
        assert_eq!(told(&["/p/d", "/p/d/x", "/p/e"], &["/p/f"]), ["/p/d", "/p/e"]);
        assert_eq!(told(&["/p/d/x", "/p/d/y", "/p/e"], &[]), ["/p/d", "/p/e"], "not the project");
        assert_eq!(told(&["/p/d/x", "/p/d/y"], &[]), ["/p/d"]);
        // Blocks of a file left, and the rest is held.
        assert_eq!(told(&["/p/d/x", "/p/d/y"], &["/p/d/x", "/p/e"]), ["/p/d/x", "/p/d/y"]);
        let many: Vec<String> = (10..30).map(|n| format!("/p/{n}")).collect();
        assert_eq!(told(&many.iter().map(|path| &**path).collect::<Vec<_>>(), &["/p/x"]).len(), MOST);
    }
}
