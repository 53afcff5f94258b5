//! The frames on the connection after the hello: one byte of kind, four of length (big endian, at most [`LIMIT`]), a body. docs/remote.md
//! has the table.

use std::io::{self, Read, Write};

/// The most bytes of a body.
pub const LIMIT: usize = 1 << 20;

/// The most bytes of standard input on the way: the near side sends more only once the far side reports that its verb took some. So
/// a verb that does not read its input does not keep signals from reaching it.
pub const WINDOW: usize = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Up {
    /// The request: a [`Request`](super::request::Request) in JSON. The first frame, sent once.
    Request(Vec<u8>),
    Input(Vec<u8>),
    /// The end of standard input. A connection that ends without it was cut.
    InputEnds,
    /// A signal that the near side received.
    Signal(u8),
    /// The near side no longer reads this stream: 1 or 2.
    Closed(u8),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Down {
    Output(Vec<u8>),
    /// Standard error.
    Errors(Vec<u8>),
    /// The number of bytes of standard input that were passed on.
    Taken(u32),
    /// A sign that it is there, while it has nothing else to send.
    Alive,
    /// The verb's end: its exit status; 128 + n if signal n ended it. The last frame.
    Ended(u8),
}

impl Up {
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        match self {
            Up::Request(json) => send(to, b'r', json),
            Up::Input(bytes) => send(to, b'i', bytes),
            Up::InputEnds => send(to, b'e', &[]),
            Up::Signal(number) => send(to, b's', &[*number]),
            Up::Closed(stream) => send(to, b'c', &[*stream]),
        }
    }

    /// Reads a frame; `None` at the end of the connection.
    pub fn read(from: &mut impl Read) -> io::Result<Option<Self>> {
        let Some((kind, body)) = receive(from)? else { return Ok(None) };
        Ok(Some(match (kind, &*body) {
            (b'r', _) => Up::Request(body),
            (b'i', _) => Up::Input(body),
            (b'e', []) => Up::InputEnds,
            (b's', [number]) => Up::Signal(*number),
            (b'c', [stream]) => Up::Closed(*stream),
            _ => return Err(unknown(kind)),
        }))
    }
}

impl Down {
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        match self {
            Down::Output(bytes) => send(to, b'o', bytes),
            Down::Errors(bytes) => send(to, b'x', bytes),
            Down::Taken(count) => send(to, b't', &count.to_be_bytes()),
            Down::Alive => send(to, b'a', &[]),
            Down::Ended(status) => send(to, b'q', &[*status]),
        }
    }

    /// Reads a frame; `None` at the end of the connection.
    pub fn read(from: &mut impl Read) -> io::Result<Option<Self>> {
        let Some((kind, body)) = receive(from)? else { return Ok(None) };
        Ok(Some(match (kind, &*body) {
            (b'o', _) => Down::Output(body),
            (b'x', _) => Down::Errors(body),
            (b't', count) => Down::Taken(u32::from_be_bytes(count.try_into().map_err(|_| unknown(kind))?)),
            (b'a', []) => Down::Alive,
            (b'q', [status]) => Down::Ended(*status),
            _ => return Err(unknown(kind)),
        }))
    }
}

/// Sends a frame by one write(2) if possible. Frames of two threads must not mix: callers ensure that.
fn send(to: &mut impl Write, kind: u8, body: &[u8]) -> io::Result<()> {
    let length = u32::try_from(body.len()).ok().filter(|_| body.len() <= LIMIT);
    let length = length.ok_or_else(|| io::Error::other(format!("a frame of {} bytes: {LIMIT} is the most", body.len())))?;
    let mut frame = Vec::with_capacity(5 + body.len());
    frame.push(kind);
    frame.extend(length.to_be_bytes());
    frame.extend(body);
    to.write_all(&frame)?;
    to.flush()
}

fn receive(from: &mut impl Read) -> io::Result<Option<(u8, Vec<u8>)>> {
    let mut kind = [0];
    loop {
        match from.read(&mut kind) {
            Ok(0) => return Ok(None),
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > LIMIT {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a frame of {length} bytes: {LIMIT} is the most")));
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    Ok(Some((kind[0], body)))
}

fn unknown(kind: u8) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("a frame that is none of protocol {}: {}", super::protocol::PROTOCOL, kind.escape_ascii()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_as_they_went_in() {
        let up = [Up::Request(b"{}".into()), Up::Input(vec![0xff; LIMIT]), Up::InputEnds, Up::Signal(15), Up::Closed(1)];
        let mut wire = Vec::new();
        up.iter().for_each(|frame| frame.write(&mut wire).unwrap());
        let mut from = &*wire;
        up.iter().for_each(|frame| assert_eq!(Up::read(&mut from).unwrap().as_ref(), Some(frame)));
        assert_eq!(Up::read(&mut from).unwrap(), None);
        let down = [Down::Output(vec![]), Down::Errors(b"x\n".into()), Down::Taken(7), Down::Alive, Down::Ended(3)];
        let mut wire = Vec::new();
        down.iter().for_each(|frame| frame.write(&mut wire).unwrap());
        let mut from = &*wire;
        down.iter().for_each(|frame| assert_eq!(Down::read(&mut from).unwrap().as_ref(), Some(frame)));
    }

    #[test]
    fn a_frame_that_is_cut_short_too_long_or_unknown_is_an_error() {
        let mut wire = Vec::new();
        Up::Input(b"abc".into()).write(&mut wire).unwrap();
        for end in 1..wire.len() {
            assert!(Up::read(&mut &wire[..end]).is_err(), "cut at {end}");
        }
        assert!(Up::Input(vec![0; LIMIT + 1]).write(&mut Vec::new()).is_err());
        for wire in [&b"i\xff\xff\xff\xff"[..], b"z\0\0\0\0", b"s\0\0\0\0", b"e\0\0\0\x01x"] {
            assert!(Up::read(&mut &*wire).is_err(), "{}", wire.escape_ascii());
        }
        for wire in [&b"t\0\0\0\x01x"[..], b"q\0\0\0\0", b"q\0\0\0\x02ab", b"a\0\0\0\x01x", b"r\0\0\0\0"] {
            assert!(Down::read(&mut &*wire).is_err(), "{}", wire.escape_ascii());
        }
    }
}
