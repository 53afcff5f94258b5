//! A real terminal with a person at it: tmux with a server of its own, a shell in it, keys that are sent and the screen that is read.
//! A file of its own beside `common`: `#[path = "common/terminal.rs"] mod terminal;`

#![allow(dead_code, reason = "each test binary uses a part of the fixture")]

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::common::{Said, World, recant, skip};

/// The longest wait for what is to be seen.
const LIMIT: Duration = Duration::from_secs(30);

/// A terminal. What runs in it ends with it.
pub struct Terminal<'w> {
    world: &'w World,
    socket: PathBuf,
}

impl<'w> Terminal<'w> {
    /// A shell in the world's tree, in a window of this size; recant is on its PATH. `None`, said as a skip, where there is no tmux.
    pub fn open(world: &'w World, width: u16, height: u16) -> Option<Self> {
        if Command::new("tmux").arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
            skip("a real terminal: tmux is not installed");
            return None;
        }
        let terminal = Self { world, socket: world.root().join(format!("tmux-{}", next())) };
        let binary = PathBuf::from(recant());
        let directory = binary.parent().expect("a directory of the program").display();
        let shell = format!("PATH={directory}:$PATH PS1='$ ' exec sh -i");
        let (width, height) = (width.to_string(), height.to_string());
        let begun = "start-server ; set -g default-shell /bin/sh ; set -g status off ; set -g escape-time 0 ; set -g remain-on-exit on ; new-session -d -x";
        let words = begun.split(' ').chain([&*width, "-y", &*height, &*shell]);
        terminal.tmux(words).ok();
        terminal.sees("$");
        Some(terminal)
    }

    /// The usual one: 80 columns, 24 rows.
    pub fn usual(world: &'w World) -> Option<Self> {
        Self::open(world, 80, 24)
    }

    fn tmux<'s>(&self, words: impl IntoIterator<Item = &'s str>) -> Said {
        let socket = self.socket.to_str().expect("a plain path").to_owned();
        let words = words.into_iter().map(str::to_owned);
        let words = ["-S".into(), socket, "-f".into(), "/dev/null".into()].into_iter().chain(words);
        self.world.program("tmux", words).run()
    }

    /// Types a command line.
    pub fn line(&self, text: &str) -> &Self {
        self.types(text).keys("Enter")
    }

    /// Types a text.
    pub fn types(&self, text: &str) -> &Self {
        self.tmux(["send-keys", "-l", text]).ok();
        self
    }

    /// Presses keys, by tmux's names for them, split at spaces.
    pub fn keys(&self, names: &str) -> &Self {
        self.tmux(["send-keys"].into_iter().chain(names.split(' '))).ok();
        self
    }

    /// The screen as it is.
    pub fn text(&self) -> String {
        self.tmux(["capture-pane", "-p"]).ok().stdout()
    }

    /// The screen once it stays as it is: a page is drawn in several pieces.
    pub fn settled(&self) -> String {
        let mut last = self.text();
        loop {
            std::thread::sleep(Duration::from_millis(20));
            let now = self.text();
            if now == last {
                return now;
            }
            last = now;
        }
    }

    /// The screen with the sequences for its styles.
    pub fn styled(&self) -> String {
        self.tmux(["capture-pane", "-p", "-e"]).ok().stdout()
    }

    /// Waits until the screen is as wanted, and gives it.
    #[track_caller]
    pub fn until(&self, what: &str, is: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + LIMIT;
        let mut before = String::new();
        loop {
            let text = self.text();
            // A screen that is half drawn may have it, and other things no more: it has to stay for a moment.
            if is(&text) && text == before {
                return text;
            }
            before.clone_from(&text);
            assert!(Instant::now() < end, "waited in vain: {what}\n{text}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until the screen has this.
    #[track_caller]
    pub fn sees(&self, what: &str) -> String {
        self.until(what, |text| text.contains(what))
    }

    /// Waits until the screen has this no more.
    #[track_caller]
    pub fn sees_no(&self, what: &str) -> String {
        self.until(&format!("no {what}"), |text| !text.contains(what))
    }

    /// Another size of the window.
    pub fn resize(&self, width: u16, height: u16) -> &Self {
        self.tmux(["resize-window", "-x", &width.to_string(), "-y", &height.to_string()]).ok();
        self
    }

    /// What tmux knows of the terminal, in a format of its own.
    pub fn asked(&self, format: &str) -> String {
        self.tmux(["display-message", "-p", format]).ok().id()
    }

    /// True if the cursor can be seen, and no program has the other screen.
    pub fn is_whole(&self) -> bool {
        self.asked("#{cursor_flag} #{alternate_on}") == "1 0"
    }

    /// The process that the shell has started, once there is one of this name.
    pub fn running(&self, name: &str) -> Pid {
        let shell = self.asked("#{pane_pid}");
        let end = Instant::now() + LIMIT;
        loop {
            let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap_or_default();
            let is = |pid: &&str| std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim() == name);
            if let Some(pid) = children.split_whitespace().find(is) {
                return pid.parse().ok().and_then(Pid::from_raw).expect("a process id");
            }
            assert!(Instant::now() < end, "waited in vain for {name}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Sends a signal to the process of this name that the shell has started.
    pub fn kill(&self, name: &str, signal: Signal) {
        rustix::process::kill_process(self.running(name), signal).expect("a process that runs");
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        let _gone = self.tmux(["kill-server"]);
    }
}

/// A number for the name of a socket.
fn next() -> usize {
    static MADE: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    MADE.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}
