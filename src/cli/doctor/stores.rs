//! Other places for the store, where its file system can't hold a run.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, shell_word};
use crate::face::call::Call;
use crate::face::text::run::usual_passes;
use crate::fs::dir::Dir;
use crate::fs::path::AbsPath;
use crate::remedy::{Command, Remedy, shell};
use crate::session::store::Store;
use crate::verb::run::trial;

/// The command that names a store with which a run works, found by trying. Places that last come before those that go with the machine.
pub fn other(call: &Call) -> Option<Command> {
    let place = places().into_iter().find(|place| works(call, place))?;
    Some(shell(format_args!("export RECANT_STORE={}", shell_word(place.as_os_str().as_bytes()))))
}

/// The way out where there is none: a container can be given a place that is not on its own disk.
pub fn volume() -> Remedy {
    "put the store on another file system; of a container: " + shell("-v recant:/recant -e RECANT_STORE=/recant")
}

fn places() -> Vec<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|path| Path::new(path).is_absolute());
    let own = format!("recant-{}", rustix::process::geteuid().as_raw());
    let below = |place: &str| Some(Path::new(place).join(&own));
    let runtime = runtime.map(|place| PathBuf::from(place).join("recant"));
    [below("/var/tmp"), runtime, below("/tmp")].into_iter().flatten().collect()
}

/// Tries a run with a store beside `place`, which is removed again.
fn works(call: &Call, place: &Path) -> bool {
    let Some(Ok(above)) = place.parent().map(Dir::open) else { return false };
    let name = format!(".recant-{}", std::process::id());
    let tried =
        AbsPath::parse(above.path().join(&name).as_os_str().as_bytes()).is_ok_and(|path| works_at(call, &path).unwrap_or(false));
    // Nobody else has a store of this name.
    call.fs.remove_all(above.at(name.as_bytes())).is_ok() && tried
}

fn works_at(call: &Call, path: &AbsPath) -> Result<bool, Error> {
    let store = Store::create(&call.fs, path)?;
    Ok(trial::held(call, &store, usual_passes()).is_ok_and(|tried| tried.failed.is_none() && !tried.in_memory))
}
