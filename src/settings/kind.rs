//! The kinds of settings: how each is read from the file, and how it is listed.

use std::marker::PhantomData;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::DeValue;

use super::choice::Choice;
use super::glob::{allowed, glob};
use super::hosts::Entry;
use super::units::{age, silence, size};
use super::value::Value;

/// How a setting is read and listed.
pub trait Kind {
    type Value;

    /// Reads a value of the file.
    ///
    /// # Errors
    /// It has another type, or cannot be meant.
    fn read(found: &Found<'_>) -> Result<Self::Value, Wrong>;

    /// The value as it is listed.
    fn list(value: &Self::Value) -> Value;
}

/// A value of the file.
pub struct Found<'a> {
    pub value: &'a Spanned<DeValue<'a>>,
    /// The directory that `~/` means.
    pub home: Option<&'a Path>,
}

/// The fault of a value.
pub enum Wrong {
    /// This part of the file has another type, or is another word.
    Unwanted { at: Range<usize>, wanted: String },
    /// It cannot be meant, for this reason.
    Unusable(String),
}

const TEXT: &str = "text in quotes";

impl Found<'_> {
    fn unwanted<T>(&self, wanted: impl Into<String>) -> Result<T, Wrong> {
        Err(Wrong::Unwanted { at: self.value.span(), wanted: wanted.into() })
    }

    fn text(&self, wanted: &str) -> Result<&str, Wrong> {
        self.value.get_ref().as_str().map_or_else(|| self.unwanted(wanted), Ok)
    }

    fn number<T: TryFrom<u64>>(&self) -> Option<T> {
        let number = self.value.get_ref().as_integer()?;
        u64::from_str_radix(number.as_str(), number.radix()).ok().and_then(|number| T::try_from(number).ok())
    }

    /// Reads a text by its meaning.
    fn meant<T>(&self, read: impl Fn(&str) -> Result<T, String>) -> Result<T, Wrong> {
        read(self.text(TEXT)?).map_err(Wrong::Unusable)
    }

    /// Reads each item of a list.
    fn each<T>(&self, read: impl Fn(&Found<'_>) -> Result<T, Wrong>) -> Result<Vec<T>, Wrong> {
        let Some(list) = self.value.get_ref().as_array() else { return self.unwanted("a list, as in ['a', 'b']") };
        list.iter().map(|value| read(&Found { value, home: self.home })).collect()
    }
}

/// A setting without a default.
pub struct Maybe<K>(PhantomData<K>);

impl<K: Kind> Kind for Maybe<K> {
    type Value = Option<K::Value>;

    fn read(found: &Found<'_>) -> Result<Self::Value, Wrong> {
        K::read(found).map(Some)
    }

    fn list(value: &Self::Value) -> Value {
        value.as_ref().map_or(Value::None, K::list)
    }
}

/// A whole number.
pub struct Number<T>(PhantomData<T>);

impl<T: TryFrom<u64> + TryInto<u64> + Copy> Kind for Number<T> {
    type Value = T;

    fn read(found: &Found<'_>) -> Result<T, Wrong> {
        found.number().map_or_else(|| found.unwanted("a whole number"), Ok)
    }

    fn list(value: &T) -> Value {
        Value::Number((*value).try_into().unwrap_or_default())
    }
}

/// One of a few words.
pub struct Word<T>(PhantomData<T>);

impl<T: Choice> Kind for Word<T> {
    type Value = T;

    fn read(found: &Found<'_>) -> Result<T, Wrong> {
        let text = found.text(TEXT)?;
        let words: Vec<String> = T::ALL.iter().map(|choice| format!("'{}'", choice.word())).collect();
        let wanted =
            || if let [one, other] = &words[..] { format!("{one} or {other}") } else { format!("one of {}", words.join(", ")) };
        T::ALL.iter().copied().find(|choice| choice.word() == text).map_or_else(|| found.unwanted(wanted()), Ok)
    }

