//! The switches of this machine that decide what a run can do. Only a run shows whether it really works.

use std::borrow::Cow;

use super::switches::kernel;
use super::switches::number;
use super::switches::outside;
use super::switches::{Engine, Namespace, OLDEST};
use crate::capture::place::layout::Route;
use crate::capture::run::ids;
use crate::session::run::How;

/// The name of the condition that is the kernel's version.
pub const LINUX: &str = "Linux";

/// The name of the condition that a profile lets a program pass.
pub const APPARMOR: &str = "restricted by AppArmor";

/// One condition of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub name: &'static str,
    pub value: String,
    /// True if a run can work with it.
    pub good: bool,
    /// The remedy, if it is not good.
    pub remedy: Option<Cow<'static, str>>,
}

/// The profile that lets recant make user namespaces where AppArmor restricts them (Ubuntu 23.10 and later), for a binary at
/// this path: <https://gitlab.com/apparmor/apparmor/-/wikis/unprivileged_userns_restriction>. Packages have it for /usr/bin/recant.
pub fn apparmor_profile(binary: &str) -> String {
    const PACKAGED: &str = include_str!("../../../packaging/apparmor/recant");
    /// The characters that mean others in a path of a profile: apparmor.d(5).
    const SPECIAL: &str = "*?[]{}^\\\"";
    let mut path = String::new();
    for c in binary.chars() {
        if SPECIAL.contains(c) {
            path.push('\\');
        }
        path.push(c);
    }
    let profile = PACKAGED.replace("/usr/bin/recant", &format!("\"{path}\""));
    format!(
        "# Lets recant make the user namespaces that 'recant run' holds changes in.\n\
         # Put it in /etc/apparmor.d/recant, then: apparmor_parser -r /etc/apparmor.d/recant\n{profile}"
    )
}

/// The findings, for root or for an ordinary user. Leaves out a switch that this kernel lacks, if that is fine.
pub fn findings(root: bool) -> Vec<Finding> {
    let mut all = vec![linux(), overlays()];
    if !root {
        let limit = |name, path, remedy: &'static str| {
            number(path).map(|n| Finding { name, value: n.to_string(), good: n > 0, remedy: Some(remedy.into()) })
        };
        all.extend(limit("user namespaces", "user/max_user_namespaces", "sysctl user.max_user_namespaces=10000"));
        all.extend(limit("mount namespaces", "user/max_mnt_namespaces", "sysctl user.max_mnt_namespaces=10000"));
        all.extend(limit("IPC namespaces", "user/max_ipc_namespaces", "sysctl user.max_ipc_namespaces=10000"));
        let unprivileged =
            limit("user namespaces for users", "kernel/unprivileged_userns_clone", "sysctl kernel.unprivileged_userns_clone=1");
        all.extend(unprivileged);
        all.extend(number("kernel/apparmor_restrict_unprivileged_userns").map(|n| Finding {
            name: APPARMOR,
            value: if n == 0 { "no".into() } else { "yes, except for programs with a profile".into() },
            good: n == 0,
            remedy: Some("recant doctor --apparmor prints the profile that recant needs".into()),
        }));
    }
    all
}

/// The further groups of an ordinary user, and whether a run can change their files. `failed` is newgidmap's message when a run was tried.
/// `None` if the user has none.
pub fn groups(failed: Option<&str>) -> Option<Finding> {
    let (further, unread) = ids::further_groups();
    if further.is_empty() {
        return None;
    }
    let finding = |value: String, remedy: Option<String>| {
        Some(Finding { name: "further groups", value, good: remedy.is_none(), remedy: remedy.map(Cow::Owned) })
    };
    let shown = |gid: u32| ids::group_name(gid).map_or_else(|| gid.to_string(), |name| format!("{gid} {name}"));
    let closed: Vec<u32> = further.iter().filter(|group| !group.granted).map(|group| group.gid).collect();
    if let Some(why) = unread {
        return finding(why, Some("a run cannot change their files until you can read it: chmod a+r /etc/subgid".into()));
    }
    let user = ids::own_name().unwrap_or_else(|| "USER".into());
    if let [first, rest @ ..] = &closed[..] {
        let gid = if rest.is_empty() { first.to_string() } else { "GID".into() };
        let value =
            format!("a run cannot change their files: {}", closed.iter().copied().map(shown).collect::<Vec<_>>().join(", "));
        let price = format!("{user} then has that group for good, also once removed from it");
        return finding(value, Some(format!("usermod --add-subgids {gid}-{gid} {user} lets it; {price}")));
    }
    let all = further.iter().map(|group| shown(group.gid)).collect::<Vec<_>>().join(", ");
    match failed {
        Some(why) => finding(all, Some(format!("a run cannot change their files: {why}"))),
        None if ids::newgidmap_path().is_none() => {
            finding(all, Some("a run changes their files with newgidmap: install the package uidmap".into()))
        }
        None => finding(format!("a run can change their files: {all}"), None),
    }
}

