//! Serves the connections of one run.

use std::io::{self, Read};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::admission::Admission;
use super::thread::start;
use super::{http, socks};
use crate::settings::Entry;

/// The connections that are served at once. Further ones wait.
const AT_ONCE: usize = 256;

/// The time that a request may take to come.
const PATIENCE: Duration = Duration::from_secs(30);

/// Serves what connects to `listener`, until `recant` asks for what was refused, or is gone. It gets a list of [`super::Refused`] in JSON.
pub fn serve(listener: TcpListener, mut recant: UnixStream, list: Vec<Entry>) {
    let admission = Arc::new(Admission::of(list));
    let serving = admission.clone();
    if start(move || accept(&listener, &serving)).is_ok() {
        // An end, or a fault: nothing is ever sent.
        let _end = recant.read(&mut [0]);
    }
    let _gone = serde_json::to_writer(&recant, &admission.refused());
}

fn accept(listener: &TcpListener, admission: &Arc<Admission>) {
    let places = Arc::new(Places::default());
    loop {
        let place = Place::wait(&places);
        match listener.accept() {
            Ok((client, _)) => {
                let admission = admission.clone();
                // Without a thread for it, the connection ends.
                let _ended = start(move || {
                    let _place = place;
                    // A client that is gone, or sends nothing, hears no answer.
                    let _ended = answer(&client, &admission);
                    let _closed = client.shutdown(Shutdown::Both);
                });
            }
            // Out of descriptors, or a connection that was gone at once.
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

fn answer(client: &TcpStream, admission: &Admission) -> io::Result<()> {
    client.set_nodelay(true)?;
    client.set_read_timeout(Some(PATIENCE))?;
    let mut first = [0];
    if client.peek(&mut first)? == 0 {
        return Ok(());
    }
    if first[0] == socks::VERSION { socks::answer(client, admission) } else { http::answer(client, admission) }
}

/// The number of connections that are served.
#[derive(Default)]
struct Places {
    taken: Mutex<usize>,
    freed: Condvar,
}

/// One of them, until dropped.
struct Place(Arc<Places>);

impl Place {
    fn wait(places: &Arc<Places>) -> Self {
        let taken = places.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = |taken: &mut usize| *taken >= AT_ONCE;
        *places.freed.wait_while(taken, is_full).unwrap_or_else(PoisonError::into_inner) += 1;
        Self(places.clone())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        *self.0.taken.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.freed.notify_one();
    }
}
