//! A small model with random weights, in the files of a trained one.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use candle_core::{Device, Tensor};
use random_features::rand::{Rng, RngExt};
use random_features::rng;
use serde_json::json;

use crate::config::Config;
use crate::outcome::Outcome;
use crate::text::Text;

/// Whole words of the vocabulary.
const WORDS: usize = 200;

const SPECIAL: [&str; 4] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"];

/// A folder that is removed when its value is dropped.
pub struct Folder(PathBuf);

impl Folder {
    /// A folder for a model among the system's temporary files, which no other process takes.
    pub fn new(name: &str) -> Outcome<Self> {
        let name = format!("random-features-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Folder(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is left to the system.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Writes a model into a folder: its sizes, its tokenizer and its weights.
pub fn write(folder: &Path, text: &Text, seed: u64) -> Outcome<Config> {
    let vocabulary = vocabulary(text);
    let config = Config {
        hidden: 32,
        layers: 2,
        heads: 2,
        intermediate: 64,
        vocabulary: vocabulary.len(),
        positions: 512,
        types: 2,
        epsilon: 1e-12,
    };
    std::fs::write(folder.join("config.json"), config.to_json().to_string())?;
    std::fs::write(folder.join("tokenizer.json"), tokenizer(&vocabulary).to_string())?;
    let weights = weights(&config, &mut rng(seed))?;
    candle_core::safetensors::save(&weights, folder.join("model.safetensors"))?;
    Ok(config)
}

/// Special tokens, characters at the beginning of words and within them, and the first words of the text.
fn vocabulary(text: &Text) -> Vec<String> {
    let characters = ('a'..='z').chain(",.;:?!()'-".chars());
    let single = characters.flat_map(|c| [c.to_string(), format!("##{c}")]);
    let mut all: Vec<String> = SPECIAL.map(str::to_owned).into_iter().chain(single).collect();
    let mut known: HashSet<String> = all.iter().cloned().collect();
    let words = text.words().map(str::to_lowercase).filter(|word| !word.is_empty());
    all.extend(words.filter(|word| known.insert(word.clone())).take(WORDS));
    all
}

/// The text of `tokenizer.json`: pieces of words, between a token that begins a text and one that ends it.
fn tokenizer(vocabulary: &[String]) -> serde_json::Value {
    let numbers: HashMap<&str, usize> =
        vocabulary.iter().enumerate().map(|(number, token)| (token.as_str(), number)).collect();
    let added = |token: &str| {
        json!({"id": numbers[token], "content": token, "special": true, "single_word": false,
            "lstrip": false, "rstrip": false, "normalized": false})
    };
    let special = |token: &str| json!({"SpecialToken": {"id": token, "type_id": 0}});
    let processed = |token: &str| json!({"id": token, "ids": [numbers[token]], "tokens": [token]});
    json!({
        "version": "1.0",
        "added_tokens": SPECIAL.map(added),
        "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
            "strip_accents": null, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [special("[CLS]"), {"Sequence": {"id": "A", "type_id": 0}}, special("[SEP]")],
            "pair": [special("[CLS]"), {"Sequence": {"id": "A", "type_id": 0}}, special("[SEP]"),
                {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"[CLS]": processed("[CLS]"), "[SEP]": processed("[SEP]")},
        },
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": numbers},
    })
}

/// Weights of a model, by their names.
struct Weights<'a, R> {
    rng: &'a mut R,
    all: HashMap<String, Tensor>,
}

impl<R: Rng> Weights<'_, R> {
    /// Uniform numbers around a centre.
    fn uniform(&mut self, name: String, shape: &[usize], centre: f32, bound: f32) -> Outcome<()> {
        let numbers = std::iter::repeat_with(|| centre + self.rng.random_range(-bound..bound));
        let numbers: Vec<f32> = numbers.take(shape.iter().product()).collect();
        self.all.insert(name, Tensor::from_vec(numbers, shape, &Device::Cpu)?);
        Ok(())
    }

    /// A matrix whose numbers have the variance 1 over the number of columns.
    fn matrix(&mut self, name: String, [rows, columns]: [usize; 2]) -> Outcome<()> {
        self.uniform(name, &[rows, columns], 0.0, (3.0 / columns as f32).sqrt())
    }

    fn linear(&mut self, name: &str, sizes: [usize; 2]) -> Outcome<()> {
        self.matrix(format!("{name}.weight"), sizes)?;
        self.uniform(format!("{name}.bias"), &sizes[..1], 0.0, 0.1)
    }

    fn norm(&mut self, name: &str, hidden: usize) -> Outcome<()> {
        self.uniform(format!("{name}.LayerNorm.weight"), &[hidden], 1.0, 0.5)?;
        self.uniform(format!("{name}.LayerNorm.bias"), &[hidden], 0.0, 0.1)
    }
}

/// Random weights under the names that BERT has.
fn weights(config: &Config, rng: &mut impl Rng) -> Outcome<HashMap<String, Tensor>> {
    let Config { hidden, intermediate, .. } = *config;
    let mut weights = Weights { rng, all: HashMap::new() };
    let tables = [("word", config.vocabulary), ("position", config.positions), ("token_type", config.types)];
    for (table, rows) in tables {
        weights.matrix(format!("embeddings.{table}_embeddings.weight"), [rows, hidden])?;
    }
    weights.norm("embeddings", hidden)?;
    for layer in (0..config.layers).map(|number| format!("encoder.layer.{number}")) {
        for name in ["self.query", "self.key", "self.value", "output.dense"] {
            weights.linear(&format!("{layer}.attention.{name}"), [hidden, hidden])?;
        }
        weights.linear(&format!("{layer}.intermediate.dense"), [intermediate, hidden])?;
        weights.linear(&format!("{layer}.output.dense"), [hidden, intermediate])?;
        weights.norm(&format!("{layer}.attention.output"), hidden)?;
        weights.norm(&format!("{layer}.output"), hidden)?;
    }
    Ok(weights.all)
}
