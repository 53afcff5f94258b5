//! The user and the groups that an ordinary user's run maps into its user namespaces.
//!
//! A process may map only itself, one user and one group (user_namespaces(7)): an overlay can't change what belongs to others (EOVERFLOW).
//! newgidmap(1), which is setuid, maps a further group of the user if /etc/subgid grants it (subgid(5)). recant runs it outside, for the
//! init, when the init asks ([`Word::MapGroups`]). The inner namespace's map is written by a process that stays in the outer one, as it
//! takes CAP_SETGID there.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::messages::{Word, say};
use super::raw_calls;
use crate::capture::place::layout::Route;
use crate::capture::space::refusals::acts;
use crate::error::{At, IoError, command, reason};
use crate::fs::searched;
use crate::remedy::{Remedy, shell};

/// The program that maps further groups: newgidmap(1), of the package uidmap.
const NEWGIDMAP: &str = "newgidmap";

/// The user that runs, and the groups that a run can map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ids {
    pub uid: u32,
    pub gid: u32,
    /// The further groups that newgidmap can map, in order.
    pub groups: Vec<u32>,
    /// The reason why the groups are unknown, for people.
    unread: Option<String>,
}

impl Ids {
    /// The ids of this process, for its route. Runs no program; reads /etc/subgid only if there are further groups.
    pub fn own(route: Route) -> Self {
        let may = route == Route::User && !rustix::thread::no_new_privs().unwrap_or(false) && newgidmap_path().is_some();
        let (further, unread) = if may { further_groups() } else { (Vec::new(), None) };
        let groups = further.into_iter().filter(|group| group.granted).map(|group| group.gid).collect();
        Self { uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw(), groups, unread }
    }

    /// The reason why the further groups that can be mapped are unknown, if they are: none is mapped then.
    pub fn unread(&self) -> Option<&str> {
        self.unread.as_deref()
    }

    /// Tells whether an overlay of a user's run can change what belongs to this user and group.
    pub fn has(&self, uid: u32, gid: u32) -> bool {
        uid == self.uid && (gid == self.gid || self.groups.contains(&gid))
    }

    /// Maps the ids in this process's own user namespace, the outer one of a run, in which it is root: the user to 0, the groups to 0, 1
    /// and so on. Returns the further groups that are mapped: all, or none.
    pub fn map_outer(&self, recant: &UnixStream) -> Result<Vec<u32>, IoError> {
        let inside = (1..).zip(&self.groups).map(|(inside, gid)| (inside, *gid));
        let map = [(0, self.gid)].into_iter().chain(inside).collect();
        let mapped = map_asking((0, self.uid), map, recant)?;
        Ok(if mapped { self.groups.clone() } else { Vec::new() })
    }

    /// Maps the ids in this process's own user namespace unchanged. With one namespace more a run has the ids that it has outside.
    pub fn map_same(&self, recant: &UnixStream) -> Result<(), IoError> {
        let map = [self.gid].iter().chain(&self.groups).map(|gid| (*gid, *gid)).collect();
        map_asking((self.uid, self.uid), map, recant).map(drop)
    }

    /// Enters the inner user namespace of a run, with a copy of the mounts; there the ids are as outside. `mapped` are the further groups
    /// of the outer one.
    pub fn enter_inner(&self, mapped: &[u32]) -> Result<(), IoError> {
        let enter = || raw_calls::unshare_user_and_mounts().at(acts::INNER_NAMESPACE, "unshare");
        if mapped.is_empty() {
            enter()?;
            return map_own((self.uid, 0), (self.gid, 0));
        }
        let own = std::process::id();
        let maps = Maps {
            uids: format!("{} 0 1\n", self.uid),
            gids: [self.gid].iter().chain(mapped).zip(0..).map(|(gid, outer)| format!("{gid} {outer} 1\n")).collect(),
        };
        let what = "the groups of the inner user namespace";
        let (mut ours, theirs) = UnixStream::pair().at("make a socket for", what)?;
        let Some(writer) = raw_calls::fork().at("fork a process that maps", what)? else {
            drop(ours);
            maps.write_for(own, theirs)
        };
        drop(theirs);
        let entered = enter();
        let mut answer = [0; 4];
        let answered = ours.write_all(&[0]).and_then(|()| ours.read_exact(&mut answer));
        raw_calls::wait_for(writer).at("wait for the process that maps", what)?;
        entered?;
        answered.at("map", what)?;
        match i32::from_ne_bytes(answer) {
            0 => Ok(()),
            errno => Err(io::Error::from_raw_os_error(errno)).at("map", what),
        }
    }
}

