//! `proxy`: the process that serves a run's way out.

use std::os::fd::{AsFd, OwnedFd};

use crate::capture::close_inherited;
use crate::error::Kind;
use crate::face::args;
use crate::face::call_end::Ended;
use crate::proxy::serve;

/// Serves the listening socket on standard input, until the other end of standard output is gone.
pub fn proxy(args: &args::Proxy) -> Ended {
    // A caller of recant may wait until nobody has its pipe open any more.
    if close_inherited().is_err() {
        return Ended::With(Kind::Refused);
    }
    let own = |stream: &dyn AsFd| -> Option<OwnedFd> { stream.as_fd().try_clone_to_owned().ok() };
    let (Some(listener), Some(recant)) = (own(&std::io::stdin()), own(&std::io::stdout())) else {
        return Ended::With(Kind::Refused);
    };
    serve(listener.into(), recant.into(), args.hosts.clone());
    Ended::Done
}
