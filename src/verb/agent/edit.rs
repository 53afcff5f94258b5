//! The edit of a file of settings: with recant's hooks, or without them.

use serde::{Serialize, Serializer};

use crate::agent::{Agent, Command, Edit, File, Form, Receipt, settings, unparsed};
use crate::error::Error;
use crate::fs::AbsPath;
use crate::tree::Hash;
use crate::verb::desk::Desk;

/// A file of settings that is edited.
#[derive(Serialize)]
pub struct Change {
    pub path: AbsPath,
    /// The link by which the agent finds it.
    pub link: Option<AbsPath>,
    #[serde(rename = "change", serialize_with = "word")]
    pub edit: FileEdit,
    /// The digest of the text that the edit was made for; `None`: there was no file.
    #[serde(skip)]
    pub(super) before: Option<Hash>,
    #[serde(skip)]
    pub(super) receipt: Option<Receipt>,
    /// Directories that go with it, if nothing else is in them: the deepest first.
    #[serde(skip)]
    pub(super) directories: Vec<AbsPath>,
}

/// The edit of a file.
pub enum FileEdit {
    Created(String),
    Modified(String),
    Deleted,
}

impl FileEdit {
    pub fn word(&self) -> &'static str {
        match self {
            Self::Created(_) => "created",
            Self::Modified(_) => "modified",
            Self::Deleted => "deleted",
        }
    }
}

fn word<S: Serializer>(edit: &FileEdit, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(edit.word())
}

/// The receipt of a file whose hooks are there, and the text before it, if the file was not written to since.
fn known(desk: &Desk, file: &File) -> Result<(Option<Receipt>, Option<String>), Error> {
    let (Some(store), Some(text), false) = (desk.store()?, &file.text, file.hooks.is_empty()) else { return Ok((None, None)) };
    let receipt = Receipt::read(store, &file.path);
    let before = receipt.as_ref().and_then(|receipt| receipt.before(text));
    Ok((receipt, before))
}

/// The change that leaves a file with the hooks; `None` if it has them.
///
/// # Errors
/// It cannot be parsed.
pub fn added(desk: &Desk, agent: Agent, file: &File, command: &Command) -> Result<Option<Change>, Error> {
    let wrong = |wrong| unparsed(&file.named, &wrong);
    let text = file.text.as_deref();
    if let Some(text) = text
        && settings::is_installed(agent, file.form, text, command).map_err(wrong)?
    {
        return Ok(None);
    }
    let (receipt, before) = known(desk, file)?;
    let (created, directories) = match receipt {
        Some(receipt) => (receipt.created, receipt.directories),
        None => (text.is_none(), missing_above(&file.path)),
    };
    let base = match (before, text) {
        (Some(before), _) => (!created).then_some(before),
        (None, Some(text)) => Some(settings::remove(agent, file.form, text).map_err(wrong)?),
        (None, None) => None,
    };
    let Edit { after, added } = settings::add(agent, file.form, base.as_deref(), command).map_err(wrong)?;
    let hash = Hash::of(after.as_bytes());
    let receipt = Receipt { path: file.path.clone(), created, directories, hash, added };
    let edit = if text.is_some() { FileEdit::Modified(after) } else { FileEdit::Created(after) };
    Ok(Some(Change { receipt: Some(receipt), ..Change::of(file, edit) }))
}

/// The change that leaves a file without the hooks; `None` if it has none.
///
/// # Errors
/// It cannot be parsed.
pub fn removed(desk: &Desk, agent: Agent, file: &File) -> Result<Option<Change>, Error> {
    let Some(text) = file.text.as_deref().filter(|_| !file.hooks.is_empty()) else { return Ok(None) };
    let (receipt, before) = known(desk, file)?;
    let left = match before {
        Some(before) => before,
        None => settings::remove(agent, file.form, text).map_err(|wrong| unparsed(&file.named, &wrong))?,
    };
    // A file of recant's own name is one that an installation made, also on another machine.
    let is_own = matches!(file.form, Form::Flat | Form::Program(_));
    let goes = receipt.as_ref().map_or(is_own, |receipt| receipt.created) && is_empty(&left);
    let directories = receipt.filter(|_| goes).map_or(Vec::new(), |receipt| receipt.directories);
    let directories = emptied(&file.path, directories);
    let edit = if goes { FileEdit::Deleted } else { FileEdit::Modified(left) };
    Ok(Some(Change { directories, ..Change::of(file, edit) }))
}

impl Change {
    fn of(file: &File, edit: FileEdit) -> Self {
        Self {
            path: file.path.clone(),
            link: Some(&file.named).filter(|named| **named != file.path).cloned(),
            edit,
            before: file.text.as_ref().map(|text| Hash::of(text.as_bytes())),
            receipt: None,
            directories: Vec::new(),
        }
    }
}

/// True if a text that an installation made says nothing any more.
fn is_empty(text: &str) -> bool {
    let bare: String = text.split_whitespace().collect();
    ["", "{}", "{\"version\":1}", "{\"version\":1,}"].contains(&&*bare)
}

/// The directories above a path that are missing, the topmost first.
fn missing_above(path: &AbsPath) -> Vec<AbsPath> {
    let above = std::iter::successors(path.parent(), AbsPath::parent);
    let mut missing: Vec<_> = above.take_while(|above| above.as_path().symlink_metadata().is_err()).collect();
    missing.reverse();
    missing
}

/// Those of the directories that hold nothing but the file, the deepest first.
fn emptied(file: &AbsPath, directories: Vec<AbsPath>) -> Vec<AbsPath> {
    let (mut gone, mut inside) = (Vec::new(), file.clone());
    for directory in directories.into_iter().rev() {
        let names = directory.as_path().read_dir().map(|names| names.flatten().map(|name| name.path()).collect::<Vec<_>>());
        if !names.is_ok_and(|names| names.iter().all(|name| name == inside.as_path())) {
            break;
        }
        inside = directory.clone();
        gone.push(directory);
    }
    gone
}
