//! Mounts in a directory that the command renamed or removed. On the real tree that directory cannot go while something is mounted in it.
//! So changes in the mount and the directory's own change exclude each other.

use super::upper_reader::UpperReader;
use crate::fs::Shown;
use crate::session::{Place, fits_under};

impl UpperReader<'_> {
    /// Drops the changes in such mounts, and says where the files written there lie.
    pub fn drop_below_gone(&mut self) {
        let mut above = Vec::new();
        let mut mounts: Vec<&Place> = Vec::new();
        let places = self.facts.places;
        self.list.retain(|change| {
            // The names of one place are those of one overlay: they fit.
            let mount = Place::innermost(places, &change.path).filter(|place| place.path.depth() > 0);
            let fits = fits_under(&mut above, change).is_ok();
            let Some(mount) = mount.filter(|_| !fits) else { return true };
            if mounts.last().is_none_or(|last| last.k != mount.k) {
                mounts.push(mount);
            }
            false
        });
        self.times.retain(|time| !mounts.iter().any(|mount| time.path.is_under(&mount.path)));
        let said = mounts.iter().map(|mount| {
            format!(
                "{}: the command renamed or removed a directory above this mount: its changes in the mount are not held; {}",
                mount.path,
                self.where_it_lies(mount)
            )
        });
        let said: Vec<String> = said.collect();
        self.warnings.extend(said);
    }

    fn where_it_lies(&self, mount: &Place) -> String {
        let upper = mount.upper(self.facts.step, b"");
        match upper.filter(|_| !self.facts.in_memory) {
            Some(upper) => format!("they lie in {}/{}", self.facts.held.path().display(), Shown(&upper)),
            None => "they lay in memory and are lost".into(),
        }
    }
}
