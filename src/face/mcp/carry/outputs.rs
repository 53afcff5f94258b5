//! The output of commands that have run, for a model that wants more of it than the tail. It lies in memory: another server knows none.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use super::child::Stream;
use super::pages;

/// The most bytes of a stream that are kept: the last.
pub const OF_STREAM: usize = 4 << 20;
/// The most bytes that are kept of all commands.
const OF_ALL: usize = 32 << 20;

/// The output of commands that have run, each with its number.
#[derive(Default)]
pub struct Outputs(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    count: u64,
    commands: VecDeque<(u64, [Stream; 2])>,
}

/// The names of the streams, as keys of answers.
pub const STREAMS: [&str; 2] = ["stdout", "stderr"];

/// A part of a stream.
pub struct Part {
    pub stream: &'static str,
    pub text: String,
    /// The cursor of what comes after it.
    pub next: Option<String>,
}

impl Outputs {
    /// Keeps the output of a command; returns its number. The oldest that there is no room for go.
    pub fn keep(&self, streams: [Stream; 2]) -> u64 {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.count += 1;
        let n = kept.count;
        kept.commands.push_back((n, streams));
        let size = |(_, streams): &(u64, [Stream; 2])| streams.iter().map(|stream| stream.bytes.len()).sum::<usize>();
        while kept.commands.len() > 1 && kept.commands.iter().map(size).sum::<usize>() > OF_ALL {
            kept.commands.pop_front();
        }
        n
    }

    /// At most `most` bytes from a cursor on.
    ///
    /// # Errors
    /// There is no such place; why.
    pub fn read(&self, cursor: &str, most: usize) -> Result<Part, String> {
        let (n, stream, from) =
            parsed(cursor).ok_or_else(|| format!("{cursor:?} is not NUMBER.STREAM.BYTE, as in 3.stdout.0"))?;
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.commands.iter().find(|(number, _)| *number == n);
        let (_, streams) = found.ok_or_else(|| format!("the output of command {n} is not kept: run it again"))?;
        let Stream { bytes, total } = &streams[stream];
        let first = total - bytes.len() as u64;
        let skipped = from.checked_sub(first).ok_or_else(|| format!("what is kept begins at byte {first}"))?;
        let rest = usize::try_from(skipped).ok().and_then(|skipped| bytes.get(skipped..));
        let page = pages::page(rest.ok_or_else(|| format!("it has {total} bytes"))?, most);
        let end = from + page.len() as u64;
        let next = (end < *total).then(|| self::cursor(n, stream, end));
        Ok(Part { stream: STREAMS[stream], text: pages::harmless(page), next })
    }
}

/// The cursor of a byte in a stream of a command.
pub fn cursor(n: u64, stream: usize, byte: u64) -> String {
    format!("{n}.{}.{byte}", STREAMS[stream])
}

fn parsed(cursor: &str) -> Option<(u64, usize, u64)> {
    let mut parts = cursor.splitn(3, '.');
    let (n, stream, byte) = (parts.next()?, parts.next()?, parts.next()?);
    let stream = STREAMS.iter().position(|name| *name == stream)?;
    Some((n.parse().ok()?, stream, byte.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use crate::face::mcp::carry::outputs::*;

    fn stream(bytes: &[u8], total: u64) -> Stream {
        Stream { bytes: bytes.to_vec(), total }
    }

    #[test]
    fn each_byte_that_is_kept_can_be_read_and_once() {
        let outputs = Outputs::default();
        let n = outputs.keep([stream(b"one\ntwo\nthree\n", 14), stream(b"", 0)]);
        let (mut text, mut at) = (String::new(), Some(cursor(n, 0, 0)));
        while let Some(cursor) = at {
            let part = outputs.read(&cursor, 5).unwrap();
            assert!(part.text.len() <= 5, "{}", part.text);
            text.push_str(&part.text);
            at = part.next;
        }
        assert_eq!(text, "one\ntwo\nthree\n");
        assert_eq!(outputs.read("1.stdout.4", 100).unwrap().text, "two\nthree\n");
        for wrong in ["", "1", "1.stdout", "1.out.0", "1.stdout.x", "2.stdout.0", "1.stdout.15", "1.stdout.-1"] {
            assert!(outputs.read(wrong, 100).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_there_is_no_room_for_is_said_to_be_gone() {
        let outputs = Outputs::default();
        outputs.keep([stream(b"tail", 1000), stream(b"", 0)]);
        assert_eq!(outputs.read("1.stdout.0", 9).err().as_deref(), Some("what is kept begins at byte 996"));
        assert_eq!(outputs.read("1.stdout.996", 9).unwrap().text, "tail");
        for _ in 0..8 {
            outputs.keep([stream(&vec![b'x'; OF_STREAM], OF_STREAM as u64), stream(b"", 0)]);
        }
        assert!(outputs.read("1.stdout.996", 9).is_err_and(|why| why.contains("not kept")));
        assert!(outputs.read("9.stdout.0", 9).is_ok());
    }
}