/// The text for a process's maps, one line a range.
struct Maps {
    uids: String,
    gids: String,
}

impl Maps {
    /// Waits until the process `pid` is in its new namespace, writes its maps, and answers 0 or the error number.
    fn write_for(&self, pid: u32, mut asker: UnixStream) -> ! {
        // Without a word the asker is gone.
        if asker.read_exact(&mut [0]).is_ok() {
            let told = tell(&format!("/proc/{pid}/setgroups"), "deny")
                .and_then(|()| tell(&format!("/proc/{pid}/uid_map"), &self.uids))
                .and_then(|()| tell(&format!("/proc/{pid}/gid_map"), &self.gids));
            let errno = told.err().map_or(0, |error| error.raw_os_error().unwrap_or(libc::EIO));
            let _gone = asker.write_all(&errno.to_ne_bytes());
        }
        raw_calls::exit_now(0)
    }
}

/// Maps one user, (inside, outside), and groups, the own one first, in this process's own user namespace: by newgidmap if there is more
/// than one. True if all are mapped; otherwise only the own one is.
fn map_asking(uid: (u32, u32), gids: Vec<(u32, u32)>, recant: &UnixStream) -> Result<bool, IoError> {
    let own = gids.first().copied().unwrap_or(uid);
    if gids.len() == 1 {
        map_own(uid, own)?;
        return Ok(true);
    }
    // Before any group is mapped: it cannot be denied afterwards.
    deny_setgroups()?;
    map_user(uid)?;
    say(recant, &Word::MapGroups(gids));
    let (mut from, mut answer) = (recant, [0]);
    from.read_exact(&mut answer).at("hear that groups are mapped from", "recant")?;
    let mapped = answer == [DONE];
    if !mapped {
        map_group(own)?;
    }
    Ok(mapped)
}

/// recant's answer to [`Word::MapGroups`] on success; anything else means failure.
const DONE: u8 = b'y';

/// Maps groups, (inside, outside), for the process `pid`, by newgidmap, and sends it the answer. The error is for people.
pub fn map_groups_of(pid: i32, map: &[(u32, u32)], mut answer: &UnixStream) -> Result<(), String> {
    let ranges = map.iter().flat_map(|(inside, outside)| [inside.to_string(), outside.to_string(), "1".into()]);
    let ran = crate::fs::command(NEWGIDMAP).arg(pid.to_string()).args(ranges).output();
    let done = match ran {
        Err(error) => Err(format!("{NEWGIDMAP}: {}", reason(&error))),
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(said.lines().next().map_or_else(|| format!("{NEWGIDMAP} failed"), str::to_owned))
        }
    };
    // If nobody reads it, the init is gone, which its end of the socket shows.
    let _gone = answer.write_all(&[if done.is_ok() { DONE } else { b'n' }]);
    done
}

fn map_own(uid: (u32, u32), gid: (u32, u32)) -> Result<(), IoError> {
    deny_setgroups()?;
    map_user(uid)?;
    map_group(gid)
}

fn deny_setgroups() -> Result<(), IoError> {
    tell("/proc/self/setgroups", "deny").at(acts::DENY_SETGROUPS, "/proc/self/setgroups")
}

fn map_user((inside, outside): (u32, u32)) -> Result<(), IoError> {
    tell("/proc/self/uid_map", &format!("{inside} {outside} 1")).at(acts::MAP_USER, "/proc/self/uid_map")
}

