//! The sizes of a model, as `config.json` states them.

use std::path::Path;

use serde_json::{Value, json};

use crate::outcome::Outcome;

/// The sizes of an encoder.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The dimension of tokens.
    pub hidden: usize,
    pub layers: usize,
    pub heads: usize,
    /// The dimension within the perceptron of a layer.
    pub intermediate: usize,
    pub vocabulary: usize,
    /// Places that have an embedding.
    pub positions: usize,
    /// Kinds of segments; all tokens here are of the first.
    pub types: usize,
    /// What layer norms add to variances.
    pub epsilon: f64,
}

impl Config {
    /// Reads `config.json` in a folder.
    pub fn read(folder: &Path) -> Outcome<Self> {
        let path = folder.join("config.json");
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let config = Self::of_json(&serde_json::from_str(&text)?);
        config.map_err(|sentence| format!("{}: {sentence}", path.display()).into())
    }

    fn of_json(json: &Value) -> Result<Self, String> {
        let is = |name: &str, expected: &str| match json[name].as_str() {
            Some(found) if found == expected => Ok(()),
            found => Err(format!("'{name}' must be \"{expected}\", not {found:?}")),
        };
        is("model_type", "bert")?;
        is("hidden_act", "gelu")?;
        is("position_embedding_type", "absolute")?;
        let size = |name: &str| {
            let size = json[name].as_u64().filter(|size| *size > 0);
            size.map(|size| size as usize).ok_or_else(|| format!("'{name}' must be a positive whole number"))
        };
        let config = Config {
            hidden: size("hidden_size")?,
            layers: size("num_hidden_layers")?,
            heads: size("num_attention_heads")?,
            intermediate: size("intermediate_size")?,
            vocabulary: size("vocab_size")?,
            positions: size("max_position_embeddings")?,
            types: size("type_vocab_size")?,
            epsilon: json["layer_norm_eps"].as_f64().ok_or("'layer_norm_eps' must be a number")?,
        };
        match config.hidden.is_multiple_of(config.heads) {
            true => Ok(config),
            false => Err(format!("{} heads cannot share {} coordinates", config.heads, config.hidden)),
        }
    }

    /// The text of `config.json`.
    pub fn to_json(&self) -> Value {
        json!({
            "model_type": "bert",
            "hidden_act": "gelu",
            "position_embedding_type": "absolute",
            "hidden_size": self.hidden,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "intermediate_size": self.intermediate,
            "vocab_size": self.vocabulary,
            "max_position_embeddings": self.positions,
            "type_vocab_size": self.types,
            "layer_norm_eps": self.epsilon,
        })
    }
}
