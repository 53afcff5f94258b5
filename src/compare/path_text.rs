//! Paths as people read them: relative to the working directory if they lie below it, from `~` if they lie below the home directory,
//! else absolute. JSON and patches keep absolute paths.

use std::path::Path;

use unicode_width::UnicodeWidthChar;

use crate::error::shell_word;
use crate::fs::{AbsPath, Shown};

/// The directories that printed paths start from.
#[derive(Debug, Clone, Default)]
pub struct Names {
    cwd: Option<AbsPath>,
    home: Option<AbsPath>,
}

impl Names {
    /// The directories of this process. If one cannot be found, paths below it are printed absolute.
    pub fn here() -> Self {
        Self::of(std::env::current_dir().ok().as_deref(), dirs::home_dir().as_deref())
    }

    /// The directories of a call from another machine, whose reader has no working directory here.
    pub fn from_afar() -> Self {
        Self::of(None, dirs::home_dir().as_deref())
    }

    /// Resolves the home directory too, as sessions record paths without links. Leaves out `/`, which does not help a reader.
    fn of(cwd: Option<&Path>, home: Option<&Path>) -> Self {
        let real = |dir: Option<&Path>| {
            let real = dir?.canonicalize().ok()?;
            AbsPath::parse(real.as_os_str().as_encoded_bytes()).ok().filter(|path| path.depth() > 0)
        };
        Self { cwd: real(cwd), home: real(home) }
    }

    /// `path` as printed, with odd bytes quoted as in a message. A name that a shell would read otherwise (`~x`, `-x`) begins with `./`.
    pub fn show(&self, path: &AbsPath) -> String {
        let below = |top: &Option<AbsPath>| top.as_ref().and_then(|top| path.below(top));
        let text = |bytes: &[&[u8]]| Shown(&bytes.concat()).to_string();
        match (below(&self.cwd), below(&self.home)) {
            (Some([]), _) => ".".into(),
            (Some(rest @ [b'~' | b'-', ..]), _) => text(&[b"./", rest]),
            (Some(rest), _) => text(&[rest]),
            (None, Some([])) => "~".into(),
            (None, Some(rest)) => text(&[b"~/", rest]),
            (None, None) => path.to_string(),
        }
    }

    /// A path as a word of a command that a person may copy.
    pub fn word(&self, path: &AbsPath) -> String {
        let shown = self.show(path);
        // What is written in another way than as it is would be another path.
        let is_plain = !shown.starts_with('~') && path.as_bytes().ends_with(shown.as_bytes());
        shell_word(if is_plain { shown.as_bytes() } else { path.as_bytes() }).into_owned()
    }

    /// A directory as printed in a sentence: from `~`, else absolute. `.` would not name it.
    pub fn place(&self, path: &AbsPath) -> String {
        Self { cwd: None, home: self.home.clone() }.show(path)
    }

    /// A sentence with the paths below the working directory or the home directory printed as by [`Names::show`]. A path begins the
    /// sentence or follows a blank or a bracket. These two directories themselves are printed as by [`Names::place`].
    pub fn sentence(&self, text: &str) -> String {
        let tops = [(&self.cwd, ""), (&self.home, "~/")];
        let tops: Vec<(String, &str)> =
            tops.into_iter().filter_map(|(top, short)| Some((format!("{}/", top.as_ref()?), short))).collect();
        let home = self.home.as_ref().map(ToString::to_string).unwrap_or_default();
        let (mut said, mut rest, mut at_start) = (String::new(), text, true);
        while let Some(first) = rest.chars().next() {
            let found = tops.iter().filter(|_| at_start).find_map(|(top, short)| Some((rest.strip_prefix(&**top)?, *short)));
            let is_end = |rest: &&str| rest.chars().next().is_none_or(|next| " :,;)".contains(next));
            let is_home = || rest.strip_prefix(&*home).filter(|_| at_start && !home.is_empty()).filter(is_end);
            if let Some((after, short)) = found.or_else(|| is_home().map(|after| (after, "~"))) {
                said.push_str(short);
                (rest, at_start) = (after, false);
                continue;
            }
            said.push(first);
            rest = &rest[first.len_utf8()..];
            at_start = matches!(first, ' ' | '(');
        }
        said
    }

