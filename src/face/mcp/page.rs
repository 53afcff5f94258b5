//! Lists in parts that a model can read.

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::carrier::Outcome;

/// The bytes of a page of text, as JSON has it: clients show a model that much without a cut in its middle.
pub const BYTES: usize = 16 << 10;
/// The bytes of a page of a list, whose rows a model reads one by one.
const LIST: usize = 4 << 10;

/// The refusal of a cursor that fits nothing: of a `text` or a `list`.
pub fn changed(what: &str) -> Outcome {
    let why = format!("cursor: the {what} has changed since, or the other arguments are not those of the call before");
    Outcome::refused("refused", why).with("remedy", "repeat the arguments of that call, or call without cursor")
}

/// Cuts the list under `key` of a document to those after `cursor`, as many as a page has room for, at least one; then `total` counts all, and
/// `next` is the cursor for more. A cursor is the hash of the last item before, so that what comes in front meanwhile moves nothing.
///
/// # Errors
/// The item of the cursor is not in the list.
pub fn cut(document: &mut Value, key: &str, cursor: Option<&str>) -> Result<(), Outcome> {
    let Some(list) = document.get_mut(key).and_then(Value::as_array_mut) else { return Ok(()) };
    let total = list.len();
    let first = match cursor {
        None => 0,
        Some(cursor) => 1 + list.iter().position(|item| mark_of(item) == cursor).ok_or_else(|| changed("list"))?,
    };
    list.drain(..first);
    let fits = fitting(list, LIST).max(1);
    let next = (list.len() > fits).then(|| mark_of(&list[fits - 1]));
    list.truncate(fits);
    document["total"] = total.into();
    if let Some(next) = next {
        document["next"] = next.into();
    }
    Ok(())
}

/// The number of first items that `most` bytes have room for.
pub fn fitting(list: &[Value], most: usize) -> usize {
    let sizes = list.iter().scan(0, |size, item| {
        *size += 1 + item.to_string().len();
        Some(*size)
    });
    sizes.take_while(|size| *size <= most).count()
}

fn mark_of(item: &Value) -> String {
    mark(Sha256::new_with_prefix(item.to_string()))
}

/// The hash of a cursor.
pub fn mark(before: Sha256) -> String {
    before.finalize()[..6].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use crate::face::mcp::page::*;
    use serde_json::json;

    #[test]
    fn each_item_comes_once_also_where_others_come_in_front() {
        let list = |from: usize| json!({ "l": (0..45).rev().skip(from).map(|n| json!({ "n": n, "pad": "x".repeat(200) })).collect::<Vec<_>>() });
        let (mut seen, mut cursor) = (Vec::new(), None);
        // 43 items at first; two more come in front.
        for page in 0.. {
            let mut document = list(if page == 0 { 2 } else { 0 });
            cut(&mut document, "l", cursor.as_deref()).unwrap();
            seen.extend(document["l"].as_array().unwrap().iter().map(|item| item["n"].as_u64().unwrap()));
            cursor = document["next"].as_str().map(str::to_owned);
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, (0..43).rev().collect::<Vec<_>>());
        assert!(cut(&mut list(0), "l", Some("000000000000")).is_err());
    }
}
