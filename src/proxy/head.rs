//! The head of a request: for whom it is, and how long its body is.

use std::io::{self, Read};
use std::net::TcpStream;

use super::error::Malformed;
use crate::settings::Host;

/// The most bytes of a head, and the most lines in it.
const LONGEST: usize = 64 << 10;
const MOST_LINES: usize = 128;

/// A request, without its body.
#[derive(Debug)]
pub struct Head {
    pub method: String,
    pub target: Target,
    /// The minor version of HTTP/1.
    pub minor: u8,
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Body,
}

/// The target of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Target {
    /// CONNECT.
    Tunnel(Host, u16),
    /// `http://HOST[:PORT]PATH`.
    Page { host: Host, port: u16, path: String },
}

/// The way in which a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    None,
    Length(u64),
    Chunked,
}

/// The beginning of a connection.
#[derive(Debug)]
pub enum Came {
    /// A head, and what has come with it of the body.
    Whole(Head, Vec<u8>),
    Malformed(Malformed),
    /// The client left.
    Nothing,
}

/// Waits for a head.
pub fn read(mut client: &TcpStream) -> io::Result<Came> {
    let mut came = Vec::new();
    let mut room = vec![0; 16 << 10];
    loop {
        let got = client.read(&mut room)?;
        if got == 0 {
            return Ok(Came::Nothing);
        }
        came.extend_from_slice(&room[..got]);
        match parse(&came) {
            Ok(None) if came.len() > LONGEST => return Ok(Came::Malformed(Malformed::TooLong)),
            Ok(None) => {}
            Ok(Some((head, length))) => return Ok(Came::Whole(head, came.split_off(length))),
            Err(why) => return Ok(Came::Malformed(why)),
        }
    }
}

/// The head that the bytes begin with, and its length; `None` if it has not ended.
fn parse(bytes: &[u8]) -> Result<Option<(Head, usize)>, Malformed> {
    let mut room = [httparse::EMPTY_HEADER; MOST_LINES];
    let mut request = httparse::Request::new(&mut room);
    let length = match request.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(Malformed::TooLong),
        Err(_) => return Err(Malformed::Head),
    };
    let headers: Vec<_> = request.headers.iter().map(|line| (line.name.to_ascii_lowercase(), line.value.to_vec())).collect();
    let (method, minor) = (request.method.unwrap_or_default().to_owned(), request.version.unwrap_or_default());
    let target = target(&method, request.path.unwrap_or_default()).ok_or(Malformed::Target)?;
    agrees(&target, &headers)?;
    let body = body(&headers, minor)?;
    Ok(Some((Head { method, target, minor, headers, body }, length)))
}

fn target(method: &str, words: &str) -> Option<Target> {
    if method == "CONNECT" {
        let (host, port) = Host::with_port(words)?;
        return Some(Target::Tunnel(host, port?));
    }
    let (scheme, rest) = words.split_once("://")?;
    let at = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(at);
    let (host, port) = Host::with_port(authority)?;
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    scheme.eq_ignore_ascii_case("http").then(|| Target::Page { host, port: port.unwrap_or(80), path })
}

/// Refuses a head whose `Host` is another one than its target's: the server would believe one of the two.
fn agrees(target: &Target, headers: &[(String, Vec<u8>)]) -> Result<(), Malformed> {
    let (host, port) = match target {
        Target::Tunnel(host, port) | Target::Page { host, port, .. } => (host, *port),
    };
    let is_same = |(_, value): &(String, Vec<u8>)| {
        let named = std::str::from_utf8(value).ok().and_then(Host::with_port);
        named.is_some_and(|(also, at)| also == *host && at.is_none_or(|at| at == port))
    };
    let mut named = headers.iter().filter(|(name, _)| name == "host");
    let first = named.next();
    if first.is_none_or(is_same) && named.next().is_none() { Ok(()) } else { Err(Malformed::Host) }
}

/// The length of the body: RFC 9112, 6.3. What two readers could take in two ways is refused.
fn body(headers: &[(String, Vec<u8>)], minor: u8) -> Result<Body, Malformed> {
    let values = |name: &str| -> Vec<&[u8]> { headers.iter().filter(|line| line.0 == name).map(|line| &*line.1).collect() };
    match (&values("transfer-encoding")[..], &values("content-length")[..]) {
        ([], []) => Ok(Body::None),
        ([], [length]) if !length.is_empty() && length.iter().all(u8::is_ascii_digit) => {
            let length = std::str::from_utf8(length).ok().and_then(|digits| digits.parse().ok());
            length.map(Body::Length).ok_or(Malformed::Length)
        }
        ([coding], []) if minor == 1 && coding.eq_ignore_ascii_case(b"chunked") => Ok(Body::Chunked),
        _ => Err(Malformed::Length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Head, Malformed> {
        parse(text.as_bytes()).map(|head| head.expect("a whole head").0)
    }

    #[test]
    fn what_two_readers_could_take_in_two_ways_is_refused() {
        for (head, why) in [
            ("GET http://a.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n", Malformed::Host),
            ("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\n\r\n", Malformed::Host),
            ("GET http://a.example/ HTTP/1.1\r\nHost: a.example:81\r\n\r\n", Malformed::Host),
            ("CONNECT a.example:443 HTTP/1.1\r\nHost: b.example:443\r\n\r\n", Malformed::Host),
            ("GET http://a.example@b.example/ HTTP/1.1\r\n\r\n", Malformed::Target),
            ("GET http://a.example\\@b.example/ HTTP/1.1\r\n\r\n", Malformed::Target),
            ("GET https://a.example/ HTTP/1.1\r\n\r\n", Malformed::Target),
            ("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", Malformed::Target),
            ("CONNECT a.example HTTP/1.1\r\n\r\n", Malformed::Target),
            ("POST http://a.example/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", Malformed::Length),
            ("POST http://a.example/ HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\n", Malformed::Length),
            ("POST http://a.example/ HTTP/1.1\r\nContent-Length: +1\r\n\r\n", Malformed::Length),
            ("POST http://a.example/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", Malformed::Length),
            ("POST http://a.example/ HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\n", Malformed::Length),
            ("POST http://a.example/ HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", Malformed::Length),
            ("POST http://a.example/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", Malformed::Length),
            ("POST http://a.example/ HTTP/1.1\r\nTransfer-Encoding : chunked\r\n\r\n", Malformed::Head),
            ("GET http://a.example/ HTTP/1.1\r\nA: b\r\n Host: c\r\n\r\n", Malformed::Head),
        ] {
            assert_eq!(parsed(head).expect_err(head), why, "{head}");
        }
    }

    #[test]
    fn a_target_is_read_as_a_host_a_port_and_a_path() {
        let page = |host: &str, port, path: &str| Target::Page { host: Host::parse(host).expect(host), port, path: path.into() };
        for (words, want) in [
            ("http://a.example", page("a.example", 80, "/")),
            ("HTTP://A.example.:8080/x?y", page("a.example", 8080, "/x?y")),
            ("http://a.example?y=http://b.example/", page("a.example", 80, "/?y=http://b.example/")),
            ("http://[fd00::1]:81/", page("[fd00::1]", 81, "/")),
        ] {
            let head = parsed(&format!("GET {words} HTTP/1.1\r\n\r\n")).expect(words);
            assert_eq!(head.target, want, "{words}");
        }
    }
}