fn map_group((inside, outside): (u32, u32)) -> Result<(), IoError> {
    tell("/proc/self/gid_map", &format!("{inside} {outside} 1")).at(acts::MAP_GROUP, "/proc/self/gid_map")
}

/// Writes a text to a file of /proc in one call, as the kernel expects.
fn tell(path: &str, text: &str) -> io::Result<()> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    match rustix::io::write(&file, text.as_bytes())? {
        n if n == text.len() => Ok(()),
        _ => Err(Errno::IO.into()),
    }
}

/// A group of the user besides the effective one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Further {
    pub gid: u32,
    /// True if /etc/subgid lets the user map it.
    pub granted: bool,
}

/// The alternative that works where a capture does not.
/// The remedy where a run cannot change what belongs to another user, or to the group `gid` of this user's own files.
pub fn remedy(gid: Option<u32>) -> Remedy {
    let in_place = shell("recant run --in DIR") + " changes files for real, between two snapshots";
    match gid.filter(|gid| is_in(*gid)) {
        Some(_) => command("doctor") + " says how a run can map that group of yours; or: " + in_place,
        None => in_place,
    }
}

/// True if the caller is in a group.
fn is_in(gid: u32) -> bool {
    gid == rustix::process::getegid().as_raw() || further().contains(&gid)
}

/// The caller's further groups, in order; and, for people, the reason why their grants are unknown, if they are.
pub fn further_groups() -> (Vec<Further>, Option<String>) {
    let further = further();
    if further.is_empty() {
        return (Vec::new(), None);
    }
    let (granted, unread) = match granted(rustix::process::geteuid().as_raw()) {
        Ok(granted) => (granted, None),
        Err(error) => (Vec::new(), Some(format!("cannot read {SUBGID}: {}", reason(&error)))),
    };
    let group = |gid| Further { gid, granted: granted.iter().any(|range| range.contains(&gid)) };
    (further.into_iter().map(group).collect(), unread)
}

fn further() -> Vec<u32> {
    let own = rustix::process::getegid().as_raw();
    let all = rustix::process::getgroups().unwrap_or_default();
    let mut further: Vec<u32> = all.into_iter().map(|gid| gid.as_raw()).filter(|gid| *gid != own).collect();
    further.sort_unstable();
    further.dedup();
    further
}

/// The groups that users may map: subgid(5).
const SUBGID: &str = "/etc/subgid";

/// The ranges of groups that a user may map: lines `USER:GID:COUNT`, where USER is a name or a number. Empty without the file.
fn granted(uid: u32) -> io::Result<Vec<std::ops::Range<u32>>> {
    let text = match std::fs::read(SUBGID) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text?,
    };
    let text = String::from_utf8_lossy(&text);
    let owners = [name_in("/etc/passwd", uid), Some(uid.to_string())];
    let range = |line: &str| {
        let (owner, range) = line.split_once(':')?;
        let (start, count) = range.split_once(':')?;
        let start: u32 = start.parse().ok()?;
        let end = start.checked_add(count.trim().parse().ok()?)?;
        owners.iter().flatten().any(|name| name == owner).then_some(start..end)
    };
    Ok(text.lines().filter_map(range).collect())
}

/// The caller's name, if /etc/passwd has one: newgidmap works for no other user.
pub fn own_name() -> Option<String> {
    name_in("/etc/passwd", rustix::process::geteuid().as_raw())
}

/// The name of a group, if /etc/group has one.
pub fn group_name(gid: u32) -> Option<String> {
    name_in("/etc/group", gid)
}

/// The name for a number in a file like passwd(5) or group(5).
fn name_in(file: &str, id: u32) -> Option<String> {
    let text = std::fs::read(file).ok()?;
    let text = String::from_utf8_lossy(&text);
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        (number.parse() == Ok(id)).then(|| name.to_owned())
    })
}

pub fn newgidmap_path() -> Option<PathBuf> {
    let all = searched().into_iter().map(|dir| dir.join(NEWGIDMAP));
    all.filter(|file| file.parent() != Some(Path::new(OsStr::new("")))).find(|file| file.is_file())
}
