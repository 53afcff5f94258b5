//! The state of an object: all that commit must set and rollback must restore.

use std::fmt;

use base64::Engine;
use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::hash::Hash;
use super::time;
use crate::fs::{Dev, Sort, Stat, Time, path};

/// The object of a path: absent, or in a state.
pub type Object = Option<State>;

/// The kind of an object, and its content if known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A regular file of `size` bytes. The hash is missing if content was only fingerprinted.
    File {
        /// Bytes of content, holes counted.
        size: u64,
        /// SHA-256 of the content.
        hash: Option<Hash>,
        /// For a git index, the hash of its [meaning](super::git_index::meaning), if that was read.
        index: Option<Box<Hash>>,
    },
    /// A directory: its names are changes of their own.
    Directory,
    /// A symlink and the bytes of its target.
    Symlink {
        /// Those bytes, as readlink(2) returns them.
        target: Box<[u8]>,
    },
    /// A named pipe.
    Fifo,
    /// A Unix socket's name.
    Socket,
    /// A character device.
    Char(Dev),
    /// A block device.
    Block(Dev),
}

/// Name and value of each xattr, sorted by name. ACLs and capabilities are xattrs too.
pub type Xattrs = Box<[(Box<[u8]>, Box<[u8]>)]>;

/// The metadata of an object, beside its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    /// The permission bits, 07777. Meaningless for a symlink.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    /// The time of the last change of the content.
    pub mtime: Time,
    pub xattrs: Xattrs,
}

/// The state of an object that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    pub what: What,
    pub meta: Meta,
}

/// The identity of an object within one file system: inode and birth time. Without a birth time the inode may have been reused, so the
/// content must agree too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    pub ino: u64,
    /// The birth time, if the file system keeps it.
    #[serde(with = "time::option", default, skip_serializing_if = "Option::is_none")]
    pub btime: Option<Time>,
    /// True if its file system renumbers an object when it is moved or changed (overlayfs) or at any time (FUSE, NFS): only content tells
    /// it apart.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub loose: bool,
}

impl Identity {
    /// True if `found`, of what is there now, may be the same object; always, if this one is loose.
    pub fn is(&self, found: Identity) -> bool {
        self.loose || (self.ino, self.btime) == (found.ino, found.btime)
    }
}

/// A cheap sign, with size and mtime of the state beside it, that an object has not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    #[serde(flatten)]
    pub identity: Identity,
    /// The time when content, metadata or names last changed.
    #[serde(with = "time")]
    pub ctime: Time,
    /// True if the ctime was younger than the clock's granularity when the fingerprint was taken: a later change may not show in it, so
    /// it proves nothing. git's racy-git.adoc has the problem.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub racy: bool,
}

/// The result of comparing two states. Times never count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Likeness {
    Same,
    /// All that is known is the same; only reading the content can tell.
    ReadToTell,
    Differs(Difference),
}

/// The first thing in which two states differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// One of them is absent.
    Presence,
    /// They are of different kinds.
    Kind,
    /// Content, target or device number.
    Content,
    Mode,
    Owner,
    Xattrs,
    /// The time of the last change, if there is no hash that could tell whether the content differs too.
    Touched,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Difference::Presence => "presence",
            Difference::Kind => "kind",
            Difference::Content => "content",
            Difference::Mode => "mode",
            Difference::Owner => "owner",
            Difference::Xattrs => "extended attributes",
            Difference::Touched => "time of its last change, and maybe another content",
        })
    }
}

impl State {
    pub fn sort(&self) -> Sort {
        match self.what {
            What::File { .. } => Sort::File,
            What::Directory => Sort::Directory,
            What::Symlink { .. } => Sort::Symlink,
            What::Fifo => Sort::Fifo,
            What::Socket => Sort::Socket,
            What::Char(_) => Sort::Char,
            What::Block(_) => Sort::Block,
        }
    }

    pub fn is_dir(&self) -> bool {
        matches!(self.what, What::Directory)
    }

    pub fn is_file(&self) -> bool {
        matches!(self.what, What::File { .. })
    }

    /// The hash of a file's content, if known.
    pub fn hash(&self) -> Option<Hash> {
        match self.what {
            What::File { hash, .. } => hash,
            _ => None,
        }
    }

