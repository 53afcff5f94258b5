//! `agent guide`: a text for an agent's instructions.

use crate::face::call::Call;
use crate::face::call_end::Ended;

/// At most 900 bytes: they cost an agent in each of its turns.
const GUIDE: &str = include_str!("guide.md");

pub fn guide(call: &Call) -> Ended {
    if call.out.is_text() {
        call.out.bytes(GUIDE.as_bytes());
    } else {
        call.out.document(&serde_json::json!({ "guide": GUIDE }));
    }
    Ended::Done
}
