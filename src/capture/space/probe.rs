//! The switches of this machine that decide what a run can do. Only a run shows whether it really works.

use serde::Serialize;

use super::refusals::Cause;
use super::switches::{Engine, Namespace, OLDEST, kernel, number, outside};
use crate::capture::place::layout::Route;
use crate::capture::run::ids;
use crate::remedy::{Remedy, shell, words};

/// One condition of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub name: &'static str,
    pub value: String,
    /// True if a run can work with it.
    pub good: bool,
    /// The remedy, if it is not good.
    pub remedy: Option<Remedy>,
    /// The cause that it would be of a run that fails.
    #[serde(skip)]
    pub cause: Option<Cause>,
}

impl Finding {
    /// A condition that is a cause, with its remedy, unless it is good.
    fn new(name: &'static str, value: impl Into<String>, good: bool, cause: Cause) -> Self {
        let remedy = (!good).then(|| cause.remedy());
        Self { name, value: value.into(), good, remedy, cause: Some(cause) }
    }
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
        let limit = |name, path, cause| number(path).map(|n| Finding::new(name, n.to_string(), n > 0, cause));
        all.extend(limit("user namespaces", "user/max_user_namespaces", Cause::NoneAllowed("user.max_user_namespaces")));
        all.extend(limit("mount namespaces", "user/max_mnt_namespaces", Cause::NoneAllowed("user.max_mnt_namespaces")));
        all.extend(limit("IPC namespaces", "user/max_ipc_namespaces", Cause::NoneAllowed("user.max_ipc_namespaces")));
        all.extend(limit("user namespaces for users", "kernel/unprivileged_userns_clone", Cause::NotForUsers));
        all.extend(number("kernel/apparmor_restrict_unprivileged_userns").map(|n| {
            let value = if n == 0 { "no" } else { "yes, except for programs with a profile" };
            Finding::new("restricted by AppArmor", value, n == 0, Cause::Restricted)
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
    let finding = |value: String, remedy: Option<Remedy>| {
        Some(Finding { name: "further groups", value, good: remedy.is_none(), remedy, cause: None })
    };
    let shown = |gid: u32| ids::group_name(gid).map_or_else(|| gid.to_string(), |name| format!("{gid} {name}"));
    let closed: Vec<u32> = further.iter().filter(|group| !group.granted).map(|group| group.gid).collect();
    if let Some(why) = unread {
        return finding(why, Some("a run cannot change their files until you can read it: " + shell("chmod a+r /etc/subgid")));
    }
    let user = ids::own_name().unwrap_or_else(|| "USER".into());
    if let [first, rest @ ..] = &closed[..] {
        let gid = if rest.is_empty() { first.to_string() } else { "GID".into() };
        let value =
            format!("a run cannot change their files: {}", closed.iter().copied().map(shown).collect::<Vec<_>>().join(", "));
        let price = format!("{user} then has that group for good, also once removed from it");
        let lets = shell(format_args!("usermod --add-subgids {gid}-{gid} {user}")) + " lets it; ";
        return finding(value, Some(lets + price));
    }
    let all = further.iter().map(|group| shown(group.gid)).collect::<Vec<_>>().join(", ");
    match failed {
        Some(why) => finding(all, Some(words(format_args!("a run cannot change their files: {why}")))),
        None if ids::newgidmap_path().is_none() => {
            finding(all, Some("a run changes their files with newgidmap: install the package uidmap".into()))
        }
        None => finding(format!("a run can change their files: {all}"), None),
    }
}

fn linux() -> Finding {
    let (release, version) = kernel();
    Finding::new("Linux", release, version >= OLDEST, Cause::OldKernel)
}

fn overlays() -> Finding {
    let listed = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let there = listed.lines().any(|line| line.split_whitespace().last() == Some("overlay"));
    // The kernel loads it when a process with the right to do so asks for it.
    Finding::new("overlayfs", if there { "there" } else { "not loaded" }, there, Cause::NoOverlays)
}

/// The user that recant runs as, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Here {
    /// All of it for people, as a sentence without its full stop.
    pub words: String,
    pub uid: u32,
    pub name: Option<String>,
    /// True if it is in a user namespace of its own.
    pub user_namespace: bool,
    /// The user that it is outside of that, if it has an id there.
    pub outside: Option<u32>,
    pub container: Option<Engine>,
    pub kernel: String,
    /// True if it is root of the machine, with all rights that a run of root needs.
    #[serde(skip)]
    pub is_whole_root: bool,
}

pub fn here() -> Here {
    let uid = rustix::process::geteuid().as_raw();
    let user_namespace = !Namespace::User.is_first();
    let mut here = Here {
        words: String::new(),
        uid,
        name: ids::own_name(),
        user_namespace,
        outside: if user_namespace { outside(uid) } else { None },
        container: Engine::here(),
        kernel: kernel().0,
        is_whole_root: Route::here() == Route::Root,
    };
    here.words = here.words();
    here
}

impl Here {
    fn words(&self) -> String {
        let user = || self.name.clone().map_or_else(|| format!("user {}", self.uid), |name| format!("user {name}"));
        let who = match (self.uid, self.user_namespace, self.outside) {
            (0, false, _) if self.is_whole_root => "root".into(),
            (0, false, _) => "root without CAP_SYS_ADMIN".into(),
            (_, false, _) => user(),
            (0, true, Some(outside)) => format!("root of a user namespace (user {outside} outside)"),
            (_, true, Some(outside)) if outside != self.uid => format!("{} of a user namespace (user {outside} outside)", user()),
            (_, true, Some(_)) => format!("{} of a user namespace", user()),
            (_, true, None) => "a user that its user namespace does not map".into(),
        };
        let container = match self.container {
            None => "",
            Some(Engine::Docker) => " in a container of Docker",
            Some(Engine::Podman) => " in a container of Podman",
            Some(Engine::Other) => " in a container",
        };
        let old = if kernel().1 < OLDEST { format!(": older than {}.{}", OLDEST.0, OLDEST.1) } else { String::new() };
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