    /// Sets the hash of a file's content.
    pub fn set_hash(&mut self, hash: Hash) {
        if let What::File { hash: known, .. } = &mut self.what {
            *known = Some(hash);
        }
    }

    /// Forgets hashes: the state as far as its metadata tells.
    pub fn forget_hash(&mut self) {
        if let What::File { hash, index, .. } = &mut self.what {
            (*hash, *index) = (None, None);
        }
    }

    /// The hash of a git index's meaning, if known.
    pub fn index(&self) -> Option<&Hash> {
        match &self.what {
            What::File { index, .. } => index.as_deref(),
            _ => None,
        }
    }

    pub fn set_index(&mut self, meaning: Option<Hash>) {
        if let What::File { index, .. } = &mut self.what {
            *index = meaning.map(Box::new);
        }
    }

    /// True if both are known to be git indexes of the same meaning.
    pub fn means_same(&self, other: &State) -> bool {
        self.index().is_some() && self.index() == other.index()
    }

    /// Bytes of content of a file; 0 for anything else.
    pub fn size(&self) -> u64 {
        match self.what {
            What::File { size, .. } => size,
            _ => 0,
        }
    }

    /// Compares kind, content, mode, owner and xattrs; not times.
    pub fn likeness(&self, other: &State) -> Likeness {
        match (self.content_likeness(other), self.meta_difference(other)) {
            (Likeness::Differs(difference), _) | (_, Some(difference)) => Likeness::Differs(difference),
            (likeness, None) => likeness,
        }
    }

    /// Compares only kind and content. Two git indexes are the same if they mean the same.
    pub fn content_likeness(&self, other: &State) -> Likeness {
        use Difference::{Content, Kind};
        if self.sort() != other.sort() {
            return Likeness::Differs(Kind);
        }
        if self.means_same(other) {
            return Likeness::Same;
        }
        match (&self.what, &other.what) {
            (What::File { index: Some(_), .. }, What::File { index: Some(_), .. }) => Likeness::Differs(Content),
            (What::File { size: a, .. }, What::File { size: b, .. }) if a != b => Likeness::Differs(Content),
            (What::File { hash: a, .. }, What::File { hash: b, .. }) => match (a, b) {
                (Some(a), Some(b)) if a == b => Likeness::Same,
                (Some(_), Some(_)) => Likeness::Differs(Content),
                _ => Likeness::ReadToTell,
            },
            (a, b) if a == b => Likeness::Same,
            _ => Likeness::Differs(Content),
        }
    }

    /// The first difference in mode, owner or xattrs.
    pub fn meta_difference(&self, other: &State) -> Option<Difference> {
        let (a, b) = (&self.meta, &other.meta);
        if a.mode != b.mode && self.sort() != Sort::Symlink {
            Some(Difference::Mode)
        } else if (a.uid, a.gid) != (b.uid, b.gid) {
            Some(Difference::Owner)
        } else if a.xattrs != b.xattrs {
            Some(Difference::Xattrs)
        } else {
            None
        }
    }
}

pub fn likeness(a: &Object, b: &Object) -> Likeness {
    match (a, b) {
        (None, None) => Likeness::Same,
        (Some(a), Some(b)) => a.likeness(b),
        _ => Likeness::Differs(Difference::Presence),
    }
}

impl Meta {
    /// Makes it from what statx(2) returned, and the xattrs.
    pub fn of(stat: &Stat, xattrs: Vec<(Vec<u8>, Vec<u8>)>) -> Self {
        let xattrs = xattrs.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { mode: stat.mode, uid: stat.uid, gid: stat.gid, mtime: stat.mtime, xattrs }
    }

    pub fn xattr(&self, name: &[u8]) -> Option<&[u8]> {
        self.xattrs.iter().find(|(n, _)| &**n == name).map(|(_, value)| &**value)
    }
}

/// The word for each kind of object, in JSON and messages.
pub fn sort_word(sort: Sort) -> &'static str {
    match sort {
        Sort::File => "file",
        Sort::Directory => "directory",
        Sort::Symlink => "symlink",
        Sort::Fifo => "fifo",
        Sort::Socket => "socket",
        Sort::Char => "char device",
        Sort::Block => "block device",
    }
}

