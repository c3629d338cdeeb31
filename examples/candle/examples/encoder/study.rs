//! The comparison: what is read, which ways of attending are chosen, and the tables.

use std::path::Path;

use crate::bert::Bert;
use crate::choice::{Choice, Pass};
use crate::outcome::Outcome;
use crate::quality::Quality;
use crate::reader::Reader;
use crate::request::Request;
use crate::retrieval::{NEAREST, Passages};
use crate::text::{Excerpt, Text};
use crate::timing::{Cost, REPETITIONS, cost};
use crate::ways::WAYS;

/// Characters of text for each token that is needed: there are fewer to a token.
const CHARACTERS: usize = 8;

/// The shortest text whose time is measured.
const SHORTEST: usize = 64;

/// A model with what it reads, and the ways of attending that were chosen on the first segment.
pub struct Study {
    bert: Bert,
    reader: Reader,
    choices: Vec<Choice>,
    /// Segments that nothing was chosen on.
    segments: Vec<Pass>,
    passages: Vec<Vec<u32>>,
    /// What times are measured on.
    long: Excerpt,
}

impl Study {
    pub fn new(folder: &Path, text: &Text, request: &Request) -> Outcome<Self> {
        let (bert, reader) = (Bert::read(folder)?, Reader::read(folder)?);
        let positions = bert.config().positions;
        if request.length > positions {
            return Err(format!("the model knows {positions} places: --length may not be above").into());
        }
        let excerpts = text.segments(request.segments + 1, CHARACTERS * request.length);
        let pass = |excerpt: &Excerpt| Pass::new(&bert, &[reader.exactly(&excerpt.text, request.length)?]);
        let mut segments = excerpts.iter().map(pass).collect::<Outcome<Vec<_>>>()?;
        let calibration = segments.remove(0);
        let choose = |way| Choice::new(way, &calibration, request.features, request.seed);
        let passages = text.passages(request.passages, &excerpts[0].verses);
        Ok(Study {
            choices: WAYS.iter().map(choose).collect::<Outcome<_>>()?,
            segments,
            passages: passages
                .iter()
                .map(|passage| reader.tokens(&passage.text, positions))
                .collect::<Outcome<_>>()?,
            long: text.beginning(CHARACTERS * request.longest),
            bert,
            reader,
        })
    }

    /// The sizes of the model, of what it reads and of the features.
    pub fn heading(&self, request: &Request) -> String {
        let config = self.bert.config();
        format!(
            "{} layers, {} heads of dimension {}; {} frequencies, seed {}\n\
             chosen on one segment of {} tokens, judged on {} others and on {} passages\n\n",
            config.layers,
            config.heads,
            config.hidden / config.heads,
            request.features,
            request.seed,
            request.length,
            self.segments.len(),
            self.passages.len()
        )
    }

    /// The table of errors.
    pub fn quality(&self) -> Outcome<String> {
        let exact = &self.choices[0];
        let passages = Passages::new(&self.bert, exact, &self.passages)?;
        let mut text = format!(
            "features and exact pairs of a query; cosine to the exact embedding; share of the {NEAREST} nearest of {} passages;\n\
             relative error of the outputs of attention in each layer\n{:<18}{:>9}{:>8}{:>9}{:>9}  ",
            self.passages.len(),
            "",
            "features",
            "pairs",
            "cosine",
            "nearest"
        );
        (1..=self.bert.config().layers).for_each(|layer| text += &format!("{:>8}", format!("layer {layer}")));
        text += "\n";
        for choice in &self.choices {
            let Quality { features, pairs, cosine, errors } =
                Quality::new(&self.bert, choice, &self.segments)?;
            let overlap = passages.overlap(&self.bert, choice)?;
            text += &format!("{:<18}{features:>9.0}{pairs:>8.1}{cosine:>9.4}{overlap:>9.3}  ", choice.name);
            errors.iter().for_each(|error| text += &format!("{error:>8.3}"));
            text += "\n";
        }
        Ok(text + "\n")
    }

    /// The tables of times and memory, for lengths that double.
    pub fn costs(&self, longest: usize) -> Outcome<String> {
        let doubled = |length: &usize| length.checked_mul(2);
        let lengths: Vec<usize> =
            std::iter::successors(Some(SHORTEST), doubled).take_while(|length| *length <= longest).collect();
        let tokens = self.reader.exactly(&self.long.text, lengths[lengths.len() - 1])?;
        let of_choice = |choice: &Choice| {
            let costs = lengths.iter().map(|length| cost(&self.bert, choice, &tokens[..*length]));
            costs.collect::<Outcome<Vec<Cost>>>()
        };
        let costs = self.choices.iter().map(of_choice).collect::<Outcome<Vec<_>>>()?;
        let positions = self.bert.config().positions;
        let tiled = match longest > positions {
            true => format!("; from place {positions} on, places begin again, for times alone"),
            false => String::new(),
        };
        let titles: [(String, fn(&Cost) -> f64); 3] = [
            (format!("ms of a pass, least of {REPETITIONS}, over the length{tiled}"), |cost| cost.all),
            ("ms of attention in it".into(), |cost| cost.attention),
            ("MB that a pass holds at most beyond the model".into(), |cost| cost.memory),
        ];
        let table = |(title, number): &(String, fn(&Cost) -> f64)| {
            let mut text = format!("{title}\n{:<18}", "");
            lengths.iter().for_each(|length| text += &format!("{length:>9}"));
            text += "\n";
            for (choice, costs) in self.choices.iter().zip(&costs) {
                text += &format!("{:<18}", choice.name);
                costs.iter().for_each(|cost| text += &format!("{:>9.1}", number(cost)));
                text += "\n";
            }
            text + "\n"
        };
        Ok(titles.iter().map(table).collect())
    }
}
