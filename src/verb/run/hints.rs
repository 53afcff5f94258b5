//! Facts about a run's surroundings that are told before its command: another pending session, and changes below its own since that held them.

use std::cell::LazyCell;

use super::notice::Notice;
use crate::compare::{OnTree, Sources};
use crate::error::Error;
use crate::fs::AbsPath;
use crate::session::{Id, Net, Origin, Session, Side, Status, Store};
use crate::tree::project_of;
use crate::verb::desk::Desk;
use crate::verb::fact::Fact;

/// The number of newest sessions that are searched for a pending one: a run must not cost as much as a listing of thousands.
const NEWEST: usize = 8;

/// Tells once that this run does not see the newest pending session of a run from this project. An unreadable session is skipped: the
/// listings name it. Returns true if there is one of which the user was told, now or before.
pub fn pending(desk: &Desk, store: &Store, own: &Id, cwd: &AbsPath) -> bool {
    let names = store.sessions().names().unwrap_or_default();
    let mut ids: Vec<Id> = names.iter().filter_map(|name| Id::parse(std::str::from_utf8(name).ok()?)).collect();
    // Ids begin with their time.
    ids.sort_by(|a, b| b.as_str().cmp(a.as_str()));
    let home = dirs::home_dir();
    // Looked for only if something is pending.
    let project = LazyCell::new(|| project_of(cwd, home.as_deref()));
    let here = |directory: &AbsPath| directory.is_under(&project) || project.is_under(&project_of(directory, home.as_deref()));
    let pending = ids.iter().filter(|id| *id != own).take(NEWEST).find_map(|id| {
        let session = store.session(id).ok()?;
        let header = &session.header;
        let is_pending = header.status() == Status::Pending && header.origin == Origin::Captured && header.counts.changes > 0;
        let is_here = is_pending && session.run().is_ok_and(|run| run.is_some_and(|run| here(&run.command.cwd)));
        is_here.then_some(session)
    });
    let Some(session) = pending else { return false };
    if !session.was_told().is_ok_and(|told| told) {
        desk.caller.tell(Fact::Run(Notice::Pending(session.id())));
        remember(desk, &session);
    }
    true
}

/// Records that the user was told of pending sessions, so that later runs do not tell of this one. A hint: an error is none.
pub fn remember(desk: &Desk, session: &Session) {
    drop(session.note_told(&desk.fs));
}

/// The most paths that are looked at before a command goes on in a session: it must not cost more, the more the session holds.
const LOOKED_AT: usize = 100;

/// Warns, before a command goes on in a session, of paths that have changed on the tree since the session held them, as far as a look at
/// some of them tells. The command sees what the session holds; a commit will find conflicts there.
pub fn changed_below(desk: &Desk, session: &Session) -> Result<(), Error> {
    let changes = Net::open(session)?.some(LOOKED_AT)?;
    let mut sources = Sources::of(session)?;
    let is_changed = |path: &_| sources.on_tree(path, Side::Never) == OnTree::Changed;
    let paths: Vec<AbsPath> = changes.into_iter().filter(is_changed).map(|change| change.path).collect();
    if !paths.is_empty() {
        desk.caller.tell(Fact::Run(Notice::ChangedBelow { id: session.id(), paths }));
    }
    Ok(())
}
