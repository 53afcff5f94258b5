//! `session import` under power cuts: cut at each of its syncs, the session is there whole, or not at all and comes with the same stream.

use super::common::Manifest;
use super::record::Record;
use super::{Caught, Cutting, Scene, Size, timeless};

struct Importing<'s> {
    scene: &'s Scene,
    stream: Vec<u8>,
    /// The tree once the session is committed.
    wanted: Manifest,
    whole: Record,
}

impl<'s> Importing<'s> {
    /// The scene's session is exported, and not in the store any more.
    fn new(scene: &'s Scene) -> Self {
        let stream = scene.world.call(["session", "export", &scene.id]).run().ok().out;
        scene.world.call(["commit", &scene.id]).run().ok();
        let wanted = timeless(scene.world.manifest());
        scene.world.call(["rollback", &scene.id]).run().ok();
        scene.world.call(["prune", "--sessions", "-y", &scene.id]).run().ok();
        scene.keep();
        let mut importing = Self { scene, stream, wanted, whole: Record::default() };
        importing.whole = importing.run(None);
        importing
    }
}

impl Cutting for Importing<'_> {
    fn name(&self) -> String {
        "import".into()
    }

    fn on(&self) -> (&Scene, &Record) {
        (self.scene, &self.whole)
    }

    fn run(&self, until: Option<usize>) -> Record {
        self.scene.reset();
        self.scene.record_with(&["session", "import"], &self.stream, until)
    }

    fn judge(&self, at_end: bool, _: u64) -> Result<(), String> {
        let world = &self.scene.world;
        let there = world.call(["show", &self.scene.id]).run().status == 0;
        if at_end && !there {
            return Err("it was imported, and is not there".into());
        }
        if !there {
            let again = world.call(["session", "import"]).stdin(&self.stream).run();
            if again.status != 0 {
                return Err(format!("the same stream again: {again}"));
            }
        }
        let said = world.call(["commit", &self.scene.id]).run();
        let difference = self.wanted.difference(&timeless(world.manifest()));
        if said.status == 0 && difference.is_empty() { Ok(()) } else { Err(format!("committed: {said}\n{difference}")) }
    }
}

fn each(mut test: impl FnMut(&Importing<'_>)) {
    for size in [Size::Few, Size::Many] {
        test(&Importing::new(&Scene::new(size, false).expect("one file system")));
    }
}

#[test]
fn after_a_power_cut_a_session_that_was_imported_is_whole_or_not_there() {
    each(|importing| importing.sweep(2));
}

#[test]
#[ignore = "long: it proves comments on syncs, not the product"]
fn each_sync_of_an_import_is_needed_or_says_why_nothing_is_caught_here() {
    let mut caught = Caught::default();
    each(|importing| {
        ["src/moving/", "src/session/incoming.rs"].iter().for_each(|below| importing.leave_each_out(&mut caught, below));
    });
    caught.assert_needed();
}
