//! What somebody does, as lines for a shell: they are carried out at once, or held by a run.

use super::sight::{Found, is_ours, look};
use super::{NAMES, Scene};

/// What somebody does.
impl Scene {
    pub fn deeds(&mut self, count: usize) {
        for _ in 0..count {
            let line = self.deed();
            self.shell(&line);
        }
    }

    /// A line for a shell, which may come to nothing.
    pub fn deed(&mut self) -> String {
        let (p, q, name) = (self.pick(), self.pick(), self.dice.of(&NAMES));
        let (kind, mode) = (self.kind(&p), self.directory_mode());
        let file_mode = self.dice.of(&["644", "600", "755", "700"]);
        let put = |scene: &mut Self, path: &str| scene.content(path);
        match self.dice.below(31) {
            0 | 1 if kind == "directory" => put(self, &format!("{p}/{name}")),
            0 | 1 => put(self, &p),
            2 if kind == "file" => put(self, &p).replace(" >", " >>"),
            3 => format!("{}; mv -T {p}.tmp {p}", put(self, &format!("{p}.tmp"))),
            4..=6 => format!("rm -rf {p}"),
            7..=10 => {
                let fill = if self.dice.percent(70) { put(self, &format!("{p}/{name}")) } else { ":".into() };
                format!("rm -rf {p}; mkdir -m {mode} {p}; {fill}")
            }
            11 => format!("mkdir -m {mode} {p}"),
            12 | 13 => format!("rm -rf {p}; {}", put(self, &p)),
            14 => format!("[ -h {p} ] || chmod {} {p}", if kind == "directory" { mode } else { file_mode }),
            15 => format!("touch -h -d @{}.123456789 {p}", 1_000_000_000 + self.dice.below(1_000_000)),
            16 => format!("mv -T {p} {q}"),
            17 => format!("ln -T {p} {q}"),
            18..=20 => self.former(&p),
            21..=23 if kind == "directory" => {
                format!(
                    "mv -T {p} {p}.old && mkdir -m {mode} {p} && mv {p}.old/{} {p}/; rmdir {p}.old",
                    self.dice.of(&["*", "[a-d]"])
                )
            }
            24 => format!("mv -T {p} {p}.mv{}", self.dice.of(&["", &format!(" && mv -T {p}.mv {p}")])),
            25 => format!("setfattr -h -n user.x -v {} {p}", self.dice.below(9)),
            26 => format!("rm -rf {p}; ln -s {} {p}", self.dice.of(&["a", "nowhere/x", "."])),
            27 if kind == "directory" => {
                format!("mv -T {p} {p}.real && ln -s {}.real {p}", p.rsplit('/').next().unwrap_or_default())
            }
            28 if self.road.is_root() => format!("chown -h {0}:{0} {p}", self.dice.of(&[0, 1001])),
            28 => format!("[ -d {p} ] && chmod {} {p}", self.dice.of(&["500", "555"])),
            _ => format!("mkdir -p {p}; {}", put(self, &format!("{p}/{name}"))),
        }
    }

    /// What a path was at some time comes back, as it was or as a copy of today.
    fn former(&mut self, path: &str) -> String {
        let Some(copy) = (!self.copies.is_empty()).then(|| self.dice.of(&self.copies)) else { return ":".into() };
        let how = self.dice.of(&["-a", "-r"]);
        let away = if self.dice.percent(40) { format!("rm -rf {path}; ") } else { String::new() };
        let over = if self.kind(path) == "directory" && away.is_empty() { format!("{path}/..") } else { path.into() };
        format!("[ -e ../{copy}/{path} ] && {{ {away}cp {how} ../{copy}/{path} {over}; }}")
    }

    /// A new token in a file, most often a small one.
    pub fn content(&mut self, path: &str) -> String {
        let (token, times) = self.token();
        let token = token.lines().next().expect("a line").to_owned();
        if times == 1 { format!("echo {token} >{path}") } else { format!("yes {token} | head -n {times} >{path}") }
    }

    pub fn token(&mut self) -> (String, usize) {
        self.tokens += 1;
        let times = self.dice.of(&[1, 1, 1, 1, 1, 400]);
        (format!("tok-{}-\n", self.tokens).repeat(times), times)
    }

    pub fn directory_mode(&mut self) -> &'static str {
        self.dice.of(&["755", "700", "750", "711"])
    }

    /// Most often a path of the session, what it lies in, or what may lie in it.
    pub fn pick(&mut self) -> String {
        if !self.focus.is_empty() && self.dice.percent(75) {
            let path = self.dice.of(&self.focus);
            return match self.dice.below(20) {
                0..5 => path.rsplit_once('/').map_or(path.clone(), |(directory, _)| directory.to_owned()),
                5..7 => format!("{path}/{}", self.dice.of(&NAMES)),
                _ => path,
            };
        }
        let paths = self.paths();
        if !paths.is_empty() && self.dice.percent(50) {
            return self.dice.of(&paths);
        }
        let name = self.dice.of(&NAMES);
        let directories: Vec<String> = paths.into_iter().filter(|path| self.kind(path) == "directory").collect();
        if directories.is_empty() || self.dice.percent(20) {
            name.into()
        } else {
            format!("{}/{name}", self.dice.of(&directories))
        }
    }

    pub fn paths(&self) -> Vec<String> {
        look(&self.world.tree()).into_keys().filter(|path| !is_ours(path)).collect()
    }

    pub fn kind(&self, path: &str) -> &'static str {
        Found::at(&self.world.path(path)).map_or("", |found| found.kind)
    }
}
