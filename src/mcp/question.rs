//! A person's word: a question with a one-time code, and what proves that an answer belongs to it.
//!
//! The code stands in the question's text alone (Q3). The proof goes through the client, as `requestState`: the tool, a hash of the arguments,
//! the digest of what is shown and the end of its time, with an HMAC under a key that this process has made for itself. It does not hold the
//! code, which is another HMAC of the same claim.
//!
//! A client that answers by itself, as some do with `{}`, has no code. One that reads the question and answers it is not told from a person:
//! docs/mcp.md says so.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::carrier::{Asked, Plan};
use super::hmac;

/// The characters of a code, of which none looks like another.
const LETTERS: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
/// The length of a code: 30 bits, for one attempt.
const LENGTH: usize = 6;

/// The field of the form.
pub const FIELD: &str = "code";

/// Why an answer does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unheard {
    /// The proof is none of this process's, or was changed.
    Forged,
    /// It was for another call.
    OfAnother,
    /// Its time is over.
    Late,
    /// It was answered before.
    Spent,
    /// The person said no.
    Declined,
    /// The person closed the question, or the client did.
    Cancelled,
    /// There is no answer of the protocol's form, or no code in it.
    Empty,
    /// It is another code.
    WrongCode,
}

impl Unheard {
    /// The reason in a sentence.
    pub fn why(self) -> &'static str {
        match self {
            Self::Forged => "the answer belongs to no question of this server",
            Self::OfAnother => "the answer belongs to a question about another call",
            Self::Late => "the answer came too late",
            Self::Spent => "the question was answered before, and counts once",
            Self::Declined => "the question was declined",
            Self::Cancelled => "the question was cancelled",
            Self::Empty => "the answer has no code: nobody has read the question",
            Self::WrongCode => "the code is not that of the question",
        }
    }
}

/// The subject of a question. All of it is proved.
#[derive(Debug, Serialize, Deserialize)]
struct Claim {
    /// No two are the same.
    nonce: String,
    tool: String,
    /// The hash of the arguments.
    arguments: String,
    digest: String,
    /// Milliseconds since this process began.
    due: u64,
}

/// A question that was put.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The parameters of `elicitation/create`.
    pub params: Value,
    /// The proof: `requestState`.
    pub state: String,
}

/// Puts questions, and hears answers.
pub struct Asker {
    key: [u8; 32],
    within: Duration,
    began: Instant,
    count: u64,
    /// Those that were answered, each with its end: after that they are late anyway.
    spent: BTreeMap<String, u64>,
}

impl Asker {
    /// Puts questions that can be answered for as long as `within`. The key has to be random.
    pub fn new(key: [u8; 32], within: Duration) -> Self {
        Self { key, within, began: Instant::now(), count: 0, spent: BTreeMap::new() }
    }