/// How a state stands in the store: `{"kind": "file", "size": 12, "digest": "…", "mode": "0644", …}`.
#[derive(Deserialize)]
struct Wire {
    kind: String,
    size: Option<u64>,
    digest: Option<Hash>,
    index: Option<Hash>,
    target: Option<Bytes>,
    device: Option<String>,
    mode: String,
    uid: u32,
    gid: u32,
    #[serde(with = "time")]
    mtime: Time,
    #[serde(default)]
    xattrs: Vec<WireXattr>,
}

#[derive(Serialize, Deserialize)]
struct Bytes(#[serde(with = "path::bytes")] Vec<u8>);

#[derive(Serialize, Deserialize)]
struct WireXattr {
    name: Bytes,
    b64: String,
}

/// The words of a state that the store and programs do not share: those of the store are older.
struct Words {
    directory: &'static str,
    hash: &'static str,
}

const STORED: Words = Words { directory: "folder", hash: "digest" };

const PRINTED: Words = Words { directory: "directory", hash: "hash" };

impl Serialize for State {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write(self, &STORED, serializer)
    }
}

/// Writes an object as docs/json.md has it, `null` for nothing. For `#[serde(serialize_with = …)]`.
pub fn printed<S: Serializer>(object: &Object, serializer: S) -> Result<S::Ok, S::Error> {
    match object {
        Some(state) => write(state, &PRINTED, serializer),
        None => serializer.serialize_none(),
    }
}

fn write<S: Serializer>(state: &State, words: &Words, serializer: S) -> Result<S::Ok, S::Error> {
    let base64 = &base64::engine::general_purpose::STANDARD;
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("kind", if state.is_dir() { words.directory } else { sort_word(state.sort()) })?;
    match &state.what {
        What::File { size, hash, index } => {
            map.serialize_entry("size", size)?;
            if let Some(hash) = hash {
                map.serialize_entry(words.hash, hash)?;
            }
            if let Some(index) = index {
                map.serialize_entry("index", index)?;
            }
        }
        What::Symlink { target } => map.serialize_entry("target", &Bytes(target.to_vec()))?,
        What::Char(dev) | What::Block(dev) => map.serialize_entry("device", &format!("{}:{}", dev.0, dev.1))?,
        What::Directory | What::Fifo | What::Socket => {}
    }
    map.serialize_entry("mode", &format!("{:04o}", state.meta.mode))?;
    map.serialize_entry("uid", &state.meta.uid)?;
    map.serialize_entry("gid", &state.meta.gid)?;
    map.serialize_entry("mtime", &time::to_text(state.meta.mtime))?;
    if !state.meta.xattrs.is_empty() {
        let xattrs = state.meta.xattrs.iter();
        let xattrs = xattrs.map(|(name, value)| WireXattr { name: Bytes(name.to_vec()), b64: base64.encode(value) });
        map.serialize_entry("xattrs", &xattrs.collect::<Vec<_>>())?;
    }
    map.end()
}