    /// [`Names::show`] for a path that is text already; any other text stays as it is.
    pub fn show_text(&self, text: &str) -> String {
        AbsPath::parse(text).map_or_else(|_| text.to_owned(), |path| self.show(&path))
    }
}

/// The columns that `text` takes on a terminal: two for each wide character, as in a CJK name, none for a combining one.
pub fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

fn columns_of(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// `text` with blanks behind it, up to `width` columns.
pub fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(columns(text))))
}

/// The first of these characters, as many as fit in `width` columns.
fn fitting(chars: impl Iterator<Item = char>, width: usize) -> impl Iterator<Item = char> {
    chars
        .scan(0, move |taken, c| {
            *taken += columns_of(c);
            Some((*taken <= width).then_some(c))
        })
        .map_while(|c| c)
}

/// `text` in at most `width` columns. Cuts in the middle, and keeps more of the end, where a path has its name.
pub fn shortened(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(1);
    let tail: Vec<char> = fitting(text.chars().rev(), kept - kept / 3).collect();
    fitting(text.chars(), kept / 3).chain(['…']).chain(tail.into_iter().rev()).collect()
}

/// How many of `count` lines are printed, and how many are not. A single line too many is printed: the line in its place would take
/// the same room.
pub fn cut(count: usize, limit: usize) -> (usize, usize) {
    if count <= limit.saturating_add(1) { (count, 0) } else { (limit, count - limit) }
}

/// `text` in at most `width` columns. Cuts at the end: a command is known by its beginning.
pub fn cut_off(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    fitting(text.chars(), width.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use crate::compare::path_text::*;

    fn path(text: &str) -> AbsPath {
        AbsPath::parse(text).unwrap()
    }

    #[test]
    fn paths_start_where_the_reader_is() {
        let names = Names { cwd: Some(path("/home/u/p")), home: Some(path("/home/u")) };
        for (given, shown) in [
            ("/home/u/p/src/a", "src/a"),
            ("/home/u/p", "."),
            ("/home/u/p/~a", "./~a"),
            ("/home/u/p/-rf", "./-rf"),
            ("/home/u/p/a\nb", r#""a\nb""#),
            ("/home/u/pp", "~/pp"),
            ("/home/u", "~"),
            ("/home/us", "/home/us"),
            ("/etc/passwd", "/etc/passwd"),
        ] {
            assert_eq!(names.show(&path(given)), shown);
        }
        assert_eq!((names.place(&path("/home/u/p")), names.place(&path("/srv"))), ("~/p".into(), "/srv".into()));
        for (given, said) in [
            ("/home/u: in it (/home/u/x and 2 more)", "~: in it (~/x and 2 more)"),
            ("/home/u/p/a b: what /home/us and x/home/u/y hold", "a b: what /home/us and x/home/u/y hold"),
            ("/home/u/p and /home/u", "~/p and ~"),
        ] {
            assert_eq!(names.sentence(given), said);
        }
        assert_eq!(names.show_text("a (2 more)"), "a (2 more)");
        assert_eq!(names.show_text("/home/u/p/a"), "a");
    }

    #[test]
    fn a_long_command_loses_its_end() {
        for (text, width, want) in [
            ("abcdef", 6, "abcdef"),
            ("abcdefg", 6, "abcde…"),
            ("äöüß", 3, "äö…"),
            ("ab", 0, "…"),
            ("日本語", 6, "日本語"),
            ("日本語", 5, "日本…"),
            ("日本語", 4, "日…"),
            ("a\u{308}bc", 2, "a\u{308}…"),
        ] {
            assert_eq!(cut_off(text, width), want, "{text} in {width}");
        }
    }

    #[test]
    fn a_long_text_loses_its_middle() {
        for (text, width, want) in [
            ("abcdef", 6, "abcdef"),
            ("abcdefg", 6, "a…defg"),
            ("äöüß", 3, "…üß"),
            ("ab", 1, "…"),
            ("ab", 0, "…"),
            ("日本語の名前", 12, "日本語の名前"),
            ("日本語の名前", 11, "日…の名前"),
            ("日本語の名前", 8, "日…名前"),
        ] {
            assert_eq!(shortened(text, width), want, "{text} in {width}");
        }
    }
}
