//! Settings that are one of a few words.

/// A type whose values have words in the file and on the command line.
pub trait Choice: Copy + 'static {
    const ALL: &'static [Self];
    fn word(self) -> &'static str;
}

macro_rules! choice {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl Choice for $name {
            const ALL: &'static [Self] = &[$(Self::$variant),*];

            fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }
    };
}

choice! {
    /// The policy for a deleted directory that is above a checkpoint limit.
    OnLimit {
        /// All of it is kept; its size is reported.
        #[default]
        Full = "full",
        /// Its content is not kept; that is reported.
        Partial = "partial",
    }
}

choice! {
    /// Permission for an agent to commit and to roll back.
    AgentCommit {
        /// It is refused, with the command for a person.
        #[default]
        Refuse = "refuse",
        /// It may do both.
        Allow = "allow",
    }
}

choice! {
    /// When to colour.
    Color {
        /// On a terminal, unless the environment says otherwise (`NO_COLOR`).
        #[default]
        Auto = "auto",
        Always = "always",
        Never = "never",
    }
}