    /// The time for an answer.
    pub fn within(&self) -> Duration {
        self.within
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Puts a question.
    pub fn ask(&mut self, asked: &Asked, plan: &Plan) -> Question {
        self.count += 1;
        let due = self.now().saturating_add(u64::try_from(self.within.as_millis()).unwrap_or(u64::MAX));
        let claim = Claim {
            nonce: self.count.to_string(),
            tool: asked.tool.name.into(),
            arguments: hash_of(asked),
            digest: plan.digest.clone(),
            due,
        };
        // All of its fields are texts and numbers.
        let claim = serde_json::to_vec(&claim).unwrap_or_default();
        let state = format!("{}.{}", BASE64.encode(&claim), BASE64.encode(self.proof(&claim)));
        Question { params: json!({ "message": text(plan, &self.code(&claim)), "requestedSchema": form() }), state }
    }

    fn proof(&self, claim: &[u8]) -> [u8; 32] {
        hmac::of(&self.key, &[b"state\0", claim].concat())
    }

    fn code(&self, claim: &[u8]) -> String {
        let bytes = hmac::of(&self.key, &[b"code\0", claim].concat());
        bytes[..LENGTH].iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect()
    }

    /// Hears an answer to the question that `state` proves: the result of `elicitation/create`. Returns the digest of what was shown.
    ///
    /// # Errors
    /// It does not count. A proof that is of this call is spent, whatever the answer is.
    pub fn hear(&mut self, state: &str, asked: &Asked, answer: &Value) -> Result<String, Unheard> {
        let (text, claim) = self.proved(state).ok_or(Unheard::Forged)?;
        if claim.tool != asked.tool.name || claim.arguments != hash_of(asked) {
            return Err(Unheard::OfAnother);
        }
        let now = self.now();
        self.spent.retain(|_, due| *due >= now);
        if claim.due < now {
            return Err(Unheard::Late);
        }
        if self.spent.insert(claim.nonce, claim.due).is_some() {
            return Err(Unheard::Spent);
        }
        match answer["action"].as_str() {
            Some("accept") => {}
            Some("decline") => return Err(Unheard::Declined),
            Some("cancel") => return Err(Unheard::Cancelled),
            _ => return Err(Unheard::Empty),
        }
        let code = answer["content"][FIELD].as_str().ok_or(Unheard::Empty)?;
        let typed: String = code.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_ascii_uppercase()).collect();
        if hmac::is_same(typed.as_bytes(), self.code(&text).as_bytes()) { Ok(claim.digest) } else { Err(Unheard::WrongCode) }
    }

    fn proved(&self, state: &str) -> Option<(Vec<u8>, Claim)> {
        let (claim, proof) = state.split_once('.')?;
        let (claim, proof) = (BASE64.decode(claim).ok()?, BASE64.decode(proof).ok()?);
        let read = hmac::is_same(&proof, &self.proof(&claim)).then(|| serde_json::from_slice(&claim).ok())??;
        Some((claim, read))
    }
}

fn hash_of(asked: &Asked) -> String {
    // serde_json sorts the keys of a map.
    let text = serde_json::to_vec(&asked.arguments).unwrap_or_default();
    BASE64.encode(Sha256::digest(text))
}

/// The question. The code comes first, then what a dry run says last: Claude Code shows three lines of it, and how many more there are.
fn text(plan: &Plan, code: &str) -> String {
    let digest = &plan.digest[..plan.digest.len().min(12)];
    let mut text = format!("Type the code {code} to confirm: {}\n", plan.act);
    let (sum, rows) = plan.summary.split_last().map_or(("", &[][..]), |(sum, rows)| (sum, rows));
    text.push_str(&format!("{sum} (digest {digest})\n"));
    for row in rows {
        text.push_str(&format!("  {row}\n"));
    }
    text.push_str(
        "It changes real files. The question is for you, the person, not for the agent: decline if you have not asked for it.",
    );
    text
}

