//! A row of the table of settings.

/// A setting, apart from its type.
#[derive(Debug)]
pub struct Row {
    /// `commit.deny`; `agent.NAME.pass` for one of each agent.
    pub key: &'static str,
    /// A value as it may stand in the file.
    pub example: &'static str,
    /// Its meaning, in a few words with Markdown.
    pub doc: &'static str,
    /// The words of the page in place of the default.
    #[cfg(test)]
    pub shown: Option<&'static str>,
}

impl Row {
    pub(super) const fn new(key: &'static str, example: &'static str, doc: &'static str, _shown: &[&'static str]) -> Self {
        Self {
            key,
            example,
            doc,
            #[cfg(test)]
            shown: _shown.first().copied(),
        }
    }
}
