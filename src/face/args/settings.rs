//! The help of `config`: every setting, by an example.

use std::fmt::Write;

use crate::settings::{ROWS, Row};

const BEFORE: &str = "Examples:
  recant config
  recant config --json | jq -r .file

Settings, in recant/config.toml below $XDG_CONFIG_HOME or ~/.config:
";

const AFTER: &str = "
Sizes are bytes, or have a unit: K, M or G, which are KiB, MiB and GiB.";

/// The column at which the explanations begin.
const INDENT: usize = 31;

/// The text below the options of `config --help`.
pub fn config() -> String {
    let mut text = BEFORE.to_owned();
    let mut last = "";
    for (row, (table, name)) in ROWS.iter().filter_map(|row| Some((row, row.key.rsplit_once('.')?))) {
        if table != last {
            push_table(&mut text, table);
            last = table;
        }
        push(&mut text, name, row);
    }
    text.push_str("At the top, before the first table:\n");
    ROWS.iter().filter(|row| !row.key.contains('.')).for_each(|row| push(&mut text, row.key, row));
    text + AFTER
}

/// Adds an example and its explanation, which goes on below itself if it is too long for 80 columns.
fn push(text: &mut String, name: &str, row: &Row) {
    let mut line = format!("{:<INDENT$}", format!("  {name} = {}", row.example));
    for word in row.doc.replace('`', "").split_whitespace() {
        if line.chars().count() + word.chars().count() > 80 {
            text.push_str(line.trim_end());
            text.push('\n');
            line = " ".repeat(INDENT);
        }
        line += word;
        line.push(' ');
    }
    text.push_str(line.trim_end());
    text.push('\n');
}

fn push_table(text: &mut String, table: &str) {
    let (table, about) = match table {
        "agent.NAME" => ("agent.claude", "recant agent run claude"),
        "remotes.NAME" => ("remotes.web", "recant -H web ..."),
        _ => (table, ""),
    };
    let line = format!("  {:<29}{about}", format!("[{table}]"));
    // A String takes whatever is written.
    let _ok = writeln!(text, "{}", line.trim_end());
}
