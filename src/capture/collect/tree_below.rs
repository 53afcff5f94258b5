//! The tree below a run's upper, as the command saw it: the sealed uppers of earlier steps, and the real tree under them. Merged as
//! overlayfs merges its lower directories (overlayfs.rst, "Multiple lower layers").

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::rc::Rc;

use crate::capture::place::layout::{Route, is_opaque, is_opaque_directory, is_whiteout};
use crate::error::IoError;
use crate::fs::{Dir, Sort, Stat, dir};

/// Marks a change whose `before` lies in a sealed upper, until it is known in which one.
pub const HELD: u32 = 0;

/// A directory below a run's upper.
#[derive(Debug, Clone)]
pub struct TreeBelow {
    route: Route,
    /// The directories of sealed uppers, the newest first.
    held: Vec<Rc<Dir>>,
    /// The real directory, if it shows.
    real: Option<Rc<Dir>>,
}

/// An object below a run's upper.
#[derive(Debug, Clone)]
pub struct LowerObject {
    pub dir: Rc<Dir>,
    pub stat: Stat,
    /// True if it lies in a sealed upper.
    pub is_held: bool,
}

impl LowerObject {
    /// The object, by its name in the directory.
    pub fn at<'a>(&'a self, name: &'a [u8]) -> dir::Entry<'a> {
        self.dir.at(name)
    }
}

impl TreeBelow {
    pub fn new(route: Route, held: Vec<Rc<Dir>>, real: Option<Rc<Dir>>) -> Self {
        Self { route, held, real }
    }

    /// The real directory, if it shows.
    pub fn real(&self) -> Option<&Rc<Dir>> {
        self.real.as_ref()
    }

    /// The directory whose metadata shows: the newest one.
    pub fn top(&self) -> Option<(&Rc<Dir>, bool)> {
        let held = self.held.first().map(|dir| (dir, true));
        held.or_else(|| self.real.as_ref().map(|dir| (dir, false)))
    }

    /// True if a sealed upper has this directory.
    pub fn is_held(&self) -> bool {
        !self.held.is_empty()
    }

    /// The directories of sealed uppers, the newest first.
    pub fn held(&self) -> &[Rc<Dir>] {
        &self.held
    }

    /// True if the sealed uppers hide what the real directory has at a name.
    pub fn hides(&self, name: &[u8]) -> Result<bool, IoError> {
        for dir in &self.held {
            let at = dir.at(name);
            match at.stat()? {
                None => {}
                Some(stat) if stat.sort != Sort::Directory => return Ok(true),
                Some(_) if is_opaque(self.route, &at.xattrs()?) => return Ok(true),
                Some(_) => {}
            }
        }
        Ok(false)
    }

    /// True if nothing has this directory.
    pub fn is_nowhere(&self) -> bool {
        self.held.is_empty() && self.real.is_none()
    }

    /// The object that shows at a name.
    ///
    /// # Errors
    /// It cannot be looked at: the real directory may be closed.
    pub fn at(&self, name: &[u8]) -> Result<Option<LowerObject>, IoError> {
        for dir in &self.held {
            if let Some(stat) = dir.at(name).stat()? {
                return Ok((!is_whiteout(&stat)).then(|| LowerObject { dir: dir.clone(), stat, is_held: true }));
            }
        }
        let Some(dir) = &self.real else { return Ok(None) };
        Ok(dir.at(name).stat()?.map(|stat| LowerObject { dir: dir.clone(), stat, is_held: false }))
    }

    /// The directory at a name: nowhere if there is none.
    ///
    /// # Errors
    /// One that is there cannot be opened.
    pub fn enter(&self, name: &[u8]) -> Result<Self, IoError> {
        let mut entered = self.nowhere();
        for dir in &self.held {
            let at = dir.at(name);
            match at.stat()? {
                None => continue,
                Some(stat) if stat.sort == Sort::Directory => {}
                Some(_) => return Ok(entered),
            }
            let below = at.open_dir()?;
            let hides = is_opaque_directory(self.route, &below)?;
            entered.held.push(Rc::new(below));
            if hides {
                return Ok(entered);
            }
        }
        if let Some(real) = &self.real {
            entered.real = match real.open_below(name) {
                // It has gone, or is no directory, or something is mounted there: what lies under that does not show.
                Err(error) if error.leads_nowhere() || error.errno() == Some(libc::EXDEV) => None,
                entered => Some(Rc::new(entered?)),
            };
        }
        Ok(entered)
    }

    /// No directory, for a run of the same route.
    pub fn nowhere(&self) -> Self {
        Self { route: self.route, held: Vec::new(), real: None }
    }

    /// The real directory at a path that no sealed upper has: nowhere if there is none.
    pub fn descend_real(&self, path: &[u8]) -> Result<Self, IoError> {
        Self { held: Vec::new(), ..self.clone() }.enter(path)
    }

    /// The directory at a path: nowhere if there is none.
    pub fn descend(&self, path: &[u8]) -> Result<Self, IoError> {
        let mut at = self.clone();
        let mut names = path.split(|b| *b == b'/').filter(|name| !name.is_empty());
        while let Some(name) = names.next() {
            if !at.is_held() {
                let rest = names.fold(name.to_vec(), |path, name| [&*path, b"/", name].concat());
                return at.enter(&rest);
            }
            at = at.enter(name)?;
        }
        Ok(at)
    }

    /// The names that show, in order.
    pub fn all_names(&self) -> Result<Vec<Vec<u8>>, IoError> {
        let mut failed = None;
        let names = self.names(|error| failed = Some(error))?;
        failed.map_or(Ok(names), Err)
    }

    /// The names that show, in order. `unlisted` gets the error of a real directory that may not be listed.
    pub fn names(&self, unlisted: impl FnOnce(IoError)) -> Result<Vec<Vec<u8>>, IoError> {
        let mut names: BTreeMap<Vec<u8>, bool> = BTreeMap::new();
        for dir in &self.held {
            for name in dir.names()? {
                if let Entry::Vacant(free) = names.entry(name) {
                    let shows = dir.at(free.key()).stat()?.is_some_and(|stat| !is_whiteout(&stat));
                    free.insert(shows);
                }
            }
        }
        if let Some(real) = &self.real {
            match real.names() {
                Ok(real) => real.into_iter().for_each(|name| _ = names.entry(name).or_insert(true)),
                Err(error) => unlisted(error),
            }
        }
        Ok(names.into_iter().filter_map(|(name, shows)| shows.then_some(name)).collect())
    }
}
