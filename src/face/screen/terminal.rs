//! The terminal: taken for the screen, and given back whole, whatever happens.

use std::io::{self, Stdout, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crossterm::cursor::{Hide, Show};
use crossterm::event::Event;
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use crossterm::{execute, queue};
use ratatui::backend::CrosstermBackend;
use ratatui::{Frame, crossterm};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Signal, kill_current_process_group};

use crate::fs::interrupt;

/// True while the terminal is the screen's.
static TAKEN: AtomicBool = AtomicBool::new(false);
static PANICKED: AtomicBool = AtomicBool::new(false);

/// The terminal, taken. It is given back when this is dropped.
pub struct Terminal {
    drawn: ratatui::Terminal<CrosstermBackend<Stdout>>,
}

impl Terminal {
    /// Takes the terminal of standard input and output. A panic, in whatever thread, gives it back first.
    ///
    /// # Errors
    /// It cannot be set.
    pub fn take() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            std::thread::spawn(watch);
            let usual = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |why| {
                give_back();
                PANICKED.store(true, Ordering::SeqCst);
                usual(why);
            }));
        });
        take()?;
        let drawn = ratatui::Terminal::new(CrosstermBackend::new(io::stdout()));
        Ok(Self { drawn: drawn.inspect_err(|_| give_back())? })
    }

    /// Draws the screen.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.drawn.draw(draw).map(drop)
    }

    /// Draws all of it anew at the next time.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn clear(&mut self) -> io::Result<()> {
        self.drawn.clear()
    }

    /// Gives the terminal back while something else uses it.
    ///
    /// # Errors
    /// It cannot be taken again.
    pub fn lend<T>(&mut self, to: impl FnOnce() -> T) -> io::Result<T> {
        give_back();
        let found = to();
        take()?;
        self.drawn.clear()?;
        Ok(found)
    }

    /// Stops the process, as Ctrl-Z does in a shell, until it is continued.
    ///
    /// # Errors
    /// It cannot be stopped, or the terminal not be taken again.
    pub fn stop(&mut self) -> io::Result<()> {
        self.lend(|| kill_current_process_group(Signal::TSTP))?.map_err(io::Error::from)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        give_back();
    }
}

/// True if a thread panicked: what is shown is not to be trusted any more.
pub fn panicked() -> bool {
    PANICKED.load(Ordering::SeqCst)
}

/// Waits for a key, a signal or the end of a time. crossterm's own wait never ends once the terminal is gone: it reads nothing, and tries
/// again.
///
/// # Errors
/// The terminal is gone.
pub fn wait(longest: Duration) -> io::Result<()> {
    let longest = Timespec { tv_sec: 0, tv_nsec: longest.as_nanos().try_into().unwrap_or(0) };
    let stdin = io::stdin();
    let mut keys = [PollFd::new(&stdin, PollFlags::IN)];
    match rustix::event::poll(&mut keys, Some(&longest)) {
        // A resize is a signal.
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    if keys[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}

/// The next thing that was typed, or happened to the terminal; `None` if there is nothing yet.
///
/// # Errors
/// The terminal is gone.
pub fn typed() -> io::Result<Option<Event>> {
    READS.fetch_add(1, Ordering::SeqCst);
    let found = match crossterm::event::poll(Duration::ZERO) {
        Ok(true) => crossterm::event::read().map(Some),
        Ok(false) => Ok(None),
        Err(error) => Err(error),
    };
    READS.fetch_add(1, Ordering::SeqCst);
    found
}

/// Lets go what was typed and is not read yet.
///
/// # Errors
/// The terminal is gone.
pub fn drop_typed() -> io::Result<()> {
    while typed()?.is_some() {}
    Ok(())
}

/// Counts the beginnings and ends of [`typed`]: odd while it reads.
static READS: AtomicU64 = AtomicU64::new(0);

/// Ends the process if the terminal goes while crossterm reads, which then reads nothing for ever. What the process does otherwise goes on
/// to its end: no act runs in a read.
fn watch() {
    let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    let stdin = io::stdin();
    let mut terminal = [PollFd::new(&stdin, PollFlags::empty())];
    while !terminal[0].revents().intersects(gone) {
        if !matches!(rustix::event::poll(&mut terminal, None), Ok(_) | Err(Errno::INTR)) {
            return;
        }
    }
    let mut before = READS.load(Ordering::SeqCst);
    loop {
        std::thread::sleep(Duration::from_millis(300));
        let now = READS.load(Ordering::SeqCst);
        if now == before && now % 2 == 1 {
            // Died of the hang-up: signal(7).
            interrupt::end_by(1);
            return;
        }
        before = now;
    }
}

fn take() -> io::Result<()> {
    enable_raw_mode()?;
    TAKEN.store(true, Ordering::SeqCst);
    execute!(io::stdout(), EnterAlternateScreen, Hide)
}

/// Gives the terminal back, once. It may be gone: there is nobody to tell then.
fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        let mut out = io::stdout();
        drop(queue!(out, Show, LeaveAlternateScreen).and_then(|()| out.flush()));
        drop(disable_raw_mode());
    }
}
