//! A request of HTTP without TLS, written anew: exactly one goes to the server, whose answer goes back as it is.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};

use super::head::{Body, Head};
use super::relay;
use crate::settings::Host;

/// Headers that are between the client and this proxy alone, or are written anew: RFC 9110, 7.6.1. Without `upgrade` the connection stays one
/// of HTTP.
const OWN: [&str; 12] = [
    "host",
    "connection",
    "proxy-connection",
    "proxy-authorization",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "http2-settings",
    "transfer-encoding",
    "content-length",
    "proxy-authenticate",
];

/// The longest line of a body in chunks, and the most lines behind it.
const LINE: u64 = 4 << 10;
const TRAILERS: usize = 64;

/// Sends the request on, with its body, and the answer back. `came`: the beginning of the body.
pub fn forward(
    (client, came): (&TcpStream, Vec<u8>),
    mut server: &TcpStream,
    head: &Head,
    (host, port, path): (&Host, u16, &str),
) -> io::Result<()> {
    server.write_all(&written(head, (host, port, path)))?;
    let mut from = BufReader::new(came.chain(client));
    relay::answers(client, server, || {
        if send_body(&mut from, server, head.body).is_err() {
            // It is cut off, or the server has answered before its end: that answer still goes back.
            let _ended = server.shutdown(Shutdown::Write);
        }
        // What follows is no part of the request: it goes nowhere. The client's end is that of the answer too.
        let _ended = io::copy(&mut from, &mut io::sink());
        relay::cut(client, server);
    })
}

/// The head as the server gets it.
fn written(head: &Head, (host, port, path): (&Host, u16, &str)) -> Vec<u8> {
    let port = if port == 80 { String::new() } else { format!(":{port}") };
    let mut text = format!("{} {path} HTTP/1.{}\r\nHost: {host}{port}\r\n", head.method, head.minor).into_bytes();
    let connection = head.headers.iter().filter(|(name, _)| name == "connection");
    let named: Vec<String> = connection
        .flat_map(|(_, value)| value.split(|b| *b == b','))
        .map(|word| String::from_utf8_lossy(word.trim_ascii()).to_ascii_lowercase())
        .collect();
    for (name, value) in head.headers.iter().filter(|(name, _)| !OWN.contains(&&**name) && !named.contains(name)) {
        text.extend_from_slice(name.as_bytes());
        text.extend_from_slice(b": ");
        text.extend_from_slice(value);
        text.extend_from_slice(b"\r\n");
    }
    let body = match head.body {
        Body::None => String::new(),
        Body::Length(length) => format!("Content-Length: {length}\r\n"),
        Body::Chunked => "Transfer-Encoding: chunked\r\n".to_owned(),
    };
    text.extend_from_slice(format!("{body}Connection: close\r\n\r\n").as_bytes());
    text
}

fn send_body(from: &mut impl BufRead, mut to: &TcpStream, body: Body) -> io::Result<()> {
    match body {
        Body::None => Ok(()),
        Body::Length(length) => send_exactly(from, &mut to, length),
        Body::Chunked => send_chunks(from, &mut to),
    }
}

/// Sends chunks on, each with a size that is written anew, and no trailers.
fn send_chunks(from: &mut impl BufRead, to: &mut impl Write) -> io::Result<()> {
    loop {
        let line = line(from)?;
        let digits = line.split(|b| *b == b';').next().unwrap_or_default().trim_ascii_end();
        let is_size = (1..=15).contains(&digits.len()) && digits.iter().all(u8::is_ascii_hexdigit);
        let size = std::str::from_utf8(digits).ok().filter(|_| is_size).and_then(|digits| u64::from_str_radix(digits, 16).ok());
        match size.ok_or(io::ErrorKind::InvalidData)? {
            0 => break,
            size => {
                write!(to, "{size:x}\r\n")?;
                send_exactly(from, to, size)?;
                if !self::line(from)?.is_empty() {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                to.write_all(b"\r\n")?;
            }
        }
    }
    for _ in 0..TRAILERS {
        if line(from)?.is_empty() {
            return to.write_all(b"0\r\n\r\n");
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

/// A line without its end, CR LF.
fn line(from: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    from.by_ref().take(LINE).read_until(b'\n', &mut line)?;
    let length = line.strip_suffix(b"\r\n").ok_or(io::ErrorKind::InvalidData)?.len();
    line.truncate(length);
    Ok(line)
}

fn send_exactly(from: &mut impl BufRead, to: &mut impl Write, length: u64) -> io::Result<()> {
    let sent = io::copy(&mut from.by_ref().take(length), to)?;
    if sent == length { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks(text: &str) -> io::Result<(String, usize)> {
        let (mut from, mut to) = (text.as_bytes(), Vec::new());
        send_chunks(&mut from, &mut to)?;
        Ok((String::from_utf8(to).expect("text"), from.len()))
    }

    #[test]
    fn chunks_end_where_they_say_and_what_follows_stays() {
        let (sent, left) = chunks("5;x=y\r\nhello\r\n0A\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\nGET / HTTP/1.1").expect("chunks");
        assert_eq!(sent, "5\r\nhello\r\na\r\n0123456789\r\n0\r\n\r\n");
        assert_eq!(left, "GET / HTTP/1.1".len());
        for wrong in [
            "5\nhello\r\n0\r\n\r\n",
            "-1\r\n",
            "\r\n",
            "5\r\nhello!\r\n",
            "5\r\nhel",
            "0x5\r\nhello\r\n",
            "10000000000000000\r\n",
        ] {
            assert!(chunks(wrong).is_err(), "{wrong:?}");
        }
    }
}
