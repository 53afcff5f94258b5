//! Finds the directory that a person would call the project of another one.

use std::path::Path;

use crate::fs::{AbsPath, Dir};

/// Names that mark the top directory of a repository.
const REPOSITORIES: &[&[u8]] = &[b".git", b".hg", b".jj", b".svn", b".bzr"];

/// Names that mark the top directory of something that is built or installed as one.
const MANIFESTS: &[&[u8]] = &[
    b"Cargo.toml",
    b"package.json",
    b"deno.json",
    b"pyproject.toml",
    b"setup.py",
    b"go.mod",
    b"pom.xml",
    b"build.gradle",
    b"build.gradle.kts",
    b"build.sbt",
    b"Gemfile",
    b"composer.json",
    b"mix.exs",
    b"rebar.config",
    b"stack.yaml",
    b"dune-project",
    b"Package.swift",
    b"pubspec.yaml",
    b"build.zig",
    b"flake.nix",
    b"meson.build",
    b"CMakeLists.txt",
    b"Makefile",
    b"makefile",
    b"GNUmakefile",
    b"Justfile",
    b"justfile",
];

/// The project of `dir`: the nearest directory upward, itself included, with a repository; else the nearest one with a manifest; else
/// `dir`.
///
/// Neither `/` nor `home`, nor a directory above `home`, is the project of anything but itself: a repository of dotfiles, or a stray
/// Makefile, would make one project of all that a person has. A missing directory has the project of its parent.
pub fn project_of(dir: &AbsPath, home: Option<&Path>) -> AbsPath {
    let home = home.and_then(|home| AbsPath::parse(home.canonicalize().ok()?.into_os_string().into_encoded_bytes()).ok());
    let is_too_broad = |dir: &AbsPath| dir.depth() == 0 || home.as_ref().is_some_and(|home| home.is_under(dir));
    let upward: Vec<AbsPath> =
        std::iter::successors(Some(dir.clone()), AbsPath::parent).take_while(|dir| !is_too_broad(dir)).collect();
    let nearest = |marks: &[&[u8]]| upward.iter().find(|dir| has_one_of(dir, marks));
    nearest(REPOSITORIES).or_else(|| nearest(MANIFESTS)).unwrap_or(dir).clone()
}

/// True for a name that marks the top directory of a project.
pub fn marks_project(name: &[u8]) -> bool {
    REPOSITORIES.contains(&name) || MANIFESTS.contains(&name)
}

fn has_one_of(dir: &AbsPath, marks: &[&[u8]]) -> bool {
    Dir::open(dir.as_path()).is_ok_and(|dir| marks.iter().any(|mark| matches!(dir.at(mark).stat(), Ok(Some(_)))))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "tests set up real files")]
    fn the_nearest_repository_comes_before_a_nearer_manifest_and_home_is_no_project_of_what_lies_in_it() {
        let top = tempfile::tempdir().expect("a temporary directory");
        let top = top.path().canonicalize().expect("a directory that was just made");
        for made in ["home/src/app/.git", "home/src/app/crates/one/src", "home/.git", "home/web/pages", "home/notes/old"] {
            std::fs::create_dir_all(top.join(made)).expect("a new directory");
        }
        for made in ["home/src/app/crates/one/Cargo.toml", "home/web/package.json", "home/Makefile"] {
            std::fs::write(top.join(made), "").expect("a new file");
        }
        let at = |name: &str| AbsPath::parse(top.join(name).as_os_str().as_bytes()).expect("an absolute path");
        for (dir, want) in [
            ("home/src/app/crates/one/src", "home/src/app"),
            ("home/web/pages", "home/web"),
            ("home/web/gone/deep", "home/web"),
            ("home/notes/old", "home/notes/old"),
            ("home", "home"),
        ] {
            assert_eq!(project_of(&at(dir), Some(&top.join("home"))), at(want), "{dir}");
        }
        assert_eq!(project_of(&at("home/notes/old"), None), at("home"), "without a home a repository is one anywhere");
    }
}
