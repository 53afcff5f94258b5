//! The terminals of a run: a /dev/pts of its own for new ones, which also shows the caller's, by the names that they have outside.
//!
//! A clone of the real /dev/pts would do for root alone: on most machines its `ptmx` is closed to users (mode 000), and a bind mount of the
//! open one in /dev finds no /dev/pts beside it. The command does not need the caller's other terminals.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};

use super::attach::{attach_to, clone_at};
use crate::capture::place::layout::Route;
use crate::capture::place::mount_plan::Plan;
use crate::capture::run::raw_calls;
use crate::error::{At, IoError};
use crate::fs::stat_of;

/// The directory of terminals: pts(4).
const PTS: &str = "/dev/pts";

/// Terminals above this number are not shown by name, as all numbers below have to be taken for it.
const HIGHEST: usize = 1000;

/// The contents of a private /dev/pts.
pub struct Terminals {
    /// The caller's terminals on descriptors 0, 1 and 2, by number.
    shown: Vec<(usize, OwnedFd)>,
    /// The mode and group of new terminals, as outside.
    options: Vec<(String, String)>,
}

impl Terminals {
    /// Takes the terminals from the real /dev/pts, before all devices are switched off.
    pub fn take(plan: &Plan) -> Result<Self, IoError> {
        let mut shown: Vec<(usize, OwnedFd)> = Vec::new();
        for fd in 0..3 {
            let Some((number, path)) = number_of(fd).filter(|(number, _)| shown.iter().all(|(other, _)| other != number)) else {
                continue;
            };
            let Ok(clone) = clone_at(path.as_ref(), false) else { continue };
            // If it comes from outside a container, another terminal has its name here, or none.
            let own = raw_calls::inherited(fd).and_then(Result::ok);
            let there = stat_of(&clone).at("look at the terminal", &path)?;
            if own.is_some_and(|own| (own.dev, own.ino) == (there.dev, there.ino)) {
                shown.push((number, clone));
            }
        }
        Ok(Self { shown, options: options(plan) })
    }

    /// Mounts the private /dev/pts. A shown terminal keeps its number taken for as long as this process lives.
    pub fn attach(self) -> Result<(), IoError> {
        let making = rustix::mount::fsopen("devpts", FsOpenFlags::FSOPEN_CLOEXEC).at("open a devpts", PTS)?;
        for (key, value) in &self.options {
            rustix::mount::fsconfig_set_string(&making, key, value).at("set an option of a devpts", PTS)?;
        }
        rustix::mount::fsconfig_create(&making).at("make a devpts", PTS)?;
        let closed = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let made = rustix::mount::fsmount(&making, FsMountFlags::FSMOUNT_CLOEXEC, closed).at("mount a devpts", PTS)?;
        attach_to(&made, PTS)?;
        let highest = self.shown.iter().map(|(number, _)| number + 1).max().unwrap_or(0);
        let mut taken: Vec<Option<OwnedFd>> = Vec::with_capacity(highest);
        for _ in 0..highest {
            let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
            let master = rustix::fs::open(format!("{PTS}/ptmx"), flags, Mode::empty()).at("make a terminal in", PTS)?;
            taken.push(Some(master));
        }
        for (number, terminal) in self.shown {
            attach_to(&terminal, &format!("{PTS}/{number}"))?;
            // Its name goes with its master.
            std::mem::forget(taken.get_mut(number).and_then(Option::take));
        }
        Ok(())
    }
}

/// The number and path of an inherited descriptor's terminal.
fn number_of(fd: i32) -> Option<(usize, String)> {
    let path = std::fs::read_link(format!("/proc/self/fd/{fd}")).ok()?.to_str()?.to_owned();
    let number = path.strip_prefix(PTS)?.strip_prefix('/')?.parse().ok()?;
    (number <= HIGHEST).then_some((number, path))
}

/// The options of a new devpts. The group of terminals (tty) is not mapped in a user's namespace.
fn options(plan: &Plan) -> Vec<(String, String)> {
    let mut options = vec![("ptmxmode".to_owned(), "666".to_owned())];
    if plan.route == Route::Root {
        let real = plan.mounts.iter().rev().find(|mount| mount.fs_type == "devpts" && mount.point.as_bytes() == PTS.as_bytes());
        let told = real.into_iter().flat_map(|real| real.super_options.split(','));
        let told = told.filter_map(|option| option.split_once('=')).filter(|(key, _)| ["mode", "gid"].contains(key));
        options.extend(told.map(|(key, value)| (key.to_owned(), value.to_owned())));
    }
    options
}
