//! `-H HOST doctor`: reports on this side, then on the far one.

use std::io::Write;
use std::time::Instant;

use serde::Serialize;
use serde_json::Value;

use super::call::Far;
use crate::error::Error;
use crate::face::call_end::Ended;
use crate::remote::{NearSide, PROTOCOL, Stream};

impl Far<'_> {
    /// Reports on this side, then prints the far side's report.
    pub fn doctor(&self) -> Result<Ended, Error> {
        let out = &self.call.out;
        let near = NearSide::look(&self.link.ssh.words);
        let mut printed = Vec::new();
        let begun = Instant::now();
        let mut sink = |stream, bytes: &[u8]| match stream {
            Stream::Output => printed.write_all(bytes),
            Stream::Errors => out.pass_message(bytes),
        };
        let ended = self.link.run_verb(&self.request, None, &mut sink);
        let took = begun.elapsed().as_millis();
        if out.is_text() {
            let own =
                if near.is_static { "static" } else { "not static, so it cannot be installed on other machines: make static" };
            out.line(format_args!("here: recant {}, protocol {PROTOCOL}, {}, {own}", near.version, near.machine));
            out.line(format_args!("ssh: {}", near.ssh_words()));
            if ended.is_ok() {
                out.line(format_args!("{}: answered in {took} ms", self.link.target.name));
                out.line("");
            }
            out.bytes(&printed);
        } else if ended.is_ok() {
            let far = serde_json::from_slice(&printed).unwrap_or(Value::Null);
            out.document(&BothSides { host: &self.link.target.name, near, far });
        }
        self.ended(ended)
    }
}

/// The reports of both sides, as JSON has them: docs/json.md.
#[derive(Serialize)]
struct BothSides<'a> {
    host: &'a str,
    near: NearSide,
    far: Value,
}
