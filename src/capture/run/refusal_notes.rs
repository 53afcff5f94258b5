//! Tells a person of calls that were refused because of the run, with what helps. Each is compared with the real tree first: one that would
//! fail without recant, too, gets no word.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::Access;

use super::ids::{Ids, remedy};
use super::listening_sockets;
use super::messages::Refusal;
use crate::capture::place::mount_plan::Plan;
use crate::error::{command, shell_word};
use crate::fs::{AbsPath, Dev, Dir, Sort, Stat};
use crate::session::How;

/// The most lines of a sort. The rest is counted.
const MOST_LINES: usize = 3;

/// The places of sockets that the C library asks for names of users and hosts, and does without.
const NAME_SERVICES: [&str; 4] = ["/run/systemd", "/run/nscd", "/run/dbus", "/var/lib/sss"];

/// The most directories that were not renamed and are told apart.
const MOST_NOT_RENAMED: usize = 1000;

#[derive(Debug, Default)]
pub struct RefusalNotes {
    lines: Vec<String>,
    /// Of files that are closed to the command.
    closed: Vec<String>,
    not_renamed: Vec<String>,
}

impl RefusalNotes {
    /// Notes a refusal, if it is by the run of this plan. `by_agent`: whether an agent calls.
    pub fn hear(&mut self, refusal: Refusal, plan: &Plan, by_agent: bool) {
        let lines = if matches!(refusal, Refusal::Hidden { .. }) { &mut self.closed } else { &mut self.lines };
        if let Some(line) = line(refusal, plan, by_agent).filter(|line| !lines.contains(line)) {
            lines.push(line);
        }
    }

    /// Notes the reason for which a directory was not renamed.
    pub fn hear_not_renamed(&mut self, why: String) {
        if self.not_renamed.len() < MOST_NOT_RENAMED && !self.not_renamed.contains(&why) {
            self.not_renamed.push(why);
        }
    }

    /// The lines for a person. `has_failed`: the command; one that went well could do without what is closed to it, if it wanted more than
    /// to list it.
    pub fn lines(self, has_failed: bool) -> Vec<String> {
        let mut lines = few(self.not_renamed, "directories could not be renamed in the run");
        lines.extend(few(if has_failed { self.closed } else { Vec::new() }, "closed files were asked for"));
        lines.extend(few(self.lines, "paths were refused to the command because of the run"));
        lines
    }
}

/// The first of these lines, and the number of the others.
fn few(mut lines: Vec<String>, of: &str) -> Vec<String> {
    let more = lines.len().saturating_sub(MOST_LINES);
    // One more takes no more room than its number.
    if more > 1 {
        lines.truncate(MOST_LINES);
        lines.push(format!("{more} other {of}"));
    }
    lines
}

fn line(refusal: Refusal, plan: &Plan, by_agent: bool) -> Option<String> {
    match refusal {
        Refusal::ReadOnly { path, is_name } => read_only(&AbsPath::parse(path).ok()?, is_name, plan),
        Refusal::NotMapped { path, is_name } => not_mapped(&AbsPath::parse(path).ok()?, is_name, &plan.ids, by_agent),
        Refusal::Apart { from, to, is_link } => apart(&AbsPath::parse(from).ok()?, &AbsPath::parse(to).ok()?, is_link),
        Refusal::Hidden { path } => closed(&AbsPath::parse(path).ok()?, plan),
        Refusal::Socket { path, dev, ino } => dead_socket(&AbsPath::parse(path).ok()?, (Dev(dev.0, dev.1), ino)),
    }
}

fn read_only(path: &AbsPath, is_name: bool, plan: &Plan) -> Option<String> {
    let directory = path.parent()?;
    if !if is_name { is_writable(&directory, true) } else { is_writable(path, false) } {
        return None;
    }
    let mount = mount_of(&directory);
    // Beside a mount, a file that is too large to be copied, or a directory of very many.
    let is_held = plan.targets.iter().any(|held| directory.is_under(&held.path) && mount_of(&held.path) == mount);
    let is_beyond = |above: &AbsPath| !plan.targets.iter().any(|held| held.path.is_under(above));
    let is_open = |above: &AbsPath| is_beyond(above) && is_writable(above, true) && mount_of(above) == mount;
    let remedy = match path.ancestors().take_while(is_open).last() {
        Some(top) if !is_held => holding(&top),
        _ if is_name => holding(&directory),
        _ => Some(format!("; --pass {} leaves it real", shell_word(path.as_bytes()))),
    };
    Some(format!("{path}: not held, so read-only for the command{}", remedy.unwrap_or_default()))
}

