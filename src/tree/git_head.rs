//! The HEAD of a git repository, by gitrepository-layout(5): HEAD, the ref that it names, packed-refs. If refs are not kept in files, their
//! commits are not found. Pure: the caller reads.

use serde::{Deserialize, Serialize};

/// The most bytes of a file that names commits.
pub const MOST: u64 = 64 << 20;

/// A HEAD: where it leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The ref that it names, as `refs/heads/main`; `None` if it is detached.
    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The commit, in hexadecimal; `None` before the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

impl Head {
    /// Finds it: `read` returns the content of a file of the repository's own directory, if it is there. `None` without a HEAD.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn of<E>(mut read: impl FnMut(&str) -> Result<Option<Vec<u8>>, E>) -> Result<Option<Self>, E> {
        let mut text = |name: &str| Ok::<_, E>(read(name)?.and_then(|bytes| String::from_utf8(bytes).ok()));
        let Some(head) = text("HEAD")? else { return Ok(None) };
        let Some(name) = head.trim_end().strip_prefix("ref: ").filter(|name| name.starts_with("refs/")) else {
            return Ok(Some(Self { name: None, commit: commit(&head) }));
        };
        let commit = match text(name)?.as_deref().and_then(commit) {
            None => {
                let packed = text("packed-refs")?.unwrap_or_default();
                let of = |line: &str| line.split_once(' ').filter(|(_, of)| *of == name).and_then(|(hash, _)| commit(hash));
                packed.lines().find_map(of)
            }
            commit => commit,
        };
        Ok(Some(Self { name: Some(name.to_owned()), commit }))
    }

    pub fn branch(&self) -> Option<&str> {
        self.name.as_deref().map(|name| name.strip_prefix("refs/heads/").unwrap_or(name))
    }
}

/// A commit's hash in hexadecimal, SHA-1 or SHA-256: nothing else is passed to git.
pub fn commit(text: &str) -> Option<String> {
    let text = text.trim_end();
    let is_hash = matches!(text.len(), 40 | 64) && text.bytes().all(|b| b.is_ascii_hexdigit());
    is_hash.then(|| text.to_owned())
}