fn form() -> Value {
    json!({
        "type": "object",
        "properties": { FIELD: { "type": "string", "title": "Code", "description": "The code that stands in the question", "minLength": LENGTH } },
        "required": [FIELD],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::tools;

    fn asked(session: &str) -> Asked {
        let tool = tools::find("commit").unwrap();
        Asked { tool, arguments: tool.read(&json!({ "session": session })).unwrap(), client: String::new() }
    }

    fn plan() -> Plan {
        Plan { digest: "d".repeat(64), act: "commit session k3fa".into(), summary: vec!["3 changes".into()], command: "c".into() }
    }

    fn code_in(question: &Question) -> String {
        let text = question.params["message"].as_str().unwrap();
        text.split_once("the code ").unwrap().1[..LENGTH].to_owned()
    }

    fn yes(code: &str) -> Value {
        json!({ "action": "accept", "content": { FIELD: code } })
    }

    #[test]
    fn the_right_code_counts_once() {
        let mut asker = Asker::new([7; 32], Duration::from_secs(60));
        let question = asker.ask(&asked("k3fa"), &plan());
        let code = code_in(&question);
        let typed = format!(" {} {}", &code[..3].to_lowercase(), &code[3..]);
        assert_eq!(asker.hear(&question.state, &asked("k3fa"), &yes(&typed)), Ok("d".repeat(64)));
        assert_eq!(asker.hear(&question.state, &asked("k3fa"), &yes(&code)), Err(Unheard::Spent));
    }

    #[test]
    fn no_other_answer_counts_and_each_spends_the_question() {
        for (answer, want) in [
            (json!({ "action": "accept", "content": {} }), Unheard::Empty),
            (json!({ "action": "accept" }), Unheard::Empty),
            (json!({ "action": "accept", "content": { FIELD: true } }), Unheard::Empty),
            (json!({ "action": "accept", "content": { FIELD: "" } }), Unheard::WrongCode),
            (yes("AAAAAA"), Unheard::WrongCode),
            (json!({ "action": "decline" }), Unheard::Declined),
            (json!({ "action": "cancel" }), Unheard::Cancelled),
            (json!({}), Unheard::Empty),
            (json!(null), Unheard::Empty),
            (json!("yes"), Unheard::Empty),
        ] {
            let mut asker = Asker::new([7; 32], Duration::from_secs(60));
            let question = asker.ask(&asked("k3fa"), &plan());
            assert_eq!(asker.hear(&question.state, &asked("k3fa"), &answer), Err(want), "{answer}");
            assert_eq!(asker.hear(&question.state, &asked("k3fa"), &yes(&code_in(&question))), Err(Unheard::Spent), "{answer}");
        }
    }

    #[test]
    fn a_proof_is_of_one_call_one_process_and_a_short_time() {
        let mut asker = Asker::new([7; 32], Duration::from_secs(60));
        let question = asker.ask(&asked("k3fa"), &plan());
        let right = yes(&code_in(&question));
        assert_eq!(asker.hear(&question.state, &asked("7pqa"), &right), Err(Unheard::OfAnother));
        let mut other = Asker::new([8; 32], Duration::from_secs(60));
        assert_eq!(other.hear(&question.state, &asked("k3fa"), &right), Err(Unheard::Forged));
        for forged in [String::new(), ".".into(), question.state.replace('.', ""), question.state[1..].to_owned()] {
            assert_eq!(asker.hear(&forged, &asked("k3fa"), &right), Err(Unheard::Forged), "{forged}");
        }
        // A claim of one's own under another's proof.
        let (claim, proof) = question.state.split_once('.').unwrap();
        let claim = String::from_utf8(BASE64.decode(claim).unwrap()).unwrap().replace("\"nonce\":\"1\"", "\"nonce\":\"2\"");
        assert_eq!(asker.hear(&format!("{}.{proof}", BASE64.encode(claim)), &asked("k3fa"), &right), Err(Unheard::Forged));
        assert!(asker.hear(&question.state, &asked("k3fa"), &right).is_ok());
        let mut quick = Asker::new([7; 32], Duration::ZERO);
        let question = quick.ask(&asked("k3fa"), &plan());
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(quick.hear(&question.state, &asked("k3fa"), &yes(&code_in(&question))), Err(Unheard::Late));
    }

    #[test]
    fn the_code_is_in_the_text_alone_and_new_each_time() {
        let mut asker = Asker::new([7; 32], Duration::from_secs(60));
        let [one, other] = [(); 2].map(|()| asker.ask(&asked("k3fa"), &plan()));
        assert_ne!(code_in(&one), code_in(&other));
        let claim = BASE64.decode(one.state.split_once('.').unwrap().0).unwrap();
        assert!(!String::from_utf8(claim).unwrap().contains(&code_in(&one)));
        assert!(!one.params["requestedSchema"].to_string().contains(&code_in(&one)));
        assert!(one.params["message"].as_str().unwrap().contains("dddddddddddd"));
    }
}
