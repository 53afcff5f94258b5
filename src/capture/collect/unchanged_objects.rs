//! Objects of an upper that are no change: a file that was written and is again equal, a whiteout over a name that somebody else removed too.
//! They go, as a further command would see them in place of what somebody puts on the tree.

use std::io::ErrorKind;

use super::facts::Facts;
use crate::capture::place::pieces::parted;
use crate::error::Error;
use crate::fs::{AbsPath, Fs, Sort};
use crate::session::Place;

/// Removes them. Their directories keep their times.
pub fn clear(fs: &Fs, facts: &Facts<'_>, paths: &[AbsPath]) -> Result<(), Error> {
    for path in paths {
        let place = Place::innermost(facts.places, path);
        let Some(upper) = place.and_then(|place| place.upper(facts.step, path.below(&place.path)?)) else { continue };
        let (above, name) = parted(&upper);
        let above = match facts.held.open_below(above) {
            // It was removed with a directory above, or before this was cut off last time.
            Err(error) if error.leads_nowhere() => continue,
            above => above?,
        };
        let at = above.at(name);
        if at.stat()?.is_some_and(|stat| stat.sort != Sort::Directory) {
            let mtime = above.stat()?.mtime;
            match fs.unlink(at) {
                // Its owner closed the directory for writing. It stays, and what somebody does there is a conflict at commit.
                Err(error) if error.kind() == ErrorKind::PermissionDenied => continue,
                removed => removed?,
            }
            fs.set_mtime(above.at(b"."), mtime)?;
        }
    }
    Ok(())
}