impl<'de> Deserialize<'de> for State {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = Wire::deserialize(deserializer)?;
        let missing = |what: &str| D::Error::custom(format!("a {} without {what}", wire.kind));
        let device = || {
            let (major, minor) = wire.device.as_deref().and_then(|d| d.split_once(':')).ok_or_else(|| missing("device"))?;
            match (major.parse(), minor.parse()) {
                (Ok(major), Ok(minor)) => Ok(Dev(major, minor)),
                _ => Err(missing("a device number")),
            }
        };
        let what = match &*wire.kind {
            "file" => {
                What::File { size: wire.size.ok_or_else(|| missing("size"))?, hash: wire.digest, index: wire.index.map(Box::new) }
            }
            "folder" => What::Directory,
            "symlink" => {
                let target = wire.target.as_ref().ok_or_else(|| missing("target"))?;
                if target.0.is_empty() || target.0.contains(&0) {
                    return Err(missing("a target that can be"));
                }
                What::Symlink { target: target.0.clone().into() }
            }
            "fifo" => What::Fifo,
            "socket" => What::Socket,
            "char device" => What::Char(device()?),
            "block device" => What::Block(device()?),
            other => return Err(D::Error::custom(format!("{other:?} is no kind of object"))),
        };
        let mode = u32::from_str_radix(&wire.mode, 8).ok().filter(|mode| *mode <= 0o7777);
        let mode = mode.ok_or_else(|| D::Error::custom("a mode that is not octal"))?;
        // chown(2) takes it for "leave as it is": the object would belong to whoever puts it.
        if [wire.uid, wire.gid].contains(&u32::MAX) {
            return Err(D::Error::custom(format!("an owner {}:{}, which chown cannot set", wire.uid, wire.gid)));
        }
        let mut xattrs = Vec::with_capacity(wire.xattrs.len());
        for WireXattr { name, b64 } in wire.xattrs {
            let value = base64::engine::general_purpose::STANDARD.decode(b64).map_err(D::Error::custom)?;
            if name.0.is_empty() || name.0.contains(&0) || name.0.len() > 255 {
                return Err(D::Error::custom("an xattr without a usable name"));
            }
            xattrs.push((name.0.into_boxed_slice(), value.into_boxed_slice()));
        }
        xattrs.sort();
        Ok(State { what, meta: Meta { mode, uid: wire.uid, gid: wire.gid, mtime: wire.mtime, xattrs: xattrs.into() } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_keeps_its_own_words_and_programs_read_those_of_the_page() {
        #[derive(Serialize)]
        struct Row(#[serde(serialize_with = "printed")] Object);
        let dir = State { what: What::Directory, ..file(None) };
        for (state, stored, read) in [
            (&file(Some(Hash::of(b"abc"))), ["\"file\"", "\"digest\":"], ["\"file\"", "\"hash\":"]),
            (&dir, ["\"folder\"", "\"mode\":"], ["\"directory\"", "\"mode\":"]),
        ] {
            let [in_store, for_programs] =
                [serde_json::to_string(state), serde_json::to_string(&Row(Some(state.clone())))].map(|text| text.expect("JSON"));
            assert!(stored.iter().all(|word| in_store.contains(word)), "{in_store}");
            assert!(read.iter().all(|word| for_programs.contains(word)), "{for_programs}");
            assert_eq!(serde_json::from_str::<State>(&in_store).expect("a state"), *state);
        }
        assert_eq!(serde_json::to_string(&Row(None)).expect("JSON"), "null");
    }

    fn file(hash: Option<Hash>) -> State {
        let xattrs = vec![(b"user.a".to_vec().into(), b"\xff".to_vec().into())].into();
        let meta = Meta { mode: 0o4755, uid: 1, gid: 2, mtime: Time { s: -5, ns: 7 }, xattrs };
        State { what: What::File { size: 3, hash, index: None }, meta }
    }

    #[test]
    fn a_state_goes_to_json_and_back() {
        for what in [
            What::File { size: 3, hash: Some(Hash::of(b"abc")), index: Some(Box::new(Hash::of(b"means"))) },
            What::File { size: 0, hash: None, index: None },
            What::Directory,
            What::Symlink { target: b"a\xffb".to_vec().into() },
            What::Fifo,
            What::Socket,
            What::Char(Dev(1, 3)),
            What::Block(Dev(8, 1)),
        ] {
            let state = State { what, ..file(None) };
            let json = serde_json::to_string(&state).unwrap();
            assert_eq!(serde_json::from_str::<State>(&json).unwrap(), state, "{json}");
        }
    }

    #[test]
    fn times_do_not_count_and_everything_else_does() {
        let a = file(Some(Hash::of(b"abc")));
        let mut b = a.clone();
        b.meta.mtime.ns = 8;
        assert_eq!(a.likeness(&b), Likeness::Same);
        assert_eq!(a.likeness(&file(None)), Likeness::ReadToTell);
        assert_eq!(a.likeness(&file(Some(Hash::of(b"abd")))), Likeness::Differs(Difference::Content));
        b.meta.mode = 0o755;
        assert_eq!(a.likeness(&b), Likeness::Differs(Difference::Mode));
        b = a.clone();
        b.meta.gid = 9;
        assert_eq!(a.likeness(&b), Likeness::Differs(Difference::Owner));
        b = a.clone();
        b.meta.xattrs = Xattrs::default();
        assert_eq!(a.likeness(&b), Likeness::Differs(Difference::Xattrs));
    }
}
