//! The download caches of package managers.

use std::path::{Path, PathBuf};

/// A download cache that `run --in` leaves writable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cache {
    /// The path below the home directory.
    pub path: &'static str,
    /// The program that it belongs to; a missing cache is made only if that is in PATH. `None`: many programs use it.
    pub program: Option<&'static str>,
    /// A lock file, which is used only if it exists: another process could hold one that was made and removed again.
    pub is_file: bool,
}

/// The default of `capture.caches`. Has no paths that programs obey or execute (`~/.cargo/bin`, `~/.npmrc`, `~/.npm/_npx`).
pub const CACHES: [Cache; 10] = {
    const fn of(path: &'static str, program: Option<&'static str>, is_file: bool) -> Cache {
        Cache { path, program, is_file }
    }
    [
        of(".npm/_cacache", Some("npm"), false),
        of(".cargo/registry", Some("cargo"), false),
        of(".cargo/git", Some("cargo"), false),
        of(".cargo/.package-cache", Some("cargo"), true),
        of(".cargo/.package-cache-mutate", Some("cargo"), true),
        of("go/pkg/mod", Some("go"), false),
        of("go/pkg/sumdb", Some("go"), false),
        of(".m2/repository", Some("mvn"), false),
        of(".gradle/caches", Some("gradle"), false),
        of(".cache", None, false),
    ]
};

/// The paths of [`CACHES`] below a home directory.
pub fn usual(home: Option<&Path>) -> Vec<PathBuf> {
    home.map(|home| CACHES.iter().map(|cache| home.join(cache.path)).collect()).unwrap_or_default()
}