/// The setting that holds a directory. `None` if the file of settings cannot name it, as it is UTF-8.
fn holding(directory: &AbsPath) -> Option<String> {
    let path = std::str::from_utf8(directory.as_bytes()).ok()?;
    let is_plain = !path.contains(|sign: char| sign == '\'' || sign.is_control());
    // What JSON escapes, TOML escapes likewise, but for DEL.
    let escaped = || serde_json::Value::from(path).to_string().replace('\u{7f}', "\\u007f");
    Some(format!("; capture.also = [{}] holds it", if is_plain { format!("'{path}'") } else { escaped() }))
}

/// The mount that a directory lies in, outside.
fn mount_of(directory: &AbsPath) -> Option<u64> {
    Some(Dir::open(directory.as_path()).ok()?.stat().ok()?.mount)
}

fn not_mapped(path: &AbsPath, is_name: bool, ids: &Ids, by_agent: bool) -> Option<String> {
    let written = if is_name { path.parent()? } else { path.clone() };
    let stat = rustix::fs::stat(written.as_path()).ok()?;
    if ids.has(stat.st_uid, stat.st_gid) || !is_writable(&written, is_name) {
        return None;
    }
    let is_mine = stat.st_uid == ids.uid;
    let belongs = if is_mine { format!("group {}", stat.st_gid) } else { format!("user {}", stat.st_uid) };
    let advice = if by_agent { String::new() } else { format!("; {}", remedy(is_mine.then_some(stat.st_gid))) };
    Some(format!("{written}: of {belongs}, so a run cannot change it{advice}"))
}

fn apart(from: &AbsPath, to: &AbsPath, is_link: bool) -> Option<String> {
    // What was made in the run is not there outside: the nearest directory above is.
    let mount = |path: &AbsPath| path.ancestors().find_map(|above| mount_of(&above));
    let is_one = mount(from).is_some_and(|mount_of_from| mount(to) == Some(mount_of_from));
    let (not_done, copies) = if is_link { ("not linked as", "cp") } else { ("not renamed to", "mv") };
    is_one.then(|| format!("{from}: {not_done} {to}: a run holds the two places apart (cross-device link); {copies} copies"))
}

/// `None` for one that a person asked to be hidden.
fn closed(path: &AbsPath, plan: &Plan) -> Option<String> {
    let row = plan.coverage().iter().find(|row| row.path == *path && row.how == How::Closed)?;
    let what = row.why.as_deref().unwrap_or_default();
    Some(format!("{path}: closed to the command ({what}); --open opens it"))
}

fn dead_socket(path: &AbsPath, (dev, ino): (Dev, u64)) -> Option<String> {
    let real = at(path)?;
    let is_asked_for_names = NAME_SERVICES.iter().any(|place| path.as_path().starts_with(place));
    // A socket that is passed is the real one inside, too.
    let is_alive = (real.dev, real.ino) == (dev, ino);
    if real.sort != Sort::Socket || is_alive || is_asked_for_names || !is_writable(path, false) {
        return None;
    }
    let name = Path::new(path.as_path()).file_name()?.as_bytes().to_vec();
    let word = shell_word(path.as_bytes());
    listening_sockets::has(&real, &name).then(|| {
        let again = command(format_args!("run --pass {word} …"));
        format!("{path}: a socket of a program outside, dead in a run; {again} reaches it")
    })
}

fn at(path: &AbsPath) -> Option<Stat> {
    let (parent, name) = (path.parent()?, path.split()?.1.to_vec());
    Dir::open(parent.as_path()).ok()?.at(&name).stat().ok()?
}

/// True if the caller may write to an object, or make names in a directory, on the real tree: access(2).
fn is_writable(path: &AbsPath, is_directory: bool) -> bool {
    let search = if is_directory { Access::EXEC_OK } else { Access::empty() };
    rustix::fs::access(path.as_path(), Access::WRITE_OK | search).is_ok()
}