/// The word for what becomes of changes at a place.
pub fn word(how: How) -> &'static str {
    match how {
        How::Captured => "held",
        How::ReadOnly => "read-only",
        How::Passed => "real",
        How::Hidden => "hidden",
        How::Private => "private",
        How::Scratch => "dropped at the end",
        How::Uncovered => "not held: read-only",
        How::Masked => "masked",
    }
}

fn linux() -> Finding {
    let (release, version) = kernel();
    let remedy = format!("Linux {}.{} or newer is needed", OLDEST.0, OLDEST.1);
    Finding { name: LINUX, value: release, good: version >= OLDEST, remedy: Some(remedy.into()) }
}

fn overlays() -> Finding {
    let listed = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let there = listed.lines().any(|line| line.split_whitespace().last() == Some("overlay"));
    let value = if there { "there" } else { "not loaded" };
    // The kernel loads it when a process with the right to do so asks for it.
    Finding { name: "overlayfs", value: value.into(), good: there, remedy: Some("modprobe overlay".into()) }
}

/// The user that recant runs as, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Here {
    pub uid: u32,
    pub name: Option<String>,
    /// The user that it is outside, if it is in a user namespace of its own; `Some(None)` if it has no id there.
    pub outside: Option<Option<u32>>,
    pub container: Option<Engine>,
    /// True if it is root of the machine, with all rights that a run of root needs.
    pub is_whole_root: bool,
    pub kernel: String,
    /// True if that is older than a run needs.
    pub is_old: bool,
}

pub fn here() -> Here {
    let uid = rustix::process::geteuid().as_raw();
    let (kernel, version) = kernel();
    Here {
        uid,
        name: ids::own_name(),
        outside: (!Namespace::User.is_first()).then(|| outside(uid)),
        container: Engine::here(),
        is_whole_root: Route::here() == Route::Root,
        kernel,
        is_old: version < OLDEST,
    }
}

impl Here {
    /// All of it for people, as a sentence without its full stop.
    pub fn words(&self) -> String {
        let user = || self.name.clone().map_or_else(|| format!("user {}", self.uid), |name| format!("user {name}"));
        let who = match (self.uid, self.outside, self.is_whole_root) {
            (0, None, true) => "root".into(),
            (0, None, false) => "root without CAP_SYS_ADMIN".into(),
            (0, Some(Some(outside)), _) => format!("root of a user namespace (user {outside} outside)"),
            (_, Some(Some(outside)), _) if outside != self.uid => {
                format!("{} of a user namespace (user {outside} outside)", user())
            }
            (_, Some(Some(_)), _) => format!("{} of a user namespace", user()),
            (_, Some(None), _) => "a user that its user namespace does not map".into(),
            (_, None, _) => user(),
        };
        let container = match self.container {
            None => "",
            Some(Engine::Docker) => " in a container of Docker",
            Some(Engine::Podman) => " in a container of Podman",
            Some(Engine::Other) => " in a container",
        };
        let old = if self.is_old { format!(": older than {}.{}", OLDEST.0, OLDEST.1) } else { String::new() };
        format!("{who}{container}, on Linux {}{old}", self.kernel)
    }
}

#[cfg(test)]
mod tests {
    use crate::capture::space::probe::*;

    #[test]
    fn the_profile_of_another_path_escapes_what_a_profile_would_read_as_a_glob() {
        let profile = apparmor_profile("/opt/a[1] b/recant");
        assert!(profile.contains("\nprofile recant \"/opt/a\\[1\\] b/recant\" flags=(unconfined) {\n  userns,\n"), "{profile}");
        assert!(!profile.contains("/usr/bin/recant"), "{profile}");
    }
}
