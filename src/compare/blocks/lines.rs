//! A content as lines.

/// A NUL among this many first bytes makes content binary, as for git (`buffer_is_binary` in its xdiff-interface.c).
const PROBE: usize = 8000;

/// The lines of a content, each with its end; the last one may have none. Joined they are the content again.
pub fn split(content: &[u8]) -> Vec<&[u8]> {
    content.split_inclusive(|byte| *byte == b'\n').collect()
}

/// True for content that is not shown, chosen from or merged by lines.
pub fn is_binary(content: &[u8]) -> bool {
    content[..content.len().min(PROBE)].contains(&0)
}
