//! A service: a command that goes on in the background of its session, and the recant that tends it.

use std::cell::{Cell, OnceCell, RefCell};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

use rustix::process::{Signal, getpid, kill_process};

use super::notice::Notice;
use crate::capture::{Event, Launch, Output};
use crate::error::Error;
use crate::fs::{AbsPath, Fs, Presence};
use crate::session::{Ending, ServiceEnd, Session, Stopped};
use crate::verb::desk::Desk;
use crate::verb::fact::Fact;

/// A service that is begun by this process.
#[derive(Debug)]
pub struct Service {
    pub name: String,
    launch: Launch,
    output: OnceCell<Arc<File>>,
    presence: RefCell<Option<Presence>>,
    serves: Cell<bool>,
}

/// The most bytes of its output that are looked at for the last lines.
const TAIL: u64 = 4 << 10;

impl Service {
    pub fn new(name: &str, launch: Launch) -> Self {
        Self { name: name.into(), launch, output: OnceCell::new(), presence: RefCell::default(), serves: Cell::default() }
    }

    /// Takes its name in a session; again, if what an attempt to start it had left there is removed by now.
    ///
    /// # Errors
    /// Another one has it there.
    pub fn take_name(&self, fs: &Fs, session: &Session) -> Result<(), Error> {
        self.give_name_back();
        self.presence.replace(Some(session.serve(fs, &self.name)?));
        Ok(())
    }

    /// Gives the name back where another process may take it.
    pub fn give_name_back(&self) {
        self.presence.take();
    }

    /// Empties the file of its output, or makes it.
    ///
    /// # Errors
    /// A system call failed.
    pub fn open_output(&self, fs: &Fs, session: &Session) -> Result<Output, Error> {
        let name = Session::output_name(&self.name);
        let file = match self.output.get() {
            Some(file) => file.clone(),
            None => {
                let file = fs.append(session.dir.at(&name))?;
                fs.set_size(&file, 0, session.dir.at(&name))?;
                self.output.get_or_init(|| Arc::new(file)).clone()
            }
        };
        Ok(Output { name: self.name.clone(), file })
    }

    /// Hears what happens to it; returns what is not about it alone.
    pub fn hear(&self, desk: &Desk, session: &Session, event: Event) -> Option<Event> {
        match event {
            Event::Serves => self.tell(desk, session),
            Event::OnlyJoined(ending, stopped) => self.leave(desk, Some((ending, stopped))),
            event => return Some(event),
        }
        None
    }

    fn tell(&self, desk: &Desk, session: &Session) {
        self.serves.set(true);
        let (name, output) = (&*self.name, session.dir.path().join(format!("output.{}", self.name)));
        let output = AbsPath::parse(output.as_os_str().as_encoded_bytes()).ok().filter(|_| self.launch.is_awaited());
        match (output, self.output.get()) {
            (Some(path), Some(file)) => {
                desk.caller.tell(Fact::Run(Notice::Serves { id: session.id(), name, output: &path }));
                self.launch.let_go(file);
            }
            // The one that called it was ended meanwhile: so is this, as soon as it hears it.
            _ => _ = kill_process(getpid(), Signal::TERM),
        }
    }

    /// True once its caller went on.
    pub fn has_served(&self) -> bool {
        self.serves.get()
    }

    /// Tells those who wait for its end how it has ended; `None` if that is unknown.
    pub fn leave(&self, desk: &Desk, end: Option<(Ending, Option<Stopped>)>) {
        let Some(presence) = self.presence.take() else { return };
        if let Some((ending, stopped)) = end {
            // Without the line they see that it is gone.
            let _untold = presence.end(&desk.fs, &crate::tree::line(&ServiceEnd { ending, stopped }));
        }
    }

    /// The last bytes of its output.
    pub fn tail(&self) -> Vec<u8> {
        let mut tail = Vec::new();
        if let Some(file) = self.output.get() {
            let mut file = &**file;
            let from = file.metadata().map_or(0, |facts| facts.len().saturating_sub(TAIL));
            // What cannot be read is not shown.
            let _short = file.seek(SeekFrom::Start(from)).and_then(|_| file.take(TAIL).read_to_end(&mut tail));
        }
        tail
    }
}
