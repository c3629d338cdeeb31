//! What is read, and the ways of attending that are chosen on a part of it.

use std::path::Path;

use crate::bert::Bert;
use crate::choice::{Choice, Pass};
use crate::outcome::Outcome;
use crate::reader::Reader;
use crate::request::Request;
use crate::retrieval::NEAREST;
use crate::text::{Excerpt, Text};
use crate::ways::{Settings, WAYS};

/// Bytes of text for each token that is needed: there are fewer to a token.
const BYTES: usize = 8;

/// A model with what it reads, and the ways of attending that were chosen on some segments.
pub struct Study {
    pub bert: Bert,
    /// The first is exact attention.
    pub choices: Vec<Choice>,
    /// Segments that nothing was chosen on.
    pub segments: Vec<Pass>,
    pub passages: Vec<Vec<u32>>,
    /// What times are measured on.
    pub long: Vec<u32>,
}

impl Study {
    pub fn new(folder: &Path, text: &Text, request: &Request) -> Outcome<Self> {
        let (bert, reader) = (Bert::read(folder)?, Reader::read(folder)?);
        let positions = bert.config().positions;
        if request.length > positions {
            return Err(format!("the model knows {positions} places: --length may not be above").into());
        }
        let excerpts = text.segments(request.segments + request.calibration, BYTES * request.length)?;
        let pass = |excerpts: &[Excerpt]| {
            let tokens = excerpts.iter().map(|excerpt| reader.exactly(&excerpt.text, request.length));
            Pass::new(&bert, &tokens.collect::<Outcome<Vec<_>>>()?)
        };
        // Segments to choose on are spread over the text, as the others are.
        let step = excerpts.len() / request.calibration;
        let (own, others): (Vec<_>, Vec<_>) = excerpts
            .into_iter()
            .enumerate()
            .partition(|(i, _)| i % step == 0 && i / step < request.calibration);
        let [own, others] =
            [own, others].map(|all| all.into_iter().map(|(_, excerpt)| excerpt).collect::<Vec<_>>());
        let calibration = pass(&own)?;
        let segments = others.chunks(1).map(pass).collect::<Outcome<Vec<_>>>()?;
        let Request { features, pairs, seed, .. } = *request;
        let choose = |way| Choice::new(way, &calibration, Settings { features, pairs, seed });
        let own: Vec<_> = own.into_iter().map(|excerpt| excerpt.verses).collect();
        let passages = text.passages(request.passages, &own);
        if passages.len() <= NEAREST {
            return Err(format!(
                "the text has {} passages: {NEAREST} others are sought for each",
                passages.len()
            )
            .into());
        }
        Ok(Study {
            choices: WAYS.iter().map(choose).collect::<Outcome<_>>()?,
            segments,
            passages: passages
                .iter()
                .map(|passage| reader.tokens(&passage.text, positions))
                .collect::<Outcome<_>>()?,
            long: reader.exactly(&text.beginning(BYTES * request.longest).text, request.longest)?,
            bert,
        })
    }

    /// The sizes of the model, of what it reads and of the features.
    pub fn heading(&self, request: &Request) -> String {
        let config = self.bert.config();
        format!(
            "{} layers, {} heads of dimension {}; {} frequencies, seed {}\n\
             chosen on {} segments of {} tokens, judged on {} others and on {} passages\n\n",
            config.layers,
            config.heads,
            config.hidden / config.heads,
            request.features,
            request.seed,
            request.calibration,
            request.length,
            self.segments.len(),
            self.passages.len()
        )
    }
}