    fn list(value: &T) -> Value {
        Value::Text(value.word().into())
    }
}

/// Makes kinds: `/// about`, `Name: type of its values, how it is read, how it is listed`.
macro_rules! kinds {
    ($(#[doc = $about:literal] $name:ident: $value:ty, |$found:ident| $read:expr, |$listed:ident| $list:expr;)*) => {
        $(
            #[doc = $about]
            pub struct $name;

            impl Kind for $name {
                type Value = $value;

                fn read($found: &Found<'_>) -> Result<$value, Wrong> {
                    $read
                }

                fn list($listed: &$value) -> Value {
                    $list
                }
            }
        )*
    };
}

kinds! {
    /// `true` or `false`.
    Flag: bool, |found| found.value.get_ref().as_bool().map_or_else(|| found.unwanted("true or false"), Ok), |flag| Value::Flag(*flag);

    /// A number of bytes, with or without a unit.
    Size: u64, |found| match found.number() {
        Some(bytes) => Ok(bytes),
        None => size(found.text("a size, as in '50M' or 4096")?).map_err(Wrong::Unusable),
    }, |bytes| Value::Bytes(*bytes);

    /// A time with its unit, in seconds.
    Age: i64, |found| found.meant(age), |seconds| Value::Seconds(*seconds);

    /// A time of at most an hour, in seconds; `None` for ever.
    Silence: Option<u32>, |found| found.meant(silence), |most| most.map_or(Value::None, |seconds| Value::Seconds(seconds.into()));

    /// Any text.
    Text: String, |found| found.text(TEXT).map(str::to_owned), |text| Value::Text(text.clone());

    /// A list of texts.
    Texts: Vec<String>, |found| found.each(Text::read), |list| Value::List(list.clone());

    /// A list of globs: [`glob`].
    Globs: Vec<String>, |found| {
        found.each(|item| item.meant(|text| glob(text, item.home).map_err(|why| format!("{text:?}: {why}"))))
    }, |list| Value::List(list.clone());

    /// A list of globs: [`allowed`].
    Allowed: Vec<String>, |found| {
        found.each(|item| item.meant(|text| allowed(text, item.home).map_err(|why| format!("{text:?}: {why}"))))
    }, |list| Value::List(list.clone());

    /// A list of hosts.
    Hosts: Vec<Entry>, |found| found.each(|item| item.meant(Entry::parse)), |list| Value::List(list.iter().map(Entry::to_string).collect());

    /// A path that begins with `/` or `~/`.
    Location: PathBuf, |found| location(found.text("a path in quotes")?, found.home).map_err(Wrong::Unusable), |path| Value::Text(shown(path));

    /// A list of paths.
    Locations: Vec<PathBuf>, |found| found.each(Location::read), |list| Value::List(list.iter().map(|path| shown(path)).collect());

    /// A program and its first arguments: a list, or a text that is split at blanks.
    Command: Vec<String>, |found| command(found), |words| Value::Command(words.clone());
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn location(text: &str, home: Option<&Path>) -> Result<PathBuf, String> {
    match (Path::new(text).strip_prefix("~"), home) {
        (Ok(below), Some(home)) => Ok(home.join(below)),
        (Ok(_), None) => Err(format!("{text}: no home directory is known")),
        (Err(_), _) if text.starts_with('/') => Ok(text.into()),
        _ => Err(format!("{text}: a path here starts with '/' or '~/'")),
    }
}

fn command(found: &Found<'_>) -> Result<Vec<String>, Wrong> {
    let words = match found.value.get_ref().as_str() {
        Some(text) => text.split_whitespace().map(str::to_owned).collect(),
        None => found.each(Text::read).or_else(|_| found.unwanted("a command, as in 'ssh -v' or ['ssh', '-v']"))?,
    };
    if words.is_empty() { Err(Wrong::Unusable("no program is named".into())) } else { Ok(words) }
}
