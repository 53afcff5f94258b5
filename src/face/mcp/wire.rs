//! JSON-RPC 2.0, a message a line.

use std::io::{self, BufRead};

use serde_json::{Value, json};

/// The longest line that is read, in bytes.
pub const LONGEST: usize = 4 << 20;

/// Errors by their numbers: JSON-RPC's own, then the protocol's.
pub const PARSE: i64 = -32700;
/// A message that is none.
pub const INVALID: i64 = -32600;
/// A method that is not served.
pub const METHOD: i64 = -32601;
/// Parameters that do not fit the method.
pub const PARAMS: i64 = -32602;
/// A version that is not spoken (2026-07-28).
pub const VERSION: i64 = -32022;

#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// It is to be answered under its id, a string or an integer.
    Request { id: Value, method: String, params: Value },
    /// It is not answered.
    Notification { method: String, params: Value },
    /// An answer; the server asks nothing.
    Answer,
}

/// A line that is no message: the id as far as it could be read, the number and the words of the error.
#[derive(Debug, Clone, PartialEq)]
pub struct Wrong {
    /// The id to answer under, or `null`.
    pub id: Value,
    pub code: i64,
    pub why: &'static str,
}

/// Reads a line. A batch, of which 2025-03-26 alone knows, is a list of messages.
pub fn read(line: &[u8]) -> Vec<Result<Message, Wrong>> {
    let wrong = |code, why| vec![Err(Wrong { id: Value::Null, code, why })];
    match serde_json::from_slice(line) {
        Err(_) => wrong(PARSE, "the line is no JSON"),
        Ok(Value::Array(list)) if list.is_empty() => wrong(INVALID, "the batch is empty"),
        Ok(Value::Array(list)) => list.into_iter().map(message).collect(),
        Ok(value) => vec![message(value)],
    }
}

fn message(mut value: Value) -> Result<Message, Wrong> {
    let id = value.get("id").cloned();
    let fits = |id: &Value| id.is_string() || id.is_i64() || id.is_u64();
    let wrong = |why| Wrong { id: id.clone().filter(fits).unwrap_or(Value::Null), code: INVALID, why };
    if value["jsonrpc"] != "2.0" {
        return Err(wrong("jsonrpc has to be \"2.0\""));
    }
    let params = value.get_mut("params").map_or(Value::Null, Value::take);
    match (value["method"].as_str().map(str::to_owned), id.clone()) {
        _ if !(params.is_object() || params.is_null()) => Err(wrong("params have to be an object")),
        (Some(method), Some(id)) if fits(&id) => Ok(Message::Request { id, method, params }),
        (Some(_), Some(_)) => Err(wrong("an id is a string or an integer")),
        (Some(method), None) => Ok(Message::Notification { method, params }),
        (None, Some(_)) if value.get("result").is_some() != value.get("error").is_some() => Ok(Message::Answer),
        (None, Some(_)) if value.get("result").is_some() => Err(wrong("an answer has a result or an error, not both")),
        _ => Err(wrong("it has no method")),
    }
}

/// Reads up to the next newline; `None` at the end. A longer line is read to its end, and is the error.
///
/// # Errors
/// Those of reading.
pub fn next_line(from: &mut impl BufRead) -> io::Result<Option<Result<Vec<u8>, Wrong>>> {
    let mut line = Vec::new();
    let mut is_long = false;
    loop {
        let some = from.fill_buf()?;
        if some.is_empty() {
            let whole = Wrong { id: Value::Null, code: PARSE, why: "the line is too long" };
            return Ok((is_long || !line.is_empty()).then_some(if is_long { Err(whole) } else { Ok(line) }));
        }
        let end = some.iter().position(|byte| *byte == b'\n');
        let part = &some[..end.unwrap_or(some.len())];
        is_long |= line.len() + part.len() > LONGEST;
        if !is_long {
            line.extend_from_slice(part);
        }
        let used = end.map_or(some.len(), |end| end + 1);
        from.consume(used);
        if end.is_some() {
            let whole = Wrong { id: Value::Null, code: PARSE, why: "the line is too long" };
            return Ok(Some(if is_long { Err(whole) } else { Ok(line) }));
        }
    }
}

pub fn result(id: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// An error as the answer. The id is left out where none could be read: the newer schemas have no `null` there.
pub fn error(id: &Value, code: i64, message: &str, data: Option<Value>) -> Value {
    let mut error = json!({ "code": code, "message": message });
    if let Some(data) = data {
        error["data"] = data;
    }
    match id {
        Value::Null => json!({ "jsonrpc": "2.0", "error": error }),
        id => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
    }
}

pub fn notification(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

#[cfg(test)]
mod tests {
    use crate::face::mcp::wire::*;

    fn one(line: &str) -> Result<Message, (i64, Value)> {
        let [message] = &read(line.as_bytes())[..] else { panic!("{line}: one message") };
        message.clone().map_err(|wrong| (wrong.code, wrong.id))
    }

    #[test]
    fn a_line_is_a_request_a_notification_an_answer_or_wrong() {
        let request = one(r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#).unwrap();
        assert_eq!(request, Message::Request { id: json!("a"), method: "ping".into(), params: Value::Null });
        assert!(matches!(one(r#"{"jsonrpc":"2.0","method":"x","params":{}}"#), Ok(Message::Notification { .. })));
        assert!(matches!(one(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), Ok(Message::Answer)));
        assert!(matches!(one(r#"{"jsonrpc":"2.0","id":1,"error":{}}"#), Ok(Message::Answer)));
        assert!(one(r#"{"jsonrpc":"2.0","id":1,"error":{},"result":{}}"#).is_err());
        for (line, code, id) in [
            ("", PARSE, json!(null)),
            ("{", PARSE, json!(null)),
            ("\u{0}", PARSE, json!(null)),
            ("[]", INVALID, json!(null)),
            ("7", INVALID, json!(null)),
            (r#"{"id":1,"method":"x"}"#, INVALID, json!(1)),
            (r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#, INVALID, json!(null)),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#, INVALID, json!(null)),
            (r#"{"jsonrpc":"2.0","id":1,"method":"x","params":[]}"#, INVALID, json!(1)),
            (r#"{"jsonrpc":"2.0","id":1}"#, INVALID, json!(1)),
        ] {
            assert_eq!(one(line), Err((code, id)), "{line}");
        }
        assert_eq!(read(br#"[{"jsonrpc":"2.0","method":"x"},7]"#).len(), 2);
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over_to_its_end() {
        let text = format!("a\n{}\nb", "x".repeat(LONGEST + 1));
        let mut from = io::Cursor::new(text);
        let mut next = || next_line(&mut from).unwrap();
        assert_eq!(next(), Some(Ok(b"a".to_vec())));
        assert!(matches!(next(), Some(Err(Wrong { code: PARSE, .. }))));
        assert_eq!(next(), Some(Ok(b"b".to_vec())));
        assert_eq!(next(), None);
    }
}
