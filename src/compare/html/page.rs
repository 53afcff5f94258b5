//! The head of a page, above its files: what it is of, what has to be minded, the sums, and the contents.

use super::escape::escaped;
use super::file_part::{Entry, signed};
use crate::session::Sort;
use crate::settings;

/// The style, for a screen of any width in light and dark, and for paper.
const STYLE: &str = include_str!("style.css");

/// With more paths than these, all but the deletions are folded.
const LISTED: usize = 200;

/// With more lines than these, the rest of a list of what has to be minded is folded.
const MINDED: usize = 20;

/// The most characters of a fact that are not folded.
const FACT: usize = 240;

/// The subject of a page.
#[derive(Default)]
pub struct About {
    pub title: String,
    pub facts: Vec<(String, String)>,
    /// Points to be minded, each with its word.
    pub notes: Vec<(String, String)>,
    /// Places that a run could use, with the reason where it is not plain; and what became of changes there.
    pub places: Vec<(String, String)>,
}

/// Writes the page up to its first file.
pub fn head(about: &About, entries: &[Entry]) -> String {
    let mut to = String::new();
    let title = escaped(about.title.as_bytes());
    // So many are laid out when they come into view.
    let many = if entries.len() > LISTED { " class=\"many\"" } else { "" };
    to.push_str(&format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body{many}>\n\
         <header>\n<h1>{title}</h1>\n"
    ));
    facts(&mut to, &about.facts);
    to.push_str("</header>\n<main>\n");
    minded(&mut to, about, entries);
    summary(&mut to, entries);
    contents(&mut to, entries);
    if !entries.is_empty() {
        to.push_str("<section aria-labelledby=\"files\">\n<h2 id=\"files\">Changes</h2>\n");
    }
    to
}

pub fn foot(about: &About, is_empty: bool) -> String {
    let mut to = String::from(if is_empty { "" } else { "</section>\n" });
    if !about.places.is_empty() {
        to.push_str("<section aria-labelledby=\"places\">\n<h2 id=\"places\">What the run held, by place</h2>\n");
        places(&mut to, &about.places);
        to.push_str("</section>\n");
    }
    let version = env!("CARGO_PKG_VERSION");
    to.push_str(&format!(
        "</main>\n<footer><p>Made by recant {version}. The page loads nothing and runs nothing. A character that is invisible, or would reverse \
         the text, is shown by its number in a frame: <i>&lt;U+202E&gt;</i>.</p></footer>\n</body>\n</html>\n"
    ));
    to
}

fn places(to: &mut String, places: &[(String, String)]) {
    to.push_str(
        "<table class=\"contents\"><caption>What happens to changes there</caption>\n<thead><tr><th scope=\"col\">Place</th>\
         <th scope=\"col\">Changes</th></tr></thead>\n<tbody>\n",
    );
    for (place, what) in places {
        let [place, what] = [place, what].map(|text| escaped(text.as_bytes()));
        to.push_str(&format!("<tr><th scope=\"row\">{place}</th><td>{what}</td></tr>\n"));
    }
    to.push_str("</tbody></table>\n");
}

fn facts(to: &mut String, facts: &[(String, String)]) {
    if facts.is_empty() {
        return;
    }
    to.push_str("<dl>\n");
    for (name, value) in facts {
        to.push_str(&format!("<div><dt>{}</dt><dd>{}</dd></div>\n", escaped(name.as_bytes()), fact(value)));
    }
    to.push_str("</dl>\n");
}

/// A fact; the rest of a long one is folded.
fn fact(value: &str) -> String {
    match value.char_indices().nth(FACT) {
        None => escaped(value.as_bytes()),
        Some((at, _)) => {
            let (first, rest) = value.split_at(at);
            let [first, rest] = [first, rest].map(|part| escaped(part.as_bytes()));
            format!("<details><summary>{first} …</summary>… {rest}</details>")
        }
    }
}

