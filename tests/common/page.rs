//! A page that was made, read strictly: every tag closed and nested right, every attribute in quotes, every character of markup escaped.

use std::collections::BTreeMap;

/// An element, with what was read of it.
#[derive(Debug, Default)]
pub struct Element {
    pub name: String,
    pub attributes: BTreeMap<String, String>,
    /// Those that it lies in, the outermost first.
    pub above: Vec<usize>,
    /// Its text and that of all in it, as a reader sees it.
    pub text: String,
}

/// The elements of a page, in the order of their beginnings.
pub struct Page(pub Vec<Element>);

/// A file of a page.
#[derive(Debug)]
pub struct File {
    pub word: String,
    pub name: String,
    pub summary: String,
    pub is_open: bool,
    pub at: usize,
}

impl Page {
    /// Reads a page; fails where it is not well-formed.
    pub fn read(text: &str) -> Self {
        let mut rest = text.strip_prefix("<!DOCTYPE html>\n").expect("a page");
        let (mut page, mut open) = (Self(Vec::new()), Vec::new());
        while !rest.is_empty() {
            let Some(tag) = rest.strip_prefix('<') else {
                let end = rest.find('<').unwrap_or(rest.len());
                let text = plain(&rest[..end]);
                open.iter().for_each(|at: &usize| page.0[*at].text.push_str(&text));
                rest = &rest[end..];
                continue;
            };
            let (tag, after) = tag.split_once('>').expect("a tag that ends");
            rest = after;
            if let Some(name) = tag.strip_prefix('/') {
                let last = open.pop().unwrap_or_else(|| panic!("</{name}> closes nothing"));
                assert_eq!(page.0[last].name, name, "after {:?}", page.0[last].text);
                continue;
            }
            let element = Element { above: open.clone(), ..begun(tag) };
            let (is_void, is_style) = (element.name == "meta", element.name == "style");
            page.0.push(element);
            if is_style {
                rest = rest.split_once("</style>").expect("an end of the style").1;
            } else if !is_void {
                open.push(page.0.len() - 1);
            }
        }
        assert!(open.is_empty(), "not closed: {:?}", open.iter().map(|at| &page.0[*at].name).collect::<Vec<_>>());
        page
    }

    /// The elements of this name, below that one.
    pub fn below<'p>(&'p self, at: usize, name: &'p str) -> impl Iterator<Item = &'p Element> {
        self.within(at).map(|(_, element)| element).filter(move |element| element.name == name)
    }

    /// All elements below that one: they follow it.
    fn within(&self, at: usize) -> impl Iterator<Item = (usize, &Element)> {
        self.0.iter().enumerate().skip(at + 1).take_while(move |(_, element)| element.above.contains(&at))
    }

    /// The elements of this name.
    pub fn all<'p>(&'p self, name: &'p str) -> impl Iterator<Item = (usize, &'p Element)> {
        self.0.iter().enumerate().filter(move |(_, element)| element.name == name)
    }

    /// The first text of an element of this name.
    pub fn text(&self, name: &str) -> String {
        self.all(name).next().unwrap_or_else(|| panic!("no {name}")).1.text.trim().to_owned()
    }

    /// The value of a fact.
    pub fn fact(&self, name: &str) -> String {
        let (_, dt) = self.all("dt").find(|(_, dt)| dt.text == name).unwrap_or_else(|| panic!("no fact {name}"));
        let of = *dt.above.last().expect("a group");
        self.below(of, "dd").next().expect("a value").text.clone()
    }

    /// The files.
    pub fn files(&self) -> Vec<File> {
        let holds = |at: usize| self.below(at, "div").next().is_some_and(|div| div.attributes.contains_key("id"));
        self.all("details").filter(|(at, _)| holds(*at)).map(|(at, details)| self.file(at, details)).collect()
    }

    fn file(&self, at: usize, details: &Element) -> File {
        let first = |name: &'static str| self.below(at, name).next().expect("its head").text.clone();
        File {
            word: first("span"),
            name: first("code"),
            summary: first("summary"),
            is_open: details.attributes.contains_key("open"),
            at,
        }
    }

    /// The file of this name.
    pub fn of(&self, name: &str) -> File {
        let mut files = self.files();
        let at = files.iter().position(|file| file.name == name);
        files.remove(at.unwrap_or_else(|| panic!("no {name} in {:?}", files.iter().map(|file| &file.name).collect::<Vec<_>>())))
    }

    /// The lines of a file: the numbers, the sign and the text, as they are read.
    pub fn lines(&self, file: &File) -> Vec<String> {
        let rows = self.within(file.at).filter(|(_, row)| row.name == "tr");
        let cells = |row: usize| {
            let cells = self.within(row).filter(|(_, cell)| matches!(&*cell.name, "td" | "th"));
            cells.map(|(_, cell)| cell.text.clone()).collect::<Vec<_>>().join("|")
        };
        let in_head = |row: &Element| row.above.iter().any(|at| self.0[*at].name == "thead");
        rows.filter(|(_, row)| !in_head(row)).map(|(at, _)| cells(at)).collect()
    }

    /// The remarks of a file.
    pub fn remarks(&self, file: &File) -> Vec<String> {
        self.below(file.at, "li").map(|li| li.text.clone()).collect()
    }
}

/// An element by what stands in its first tag.
fn begun(tag: &str) -> Element {
    let (name, mut rest) = tag.split_at(tag.find(' ').unwrap_or(tag.len()));
    assert!(!name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()), "<{tag}>");
    let mut element = Element { name: name.into(), ..Element::default() };
    while !rest.is_empty() {
        rest = rest.strip_prefix(' ').unwrap_or_else(|| panic!("<{tag}>"));
        let end = rest.find(['=', ' ']).unwrap_or(rest.len());
        let (key, after) = rest.split_at(end);
        assert!(!key.is_empty() && key.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "<{tag}>");
        let (value, after) = match after.strip_prefix("=\"") {
            Some(value) => value.split_once('"').unwrap_or_else(|| panic!("<{tag}>")),
            None => ("", after),
        };
        // The policy has quotes of its own in it.
        let value = if key == "content" { value.to_owned() } else { plain(value) };
        assert!(element.attributes.insert(key.into(), value).is_none(), "<{tag}>");
        rest = after;
    }
    element
}

/// Text without its escapes. Nothing in it is markup, and nothing of it is invisible.
fn plain(text: &str) -> String {
    assert!(!text.contains(['>', '"', '\'']), "not escaped: {text}");
    let is_unseen = |c: char| {
        let is_control = c.is_control() && c != '\n' && c != '\t';
        is_control
            || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    assert!(!text.contains(is_unseen), "not shown: {text:?}");
    let mut parts = text.split('&');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |so_far, part| {
        let (word, rest) = part.split_once(';').unwrap_or_else(|| panic!("a bare &: {part}"));
        let known = [("amp", '&'), ("lt", '<'), ("gt", '>'), ("quot", '"'), ("#39", '\'')];
        let (_, c) = known.iter().find(|(known, _)| *known == word).unwrap_or_else(|| panic!("&{word};"));
        format!("{so_far}{c}{rest}")
    })
}
