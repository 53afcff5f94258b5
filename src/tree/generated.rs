//! Directories that programs make, by their names: what is in them can be made again, and people look for their own files beside them.

use serde::Serialize;

/// The reason why a directory is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Generated {
    /// A package manager puts what others wrote there.
    Dependencies,
    /// A compiler or another tool made it of sources.
    Built,
    /// A program remembers there what it would find again.
    Caches,
}

/// Directories that are seldom anything else.
pub const DIRECTORIES: &[(&str, Generated)] = &[
    ("node_modules", Generated::Dependencies),
    ("target", Generated::Built),
    ("dist", Generated::Built),
    ("build", Generated::Built),
    ("__pycache__", Generated::Built),
    (".venv", Generated::Dependencies),
    ("venv", Generated::Dependencies),
    (".cache", Generated::Caches),
    (".next", Generated::Built),
    (".nuxt", Generated::Built),
    ("coverage", Generated::Built),
    (".pytest_cache", Generated::Caches),
    (".mypy_cache", Generated::Caches),
    (".ruff_cache", Generated::Caches),
    (".tox", Generated::Dependencies),
    (".gradle", Generated::Caches),
    (".parcel-cache", Generated::Caches),
    (".turbo", Generated::Caches),
    (".svelte-kit", Generated::Built),
];

/// The reason why a directory of this name is there, if it is one of them.
pub fn generated(name: &[u8]) -> Option<Generated> {
    DIRECTORIES.iter().find(|(known, _)| known.as_bytes() == name).map(|(_, kind)| *kind)
}
