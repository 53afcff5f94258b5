//! The threads beside the screen: one reads contents, one looks whether something else stands there by now.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::time::Duration;

use super::sheet::Sheet;
use super::world::{Contents, Look, Open, ViewedChanges};
use crate::tree::Hash;

/// The time between two looks.
pub const EACH: Duration = Duration::from_millis(700);

/// A request to the reading thread.
enum LoadRequest {
    /// A change, at once: what was asked for before is not waited for any more.
    Sheet(usize),
    /// A change that is shown, if it stands otherwise than by this mark.
    Again(usize, Hash),
    /// The counts of changes, when there is nothing else to do.
    Counts(Vec<usize>),
}

pub enum Loaded {
    Sheet(usize, Arc<Sheet>),
    /// Lines that came and went with a change, where they can be counted; true if something stands against it.
    Counts(usize, Option<(usize, usize)>, bool),
}

/// Reads the contents of changes in a thread, which ends with it.
pub struct Loader {
    ask: Sender<LoadRequest>,
    told: Receiver<Loaded>,
}

impl Loader {
    pub fn start(open: &Open) -> Self {
        let (ask, asked) = channel();
        let (tell, told) = channel();
        let open = Arc::clone(open);
        std::thread::spawn(move || read(&open, &asked, &tell));
        Self { ask, told }
    }

    pub fn want(&self, i: usize) {
        // The thread ends only with this, or by a panic, which ends the program.
        drop(self.ask.send(LoadRequest::Sheet(i)));
    }

    /// Asks for a change anew if it stands otherwise than by this mark.
    pub fn want_again(&self, i: usize, mark: Hash) {
        drop(self.ask.send(LoadRequest::Again(i, mark)));
    }

    pub fn want_counts(&self, indexes: Vec<usize>) {
        drop(self.ask.send(LoadRequest::Counts(indexes)));
    }

    /// The next answer, if there is one.
    pub fn next(&self) -> Option<Loaded> {
        self.told.try_recv().ok()
    }
}

fn read(open: &Open, asked: &Receiver<LoadRequest>, tell: &Sender<Loaded>) {
    if let Err(why) = open(&mut |contents| serve(contents, asked, tell)) {
        serve(&mut Unread(why), asked, tell);
    }
}

/// Contents that cannot be opened.
struct Unread(String);

impl Contents for Unread {
    fn sheet(&mut self, _: usize) -> Sheet {
        Sheet::failed(&self.0)
    }
}

fn serve(contents: &mut dyn Contents, asked: &Receiver<LoadRequest>, tell: &Sender<Loaded>) {
    let mut counts = VecDeque::new();
    loop {
        let (mut wanted, mut again) = (None, None);
        let mut note = |asked: LoadRequest, counts: &mut VecDeque<usize>| match asked {
            LoadRequest::Sheet(i) => wanted = Some(i),
            LoadRequest::Again(i, mark) => again = Some((i, mark)),
            LoadRequest::Counts(indexes) => counts.extend(indexes),
        };
        if counts.is_empty() {
            let Ok(first) = asked.recv() else { return };
            note(first, &mut counts);
        }
        loop {
            match asked.try_recv() {
                Ok(more) => note(more, &mut counts),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return,
            }
        }
        if wanted.is_none() {
            wanted = again.filter(|(i, mark)| contents.mark(*i).is_some_and(|now| now != *mark)).map(|(i, _)| i);
        }
        let told = match wanted {
            Some(i) => Loaded::Sheet(i, Arc::new(contents.sheet(i))),
            None => match counts.pop_front() {
                Some(i) => {
                    let sheet = contents.sheet(i);
                    Loaded::Counts(i, sheet.counts, sheet.is_conflict)
                }
                None => continue,
            },
        };
        if tell.send(told).is_err() {
            return;
        }
    }
}

/// Looks again and again, in a thread, whether something else stands there.
pub struct Watcher {
    found: Receiver<Result<ViewedChanges, String>>,
    _stop: Sender<()>,
}

impl Watcher {
    /// Starts the thread. `mark` is that of what is shown.
    pub fn start(look: &Look, mark: Hash) -> Self {
        let (tell, found) = channel();
        let (stop, stopped) = channel::<()>();
        let look = Arc::clone(look);
        std::thread::spawn(move || {
            let mut mark = mark;
            while stopped.recv_timeout(EACH) == Err(RecvTimeoutError::Timeout) {
                let found = match look(Some(mark)) {
                    Ok(None) => continue,
                    Ok(Some(seen)) => {
                        mark = seen.mark;
                        Ok(seen)
                    }
                    Err(why) => Err(why),
                };
                let is_over = found.is_err();
                if tell.send(found).is_err() || is_over {
                    return;
                }
            }
        });
        Self { found, _stop: stop }
    }

    /// The newest that was found.
    pub fn next(&self) -> Option<Result<ViewedChanges, String>> {
        self.found.try_iter().last()
    }
}
