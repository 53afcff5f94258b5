//! A remedy: what to do about an error, in words and commands. A leaf, as the error is: it knows no room.

use std::fmt::{self, Display};
use std::ops::{Add, Deref};

use serde::{Serialize, Serializer};

/// A command, as somebody types it: it stays in one line, so that it can be copied. It reads as its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    line: String,
    /// The verb of a command of recant that has no options.
    verb: Option<String>,
}

/// A command of a shell, in full. For one of recant see [`crate::error::command`].
pub fn shell(line: impl Display) -> Command {
    Command { line: line.to_string(), verb: None }
}

impl Command {
    /// A command of recant: its words are `words`, behind `recant` as it is called here.
    pub(crate) fn of(recant: &str, words: impl Display) -> Self {
        let words = words.to_string();
        let (mut each, has_options) = (words.split(' '), words.split(' ').any(|word| word.starts_with('-')));
        let verb = each.next().filter(|_| !has_options).map(str::to_owned);
        Self { line: format!("{recant} {words}"), verb }
    }
}

/// Advice that consists of words and commands: `command("diff k3fa") + " shows both sides"`. It shows as a sentence, by [`Display`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remedy(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Words(String),
    Command(Command),
}

/// The beginning of a remedy, in words: `words("for the path: ") + command("diff last PATH")`.
pub fn words(words: impl Display) -> Remedy {
    Remedy(vec![Piece::Words(words.to_string())])
}

impl Remedy {
    /// The remedy with another word in place of each command, as `other` has it for the command's verb; `None` if it has none for one.
    pub(crate) fn in_words_of(&self, other: impl Fn(&str) -> Option<&'static str>) -> Option<String> {
        let piece = |piece: &Piece| match piece {
            Piece::Words(words) => Some(words.clone()),
            Piece::Command(command) => other(command.verb.as_deref()?).map(str::to_owned),
        };
        self.0.iter().map(piece).collect()
    }

    /// The parts that stay in one line: words, and whole commands with the marks beside them. Joined by blanks they are the remedy.
    pub(crate) fn parts(&self) -> Vec<String> {
        let mut parts: Vec<String> = Vec::new();
        let mut is_open = false;
        for piece in &self.0 {
            let (text, breaks): (&str, &[char]) = match piece {
                Piece::Command(command) => (command, &[]),
                Piece::Words(words) => (words, &[' ', '\n']),
            };
            for part in text.split(breaks) {
                match parts.last_mut().filter(|_| is_open) {
                    Some(last) => last.push_str(part),
                    None => parts.push(part.to_owned()),
                }
                is_open = false;
            }
            is_open = true;
        }
        parts
    }
}

impl Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|piece| match piece {
            Piece::Words(words) => f.write_str(words),
            Piece::Command(command) => f.write_str(command),
        })
    }
}

impl Serialize for Remedy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.line)
    }
}

impl Deref for Command {
    type Target = str;

    fn deref(&self) -> &str {
        &self.line
    }
}

impl From<Command> for String {
    fn from(command: Command) -> Self {
        command.line
    }
}

impl From<Command> for Remedy {
    fn from(command: Command) -> Self {
        Self(vec![Piece::Command(command)])
    }
}

impl From<String> for Remedy {
    fn from(text: String) -> Self {
        words(text)
    }
}

impl From<&str> for Remedy {
    fn from(text: &str) -> Self {
        words(text)
    }
}

impl<T: Into<Remedy>> Add<T> for Remedy {
    type Output = Self;

    fn add(mut self, rest: T) -> Self {
        self.0.extend(rest.into().0);
        self
    }
}

impl<T: Into<Remedy>> Add<T> for Command {
    type Output = Remedy;

    fn add(self, rest: T) -> Remedy {
        Remedy::from(self) + rest
    }
}

impl Add<Command> for &str {
    type Output = Remedy;

    fn add(self, command: Command) -> Remedy {
        words(self) + command
    }
}

impl Add<Remedy> for &str {
    type Output = Remedy;

    fn add(self, rest: Remedy) -> Remedy {
        words(self) + rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remedy_reads_as_a_sentence_and_its_commands_stay_whole() {
        let remedy = "go on (" + shell("mkdir -p '/a b'") + "), or " + shell("recant discard k3fa") + " drops it";
        assert_eq!(remedy.to_string(), "go on (mkdir -p '/a b'), or recant discard k3fa drops it");
        assert_eq!(remedy.parts(), ["go", "on", "(mkdir -p '/a b'),", "or", "recant discard k3fa", "drops", "it"]);
        assert_eq!(serde_json::to_string(&remedy).expect("JSON"), format!("\"{remedy}\""));
    }

    #[test]
    fn a_remedy_is_told_in_words_of_others_as_far_as_they_have_some() {
        let other = |verb: &str| (verb == "list").then_some("sessions");
        let own = |words: &str| Command::of("recant --store /x", words);
        assert_eq!((own("list") + " lists them").in_words_of(other).as_deref(), Some("sessions lists them"));
        for none in [own("list --all") + " lists them", own("prune") + " frees it", shell("list") + " lists them"] {
            assert_eq!(none.in_words_of(other), None);
        }
    }

    #[test]
    fn remedies_are_put_together() {
        let lists = shell("recant list") + " lists them";
        let both = Remedy::from(format!("take {}, or ", 2)) + lists.clone() + "; " + lists;
        assert_eq!(both.to_string(), "take 2, or recant list lists them; recant list lists them");
        assert_eq!(Remedy::from(shell("umount /a b")).parts(), ["umount /a b"]);
    }
}
