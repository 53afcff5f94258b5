//! The look outside from inside a run.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::capture::{DOOR, Inside};
use crate::error::{At, Error, IoError, Kind};
use crate::face::args::{Cli, Verb};
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::near_side;
use crate::fs::{AbsPath, Dir, absolute, socket};
use crate::remote::{Down, Line, PROTOCOL, Request, Up, Word};
use crate::verb::gate;

/// The time for which a look that is not taken is tried again, and how often.
const PATIENCE: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_millis(20);

/// The time in which a look has to be taken: a recant that is stopped takes none.
const GREETING: Duration = Duration::from_secs(10);

/// The words with which a call inside a run is asked outside; `None` if it is no look, or is about a session of the run's own store. Without a
/// session it is about this run's.
pub fn words(call: &Call, cli: &Cli, words: &[OsString], inside: &Inside) -> Option<Vec<OsString>> {
    let id = &inside.session;
    let is_this = |key: &str| key == id || key == "last" || id.rsplit('-').next() == Some(key);
    let mut words = words.to_vec();
    let (verb, named) = match cli.verb() {
        Verb::Diff(args) => ("diff", args.id.as_deref()),
        Verb::Show(args) => ("show", args.id.as_deref()),
        Verb::Steps(args) => ("steps", args.id.as_deref()),
        Verb::Cat(args) => ("cat", Some(&*args.id)),
        Verb::Status | Verb::Here => ("show", None),
        Verb::List(args) => return from_here(words, args.path.iter()),
        Verb::Log(args) => return from_here(words, args.what.iter().filter(|what| is_path(what))),
        _ => return None,
    };
    let at = words.iter().position(|word| word == verb || word == "status");
    match (at, named) {
        (None, _) => words.extend([verb.into(), id.into()]),
        (Some(at), None) => drop(words.splice(at..=at, [verb.into(), id.into()])),
        (Some(at), Some(key)) if is_this(key) => {
            let key = words[at..].iter().position(|word| word == key)?;
            words[at + key] = id.into();
        }
        (Some(_), Some(key)) if inside.store.is_some() && gate::is_of_own_store(call, key) => return None,
        (Some(_), Some(_)) => {}
    }
    let paths = match cli.verb() {
        Verb::Diff(args) => &args.paths[..],
        Verb::Show(args) => &args.paths,
        Verb::Cat(args) => std::slice::from_ref(&args.path),
        _ => &[],
    };
    from_here(words, paths.iter())
}

/// The words with paths made absolute: outside, the working directory is that in which the run began, and directories may be missing. `None`
/// if one of them is not found.
fn from_here<'a>(mut words: Vec<OsString>, paths: impl Iterator<Item = &'a PathBuf>) -> Option<Vec<OsString>> {
    for path in paths {
        let (word, option) = words.iter_mut().rev().find_map(|word| {
            let option = word.as_bytes().strip_suffix(path.as_os_str().as_bytes())?;
            (option.is_empty() || option == b"--path=").then(|| OsStr::from_bytes(option).to_owned()).map(|option| (word, option))
        })?;
        *word = option;
        word.push(absolute(path).map_or_else(|_| path.clone(), |path| path.as_path().to_owned()));
    }
    Some(words)
}

/// Tells whether a word of `log` is a path, and no session's.
fn is_path(word: &Path) -> bool {
    word.as_os_str().as_bytes().contains(&b'/') || word.symlink_metadata().is_ok()
}

/// Has a look carried out outside, and prints it.
///
/// # Errors
/// Nobody answers.
pub fn ask(call: &Call, words: &[OsString], door: Option<&AbsPath>) -> Result<Ended, Error> {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    let request = Request {
        protocol: PROTOCOL,
        argv: words.iter().map(|word| Word::from(word.as_os_str())).collect(),
        color: call.out.colors(),
        columns: size.ok().map(|size| size.ws_col).filter(|columns| *columns > 0),
        input: false,
        terminals: near_side::terminals(),
        env: Vec::new(),
        silence: None,
        store: None,
        reached: None,
    };
    let door = Dir::open(door.ok_or_else(|| silent(None))?.as_path()).map_err(Error::from)?;
    let since = Instant::now();
    let mut from = loop {
        let connection = socket::connect(door.at(DOOR.as_bytes())).map_err(|error| silent(Some(&error.why())))?;
        match greeted(connection, &request) {
            Ok(Some(from)) => break from,
            // So many look at once that this one has to wait.
            _ if since.elapsed() < PATIENCE => std::thread::sleep(AGAIN),
            Ok(None) => return Err(silent(None)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(silent(Some("it may be stopped"))),
            Err(error) => return Err(silent(Some(&crate::error::reason(&error)))),
        }
    };
    match answered(&mut from) {
        Ok(Some(ended)) => Ok(ended),
        Ok(None) => Err(silent(None)),
        Err(Lost::Door(error)) => Err(silent(Some(&crate::error::reason(&error)))),
        Err(Lost::Printing(error)) => Err(Error::from(error)),
    }
}

/// The end that broke off.
enum Lost {
    Door(io::Error),
    Printing(IoError),
}

impl From<io::Error> for Lost {
    fn from(error: io::Error) -> Self {
        Self::Door(error)
    }
}

/// The connection, once somebody has taken the request; `None` if it ends before.
fn greeted(mut door: UnixStream, request: &Request) -> io::Result<Option<BufReader<UnixStream>>> {
    Up::Request(request.json()).write(&mut door)?;
    door.set_read_timeout(Some(GREETING))?;
    let mut from = BufReader::new(door);
    let mut line = Vec::new();
    from.read_until(b'\n', &mut line)?;
    // A look may take long once it is taken.
    from.get_ref().set_read_timeout(None)?;
    Ok(matches!(Line::of(&line), Line::Hello { protocol: PROTOCOL, .. }).then_some(from))
}

/// The answer, printed as it comes; `None` if the connection ends before it does.
fn answered(from: &mut BufReader<UnixStream>) -> Result<Option<Ended>, Lost> {
    let mut ended = None;
    while let Some(frame) = Down::read(from)? {
        match frame {
            Down::Output(bytes) => io::stdout().write_all(&bytes).at("write", "standard output").map_err(Lost::Printing)?,
            Down::Errors(bytes) => {
                io::stderr().write_all(&bytes).at("write", "standard error").map_err(Lost::Printing)?;
                // Without an end it is why the request was refused.
                ended = Some(Ended::With(Kind::Refused));
            }
            Down::Ended(status) => return Ok(Some(Ended::Command(status))),
            Down::Taken(_) | Down::Alive => {}
        }
    }
    Ok(ended)
}

fn silent(why: Option<&str>) -> Error {
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    Error::refused(format!("the recant outside of this run does not answer{why}"))
        .with_remedy("look from outside, in another terminal")
}
