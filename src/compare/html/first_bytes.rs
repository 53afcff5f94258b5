//! The place at which two contents that are no text begin to differ.

use super::escape;

/// Bytes of a row.
const ROW: usize = 16;

/// Adds the table of it: the row of each side in hexadecimal digits, and as text. A side that is not there has no row.
pub fn write(to: &mut String, old: Option<&[u8]>, new: Option<&[u8]>, name: &str, sides: [&str; 2]) {
    let (a, b) = (old.unwrap_or_default(), new.unwrap_or_default());
    let both = old.is_some() && new.is_some();
    let at = if both { a.iter().zip(b).take_while(|(a, b)| a == b).count() } else { 0 };
    let start = at - at % ROW;
    let caption = match both {
        true => format!("{name} is not text. The first difference is at byte {}.", crate::settings::grouped(at as u64)),
        false => format!("{name} is not text. It begins with these bytes."),
    };
    to.push_str(&format!(
        "<table class=\"bytes\"><caption>{caption}</caption>\n<thead><tr><th scope=\"col\">Side</th><th scope=\"col\">From byte</th>\
         <th scope=\"col\">Bytes</th><th scope=\"col\">As text</th></tr></thead>\n<tbody>\n"
    ));
    for (bytes, other, side, sign) in [(old, b, sides[0], "−"), (new, a, sides[1], "+")] {
        let Some(bytes) = bytes else { continue };
        let row = |bytes: &[u8]| bytes[start.min(bytes.len())..(start + ROW).min(bytes.len())].to_vec();
        let (bytes, other) = (row(bytes), row(other));
        to.push_str(&format!("<tr><th scope=\"row\">{sign} {side}</th><td>{start:#x}</td><td>"));
        hex(to, &bytes, &other, both);
        to.push_str("</td><td>");
        let text: Vec<u8> = bytes.iter().map(|byte| if matches!(byte, 0x20..0x7f) { *byte } else { b'.' }).collect();
        escape::text(to, &text);
        to.push_str("</td></tr>\n");
    }
    to.push_str("</tbody></table>\n");
}

/// The bytes of a row. Those that the other side has not in their place are marked.
fn hex(to: &mut String, bytes: &[u8], other: &[u8], both: bool) {
    if bytes.is_empty() {
        to.push_str("it ends before");
    }
    for (n, byte) in bytes.iter().enumerate() {
        let blank = if n == 0 { "" } else { " " };
        let digits = format!("{byte:02x}");
        let digits = if both && other.get(n) != Some(byte) { format!("<mark>{digits}</mark>") } else { digits };
        to.push_str(&format!("{blank}{digits}"));
    }
}
