//! The walk over a directory: every object under it, parents first, in path order. It follows no links, and names other mounts without
//! entering them. No recursion: depth costs neither stack nor descriptors.

use std::rc::Rc;

use crate::error::IoError;
use crate::fs::{Dir, Entry, Sort, Stat};

/// An object that a walk came to.
pub struct WalkedObject {
    /// Its path below the walked directory, without a leading slash.
    pub below: Vec<u8>,
    pub dir: Rc<Dir>,
    pub stat: Stat,
    /// True for a directory that may not be listed and searched: its content is not found. Only if the walk goes on past such.
    pub closed: bool,
}

impl WalkedObject {
    pub fn name(&self) -> &[u8] {
        self.below.rsplit(|b| *b == b'/').next().unwrap_or_default()
    }
}

struct Frame {
    below: Vec<u8>,
    dir: Option<Rc<Dir>>,
    names: std::vec::IntoIter<Vec<u8>>,
}

/// An iterator over all that lies under a directory.
pub struct Walk {
    top: Rc<Dir>,
    mount: u64,
    stack: Vec<Frame>,
    past_closed: bool,
}

/// The number of directories on the way down that stay open.
const OPEN_LEVELS: usize = 16;

impl Walk {
    /// Starts below `top`, which is not itself found.
    pub fn under(top: Rc<Dir>) -> Result<Self, IoError> {
        let mount = top.stat()?.mount;
        let names = sorted_names(&top)?;
        let stack = vec![Frame { below: Vec::new(), dir: Some(top.clone()), names }];
        Ok(Self { top, mount, stack, past_closed: false })
    }

    /// Goes on past directories that may not be listed and searched; otherwise they are an error.
    pub fn past_closed(self) -> Self {
        Self { past_closed: true, ..self }
    }

    /// Enters the directory `below`, from the one that it lies in.
    fn enter(&mut self, at: Entry<'_>, below: Vec<u8>) -> Result<(), IoError> {
        let (dir, mut names) = at.open_and_list()?;
        names.sort_unstable();
        if let Some(far) = self.stack.len().checked_sub(OPEN_LEVELS) {
            self.stack[far].dir = None;
        }
        self.stack.push(Frame { below, dir: Some(Rc::new(dir)), names: names.into_iter() });
        Ok(())
    }

    fn step(&mut self) -> Result<Option<WalkedObject>, IoError> {
        loop {
            let Some(frame) = self.stack.last_mut() else { return Ok(None) };
            let Some(name) = frame.names.next() else {
                self.stack.pop();
                continue;
            };
            let below = if frame.below.is_empty() { name.clone() } else { [&*frame.below, b"/", &*name].concat() };
            let dir = match &frame.dir {
                Some(dir) => dir.clone(),
                None => {
                    let dir = Rc::new(self.top.open_below(&frame.below)?);
                    frame.dir = Some(dir.clone());
                    dir
                }
            };
            // Gone since the directory was listed.
            let Some(stat) = dir.at(&name).stat()? else { continue };
            let enters = stat.sort == Sort::Directory && stat.mount == self.mount;
            let closed = enters && self.past_closed && dir.at(&name).is_closed();
            if enters && !closed {
                self.enter(dir.at(&name), below.clone())?;
            }
            return Ok(Some(WalkedObject { below, dir, stat, closed }));
        }
    }

    /// The mount that the walk stays on: an object on another one is a mount point that was not entered.
    pub fn mount(&self) -> u64 {
        self.mount
    }
}

impl Iterator for Walk {
    type Item = Result<WalkedObject, IoError>;

    fn next(&mut self) -> Option<Self::Item> {
        let found = self.step();
        if found.is_err() {
            self.stack.clear();
        }
        found.transpose()
    }
}

fn sorted_names(dir: &Dir) -> Result<std::vec::IntoIter<Vec<u8>>, IoError> {
    let mut names = dir.names()?;
    names.sort_unstable();
    Ok(names.into_iter())
}
