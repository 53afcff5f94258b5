//! Another place for the store, where its file system can't hold a run.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::surroundings::Surroundings;
use crate::error::{Error, shell_word};
use crate::fs::{AbsPath, Dir};
use crate::remedy::{Command, shell};
use crate::session::Store;
use crate::verb::desk::Desk;
use crate::verb::run::trial;

/// The command that names a store with which a run works, found by trying. Places that last come before those that go with the machine.
pub fn other(desk: &Desk, around: &Surroundings<'_>) -> Option<Command> {
    let place = places(around).into_iter().find(|place| works(desk, around, place))?;
    Some(shell(format_args!("export RECANT_STORE={}", shell_word(place.as_os_str().as_bytes()))))
}

fn places(around: &Surroundings<'_>) -> Vec<PathBuf> {
    let own = format!("recant-{}", rustix::process::geteuid().as_raw());
    let below = |place: &str| Some(Path::new(place).join(&own));
    let runtime = around.agents.named("XDG_RUNTIME_DIR").map(|place| place.as_path().join("recant"));
    [below("/var/tmp"), runtime, below("/tmp")].into_iter().flatten().collect()
}

/// Tries a run with a store beside `place`, which is removed again.
fn works(desk: &Desk, around: &Surroundings<'_>, place: &Path) -> bool {
    let Some(Ok(above)) = place.parent().map(Dir::open) else { return false };
    let name = format!(".recant-{}", std::process::id());
    let path = AbsPath::parse(above.path().join(&name).as_os_str().as_bytes());
    let tried = path.is_ok_and(|path| works_at(desk, around, &path).unwrap_or(false));
    // Nobody else has a store of this name.
    desk.fs.remove_all(above.at(name.as_bytes())).is_ok() && tried
}

fn works_at(desk: &Desk, around: &Surroundings<'_>, path: &AbsPath) -> Result<bool, Error> {
    let store = Store::create(&desk.fs, path)?;
    Ok(trial::held(desk, &store, around.usual.clone()).is_ok_and(|tried| tried.failed.is_none() && !tried.in_memory))
}
