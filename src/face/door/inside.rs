//! The look outside from inside a held agent's run.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use crate::capture::Inside;
use crate::error::{At, Error, IoError, Kind};
use crate::face::args::{Cli, Verb};
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::near_side;
use crate::fs::{AbsPath, Dir, socket};
use crate::remote::{Down, Line, PROTOCOL, Request, Up, Word};
use crate::verb::NAME;

/// The words with which a call inside a run is asked outside; `None` if it is no look at what the run holds. A session that is named is this
/// run's, or one of the run's own store.
pub fn words(cli: &Cli, words: &[OsString], inside: &Inside) -> Option<Vec<OsString>> {
    inside.store.as_ref()?;
    let id = &inside.session;
    let is_this = |key: &str| key == id || key == "last" || id.rsplit('-').next() == Some(key);
    let (verb, named) = match cli.verb() {
        Verb::Diff(args) => ("diff", &args.id),
        Verb::Show(args) => ("show", &args.id),
        Verb::Steps(args) => ("steps", &args.id),
        Verb::Status(_) | Verb::Here => ("show", &None),
        _ => return None,
    };
    let mut words = words.to_vec();
    let at = words.iter().position(|word| word == verb || word == "status");
    match (at, named) {
        (None, _) => words.extend([verb.into(), id.into()]),
        (Some(at), None) => {
            // In pages a status is the list of what changed.
            let verb = if verb == "show" && cli.verb().is_brief() { "diff" } else { verb };
            words.splice(at..=at, [verb.into(), id.into()]);
        }
        (Some(at), Some(key)) if is_this(key) => {
            let key = words[at..].iter().position(|word| word == &**key)?;
            words[at + key] = id.into();
        }
        _ => return None,
    }
    let paths = match cli.verb() {
        Verb::Diff(args) => &args.paths[..],
        Verb::Show(args) => &args.paths,
        _ => &[],
    };
    // Outside, the working directory is that in which the run began.
    let here = std::env::current_dir().ok()?;
    for path in paths {
        let word = words.iter_mut().rev().find(|word| **word == *path)?;
        *word = here.join(path).into_os_string();
    }
    Some(words)
}

/// Has a look carried out outside, and prints it.
///
/// # Errors
/// Nobody answers.
pub fn ask(call: &Call, words: &[OsString], store: &AbsPath) -> Result<Ended, Error> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
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
    let dir = Dir::open(store.as_path()).map_err(Error::from)?;
    let door = socket::connect(dir.at(NAME)).map_err(|error| silent(Some(&error.why())))?;
    match answered(&door, &request) {
        Ok(Some(ended)) => Ok(ended),
        Ok(None) => Err(silent(None)),
        Err(Lost::Door(error)) => Err(silent(Some(&crate::error::reason(&error)))),
        Err(Lost::Printing(error)) => Err(Error::from(error)),
    }
}

/// The end that broke off.
enum Lost {
    Door(std::io::Error),
    Printing(IoError),
}

impl From<std::io::Error> for Lost {
    fn from(error: std::io::Error) -> Self {
        Self::Door(error)
    }
}

/// The answer, printed as it comes; `None` if the connection ends before it does.
fn answered(mut door: &UnixStream, request: &Request) -> Result<Option<Ended>, Lost> {
    Up::Request(request.json()).write(&mut door)?;
    let mut from = BufReader::new(door);
    let mut line = Vec::new();
    from.read_until(b'\n', &mut line)?;
    if !matches!(Line::of(&line), Line::Hello { protocol: PROTOCOL, .. }) {
        return Ok(None);
    }
    let mut ended = None;
    while let Some(frame) = Down::read(&mut from)? {
        match frame {
            Down::Output(bytes) => std::io::stdout().write_all(&bytes).at("write", "standard output").map_err(Lost::Printing)?,
            Down::Errors(bytes) => {
                std::io::stderr().write_all(&bytes).at("write", "standard error").map_err(Lost::Printing)?;
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
