//! Exact counting for models of OpenAI, by their published vocabularies. They are compiled in; nothing is fetched.

/// A vocabulary of OpenAI. The first count with one of a kind takes some hundred milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tiktoken {
    /// The vocabulary of GPT-4o, GPT-4.1, GPT-5 and the o series.
    O200k,
    /// The vocabulary of GPT-4 and GPT-3.5, and of the embedding models.
    Cl100k,
}

impl Tiktoken {
    /// Returns the number of tokens of a text; names of control tokens in it are counted as the text that they are.
    pub fn count(self, text: &str) -> u64 {
        let vocabulary = match self {
            Self::O200k => tiktoken_rs::o200k_base_singleton(),
            Self::Cl100k => tiktoken_rs::cl100k_base_singleton(),
        };
        vocabulary.count_ordinary(text) as u64
    }
}
