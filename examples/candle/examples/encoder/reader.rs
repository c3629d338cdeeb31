//! The tokenizer of a model.

use std::path::Path;

use tokenizers::Tokenizer;

use crate::outcome::Outcome;

/// Reads texts as the numbers of tokens.
pub struct Reader {
    tokenizer: Tokenizer,
}

impl Reader {
    /// The tokenizer in `tokenizer.json` of a folder. Its own limit of the length, and what it fills texts up with, are left out.
    pub fn read(folder: &Path) -> Outcome<Self> {
        let path = folder.join("tokenizer.json");
        let tokenizer = Tokenizer::from_file(&path);
        let mut tokenizer = tokenizer.map_err(|error| format!("{}: {error}", path.display()))?;
        tokenizer.with_truncation(None)?.with_padding(None);
        Ok(Reader { tokenizer })
    }

    /// The tokens of a text, up to so many: the token that ends a text is kept.
    pub fn tokens(&self, text: &str, most: usize) -> Outcome<Vec<u32>> {
        let encoding = self.tokenizer.encode(text, true)?;
        let mut tokens = encoding.get_ids().to_vec();
        if let Some(end) = tokens.get(most..).and_then(|rest| rest.last().copied()) {
            tokens.truncate(most);
            tokens[most - 1] = end;
        }
        Ok(tokens)
    }

    /// The first so many tokens of a text.
    ///
    /// # Errors
    /// If there are fewer.
    pub fn exactly(&self, text: &str, length: usize) -> Outcome<Vec<u32>> {
        let tokens = self.tokens(text, length)?;
        match tokens.len() == length {
            true => Ok(tokens),
            false => Err(format!("a text of {length} tokens was needed, but has {}", tokens.len()).into()),
        }
    }
}
