//! The client of a request: its version of the protocol, and the name that it gives itself.

use serde_json::Value;

/// The version without a handshake.
pub const MODERN: &str = "2026-07-28";
/// Those that begin with `initialize`, the newest first.
pub const LEGACY: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];

/// The keys of a modern request's `_meta`.
pub const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const INFO: &str = "io.modelcontextprotocol/clientInfo";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// The way that a request is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// After `initialize`.
    Legacy,
    Modern,
}

/// A client, as far as it tells of itself. None of it is proved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    pub era: Era,
    /// Its name, in letters that a session's name and a variable take: `claude-code`; empty if it has none.
    pub name: String,
}

/// A modern request that says too little, or of another version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unfit {
    /// A version that is not spoken here.
    Version(String),
    Missing(&'static str),
}

impl Client {
    pub fn of_initialize(params: &Value) -> Self {
        Self { era: Era::Legacy, name: name(&params["clientInfo"]) }
    }

    /// The client of a request without a handshake; `None` if the request is of the older kind.
    pub fn of_request(params: &Value) -> Option<Result<Self, Unfit>> {
        let meta = &params["_meta"];
        let version = meta.get(VERSION)?;
        Some(match version.as_str() {
            Some(MODERN) if !meta[CAPABILITIES].is_object() => Err(Unfit::Missing(CAPABILITIES)),
            Some(MODERN) => Ok(Self { era: Era::Modern, name: name(&meta[INFO]) }),
            Some(other) => Err(Unfit::Version(other.to_owned())),
            None => Err(Unfit::Missing(VERSION)),
        })
    }
}

/// The version that a client gets which asks for `wanted` in `initialize`.
pub fn negotiated(wanted: &Value) -> &'static str {
    LEGACY.into_iter().find(|version| wanted == version).unwrap_or(LEGACY[0])
}

fn name(info: &Value) -> String {
    const MOST: usize = 40;
    let told = info["name"].as_str().unwrap_or_default().to_lowercase();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._".contains(c) { c } else { '-' };
    let plain: String = told.chars().map(plain).skip_while(|c| !c.is_ascii_lowercase()).take(MOST).collect();
    plain.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use crate::face::mcp::client::*;
    use serde_json::json;

    #[test]
    fn a_name_is_made_plain() {
        for (told, want) in [
            ("Claude Code", "claude-code"),
            ("codex-mcp-client", "codex-mcp-client"),
            ("9 lives", "lives"),
            ("--store=/x", "store--x"),
            ("\u{202e}\n", ""),
            ("äöü", ""),
        ] {
            assert_eq!(name(&json!({ "name": told })), want, "{told}");
        }
        assert_eq!(name(&json!({ "name": "x".repeat(99) })).len(), 40);
        assert_eq!(name(&json!(7)), "");
    }

    #[test]
    fn an_unknown_version_gets_the_newest_with_a_handshake() {
        for version in LEGACY {
            assert_eq!(negotiated(&json!(version)), version);
        }
        for other in [json!("2024-11-05"), json!(MODERN), json!(null)] {
            assert_eq!(negotiated(&other), "2025-11-25");
        }
    }
}
