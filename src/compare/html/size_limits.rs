//! The room that a file may take on a page.

/// The most lines of a file, those around its changes included.
pub const LINES: usize = 5_000;

/// The most bytes of its lines.
pub const BYTES: usize = 2 << 20;

/// The most bytes of one line.
const LINE: usize = 10_000;

pub struct Room {
    lines: usize,
    bytes: usize,
    /// Lines that found no room.
    pub left_out: usize,
}

impl Room {
    pub fn new() -> Self {
        Self { lines: LINES, bytes: BYTES, left_out: 0 }
    }

    /// Takes a line, or counts it as left out. Once one was left out, all that follow are.
    pub fn takes(&mut self, line: &[u8]) -> bool {
        let bytes = line.len().min(LINE);
        let fits = self.left_out == 0 && self.lines > 0 && self.bytes >= bytes;
        if fits {
            self.lines -= 1;
            self.bytes -= bytes;
        } else {
            self.left_out += 1;
        }
        fits
    }
}

/// The part of a line that is shown, and the number of bytes that are not. No character is cut.
pub fn shown(line: &[u8]) -> (&[u8], usize) {
    if line.len() <= LINE {
        return (line, 0);
    }
    let begins = |at: &usize| line[*at] & 0xc0 != 0x80;
    let end = (LINE - 3..=LINE).rev().find(begins).unwrap_or(LINE);
    (&line[..end], line.len() - end)
}

#[cfg(test)]
mod tests {
    use crate::compare::html::size_limits::*;

    #[test]
    fn a_long_line_is_cut_between_two_characters() {
        let line = "ä".repeat(LINE) + "x";
        assert_eq!(shown(line.as_bytes()), (&line.as_bytes()[..LINE], line.len() - LINE));
        let line = format!("x{line}");
        assert_eq!(shown(line.as_bytes()).0.len(), LINE - 1);
        assert_eq!(shown(b"short"), (&b"short"[..], 0));
    }

    #[test]
    fn what_follows_a_line_that_is_left_out_is_left_out_too() {
        let mut room = Room::new();
        let line = vec![b'x'; LINE];
        let taken = (0..300).filter(|_| room.takes(&line)).count();
        assert_eq!((taken, room.left_out), (BYTES / LINE, 300 - BYTES / LINE));
        assert!(!room.takes(b""));
    }
}
