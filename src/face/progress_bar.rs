//! A progress bar, on a terminal only, for work of more than a quarter of a second.

use std::cell::RefCell;
use std::io::{self, Write};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use super::out::Out;
use crate::engine::Progress;
use crate::fs::AbsPath;
use crate::settings;

/// A bar that shows itself after a while. indicatif draws on standard error, and draws nothing if that is no terminal.
pub struct Bar {
    wanted: bool,
    shown: Mutex<RefCell<Option<indicatif::ProgressBar>>>,
    since: OnceLock<Instant>,
    /// Set once the user was told that content is large. A plan may be made more than once.
    large: OnceLock<()>,
}

impl Bar {
    /// Makes the bar of a verb whose results go to `out`: none with JSON and `-q`.
    pub fn of(out: &Out) -> Self {
        Self {
            wanted: out.is_text() && !out.is_quiet() && !out.is_kept(),
            shown: Mutex::default(),
            since: OnceLock::new(),
            large: OnceLock::new(),
        }
    }

    pub fn end(&self) {
        if let Ok(shown) = self.shown.lock()
            && let Some(bar) = shown.take()
        {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.end();
    }
}

impl Progress for Bar {
    fn at(&self, phase: &'static str, done: usize, of: usize) {
        let since = self.since.get_or_init(Instant::now);
        if !self.wanted || since.elapsed() < Duration::from_millis(250) {
            return;
        }
        let Ok(shown) = self.shown.lock() else { return };
        let mut shown = shown.borrow_mut();
        let bar = shown.get_or_insert_with(|| {
            let style = indicatif::ProgressStyle::with_template("{msg:>9} [{bar:30}] {human_pos}/{human_len}");
            let bar = indicatif::ProgressBar::new(0);
            if let Ok(style) = style {
                bar.set_style(style);
            }
            bar
        });
        bar.set_length(of as u64);
        bar.set_message(phase);
        bar.set_position(done as u64);
    }

    fn hashes(&self, path: &AbsPath, bytes: u64) {
        if self.wanted && self.large.set(()).is_ok() {
            let size = settings::bytes(bytes);
            let text = format!("recant: {path}: hashing {size} takes a while\nrecant: nothing is changed yet; Ctrl-C ends it\n");
            // A lost notice does no harm.
            let _unsaid = io::stderr().write_all(text.as_bytes());
        }
    }
}