fn minded(to: &mut String, about: &About, entries: &[Entry]) {
    let link = |entry: &Entry, why: &str| format!("<a href=\"#f{}\"><code>{}</code></a>: {why}", entry.n, entry.name);
    let conflicts = entries.iter().filter(|entry| entry.conflict);
    let conflicts = conflicts.map(|entry| link(entry, entry.why.as_deref().unwrap_or("the tree is not as recorded")));
    let rights = entries.iter().filter(|entry| !entry.rights.is_empty()).map(|entry| link(entry, &entry.rights.join("; ")));
    let lists: [(&str, Vec<String>); 3] = [
        ("Conflicts", conflicts.collect()),
        ("Rights that it gives", rights.collect()),
        (
            "Not covered, or beyond files",
            about
                .notes
                .iter()
                .map(|(word, text)| format!("<strong>{}</strong> {}", escaped(word.as_bytes()), escaped(text.as_bytes())))
                .collect(),
        ),
    ];
    if lists.iter().all(|(_, list)| list.is_empty()) {
        return;
    }
    to.push_str("<section class=\"mind\" aria-labelledby=\"mind\">\n<h2 id=\"mind\">Look at these first</h2>\n");
    for (head, list) in lists.iter().filter(|(_, list)| !list.is_empty()) {
        to.push_str(&format!("<h3>{head} <span class=\"w\">({})</span></h3>\n", settings::grouped(list.len() as u64)));
        let (first, rest) = list.split_at(list.len().min(MINDED));
        items(to, first);
        if !rest.is_empty() {
            to.push_str(&format!("<details><summary>{} more</summary>\n", settings::grouped(rest.len() as u64)));
            items(to, rest);
            to.push_str("</details>\n");
        }
    }
    to.push_str("</section>\n");
}

fn items(to: &mut String, list: &[String]) {
    to.push_str("<ul>\n");
    list.iter().for_each(|item| to.push_str(&format!("<li>{item}</li>\n")));
    to.push_str("</ul>\n");
}

const WORDS: [&str; 6] = ["created", "modified", "deleted", "renamed", "metadata", "times"];

fn summary(to: &mut String, entries: &[Entry]) {
    to.push_str("<section aria-labelledby=\"summary\">\n<h2 id=\"summary\">Summary</h2>\n<p class=\"sums\">");
    if entries.is_empty() {
        to.push_str("Nothing differs.");
    }
    for word in WORDS {
        let count = entries.iter().filter(|entry| entry.word == word).count();
        if count > 0 {
            to.push_str(&format!("<span class=\"k {word}\">{} {word}</span> ", settings::grouped(count as u64)));
        }
    }
    let lines = entries.iter().filter_map(|entry| entry.lines).fold((0, 0), |sum, lines| (sum.0 + lines.0, sum.1 + lines.1));
    if !entries.is_empty() {
        let [before, after] = [0, 1].map(|i| settings::bytes(entries.iter().map(|entry| entry.sizes[i]).sum()));
        to.push_str(&signed(lines.0, lines.1));
        to.push_str(&format!(" <span class=\"w\">lines; {before} before, {after} after</span>"));
    }
    to.push_str("</p>\n</section>\n");
}

fn contents(to: &mut String, entries: &[Entry]) {
    if entries.is_empty() {
        return;
    }
    to.push_str("<nav aria-labelledby=\"contents\">\n<h2 id=\"contents\">Contents</h2>\n");
    if entries.len() <= LISTED {
        table(to, "Each change, in the order of the page", entries.iter());
    } else {
        let (deleted, others): (Vec<_>, Vec<_>) = entries.iter().partition(|entry| entry.sort == Sort::Deleted);
        if !deleted.is_empty() {
            table(to, &format!("All {} that are deleted", settings::grouped(deleted.len() as u64)), deleted.into_iter());
        }
        if !others.is_empty() {
            let count = settings::grouped(others.len() as u64);
            to.push_str(&format!("<details><summary>{count} that are created or changed</summary>\n"));
            table(to, "Each of them, in the order of the page", others.into_iter());
            to.push_str("</details>\n");
        }
    }
    to.push_str("</nav>\n");
}

fn table<'e>(to: &mut String, caption: &str, entries: impl Iterator<Item = &'e Entry>) {
    to.push_str(&format!(
        "<table class=\"contents\"><caption>{caption}</caption>\n<thead><tr><th scope=\"col\">Path</th><th scope=\"col\">Change</th>\
         <th scope=\"col\">Lines +</th><th scope=\"col\">Lines −</th></tr></thead>\n<tbody>\n"
    ));
    entries.for_each(|entry| row(to, entry));
    to.push_str("</tbody></table>\n");
}

fn row(to: &mut String, entry: &Entry) {
    let Entry { n, name, word, kind, lines, .. } = entry;
    let mut what = format!("<span class=\"k {word}\">{word}</span>");
    if *kind != "file" {
        what.push_str(&format!(" {kind}"));
    }
    for flag in [(entry.conflict, "conflict"), (!entry.rights.is_empty(), "gives rights")].iter().filter(|(is_set, _)| *is_set) {
        what.push_str(&format!(" <strong class=\"flag\">{}</strong>", flag.1));
    }
    let (insertions, deletions) = match lines {
        Some((insertions, deletions)) => (signed(*insertions, 0), signed(0, *deletions)),
        None => ("no text".into(), String::new()),
    };
    to.push_str(&format!(
        "<tr><th scope=\"row\"><a href=\"#f{n}\"><code>{name}</code></a></th><td>{what}</td><td>{insertions}</td><td>{deletions}</td></tr>\n"
    ));
}
