//! A request of HTTP: a tunnel, or a page.

use std::fmt::Display;
use std::io::{self, Write};
use std::net::TcpStream;

use super::admission::Admission;
use super::forward::forward;
use super::head;
use super::head::{Came, Target};
use super::relay::both_ways;
use crate::settings::Host;

/// The status lines of answers that are not the server's.
const ESTABLISHED: &str = "200 Connection established";
const BAD_REQUEST: &str = "400 Bad Request";
const REFUSED: &str = "403 Not listed by --network of recant";
const BAD_GATEWAY: &str = "502 Bad Gateway";

pub fn answer(mut client: &TcpStream, admission: &Admission) -> io::Result<()> {
    let (head, came) = match head::read(client)? {
        Came::Whole(head, came) => (head, came),
        Came::Malformed(why) => return say(client, BAD_REQUEST, &why),
        Came::Nothing => return Ok(()),
    };
    match &head.target {
        Target::Tunnel(host, port) => {
            let Some(mut server) = connect(client, admission, (host, *port))? else { return Ok(()) };
            client.write_all(format!("HTTP/1.1 {ESTABLISHED}\r\n\r\n").as_bytes())?;
            server.write_all(&came)?;
            both_ways(client, &server)
        }
        Target::Page { host, port, path } => {
            let Some(server) = connect(client, admission, (host, *port))? else { return Ok(()) };
            forward((client, came), &server, &head, (host, *port, path))
        }
    }
}

/// The server, which is waited for as long as it likes from here on; `None` if it cannot be reached, as the client was told.
fn connect(client: &TcpStream, admission: &Admission, (host, port): (&Host, u16)) -> io::Result<Option<TcpStream>> {
    match admission.connect(host.clone(), port) {
        Ok(server) => {
            server.set_nodelay(true)?;
            client.set_read_timeout(None)?;
            Ok(Some(server))
        }
        Err(why) => {
            let status = if why.is_refusal() { REFUSED } else { BAD_GATEWAY };
            say(client, status, &why).map(|()| None)
        }
    }
}

fn say<T: Display>(mut client: &TcpStream, status: &str, why: &T) -> io::Result<()> {
    let text = format!("{why}\n");
    let length = text.len();
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    client.write_all(format!("{head}{text}").as_bytes())
}
