//! The encoder beside plain loops, and ways of attending that must agree.

use random_features::apply::attention::Attention;
use random_features::ndarray::Array4;

use crate::batch::Batch;
use crate::bert::Bert;
use crate::choice::Pass;
use crate::head::{Head, attend};
use crate::outcome::Outcome;
use crate::pairs::Pairs;
use crate::reader::Reader;
use crate::reference::Reference;
use crate::small::{self, Folder};
use crate::text::Text;
use crate::tokens::Tokens;

/// The small model with its folder and some texts of tokens.
fn model(name: &str) -> Outcome<(Folder, Bert, Vec<Vec<u32>>)> {
    let (folder, text) = (Folder::new(name)?, Text::bundled()?);
    small::write(folder.path(), &text, 3)?;
    let reader = Reader::read(folder.path())?;
    let lengths = [40, 7, 23];
    let texts = text.segments(lengths.len(), 400)?.into_iter().zip(lengths);
    let texts = texts.map(|(excerpt, length)| reader.exactly(&excerpt.text, length));
    let texts = texts.collect::<Outcome<_>>()?;
    let bert = Bert::read(folder.path())?;
    Ok((folder, bert, texts))
}

fn same(heads: usize, head: impl Fn() -> Outcome<Head>) -> Outcome<Vec<Head>> {
    (0..heads).map(|_| head()).collect()
}

fn distance(found: &Array4<f32>, expected: &Array4<f32>) -> f32 {
    (found - expected).iter().fold(0.0, |most, difference| most.max(difference.abs()))
}

#[test]
fn the_encoder_agrees_with_plain_loops() -> Outcome<()> {
    let (folder, bert, texts) = model("loops")?;
    let reference = Reference::read(folder.path())?;
    for text in &texts {
        let pass = Pass::new(&bert, std::slice::from_ref(text))?;
        let expected = reference.embedding(text)?;
        let differences = pass.embeddings.row(0).mapv(f64::from) - &expected;
        assert!(differences.iter().all(|difference| difference.abs() < 1e-5), "{differences}");
        let exact = same(bert.config().heads, || Ok(Head::Exact))?;
        let states = bert.forward(&pass.batch, &mut |_, tokens| attend(&exact, &tokens))?;
        let expected = reference.states(text)?;
        for (found, expected) in states.flatten_all()?.to_vec1::<f32>()?.iter().zip(&expected) {
            assert!((f64::from(*found) - expected).abs() < 1e-5, "{found} instead of {expected}");
        }
    }
    Ok(())
}

/// What fills up shorter texts must not be seen, in whatever way heads attend.
#[test]
fn texts_side_by_side_have_the_embeddings_of_each_alone() -> Outcome<()> {
    let (_folder, bert, texts) = model("masks")?;
    let heads = bert.config().heads;
    let pairs = Pairs { near: Some(2), keys: 1 };
    let ways = [
        same(heads, || Ok(Head::Exact))?,
        same(heads, || Ok(Head::Alone(pairs)))?,
        same(heads, || Head::linear(Attention::favor_plus(16, 32, 1)?, pairs))?,
        same(heads, || Head::linear(Attention::simplex(16, 32, 1)?, Pairs::default()))?,
    ];
    for way in &ways {
        let embed =
            |texts: &[Vec<u32>]| bert.embed(&Batch::new(texts)?, &mut |_, tokens| attend(way, &tokens));
        let together = embed(&texts)?;
        for (number, text) in texts.iter().enumerate() {
            let alone = embed(std::slice::from_ref(text))?;
            let differences = &together.row(number) - &alone.row(0);
            assert!(differences.iter().all(|difference| difference.abs() < 1e-5), "{differences}");
        }
    }
    Ok(())
}

#[test]
fn windows_of_all_keys_are_exact_attention() -> Outcome<()> {
    let (_folder, bert, texts) = model("windows")?;
    let pass = Pass::new(&bert, &texts[..1])?;
    let all = Pairs { near: Some(texts[0].len()), keys: 3 };
    let heads = bert.config().heads;
    let linear = same(heads, || Head::linear(Attention::favor_plus(16, 4, 1)?, all))?;
    let alone = same(heads, || Ok(Head::Alone(all)))?;
    for layer in &pass.layers {
        assert!(distance(&attend(&linear, &layer.tokens)?, &layer.outputs) < 1e-5);
        assert!(distance(&attend(&alone, &layer.tokens)?, &layer.outputs) < 1e-5);
    }
    Ok(())
}

#[test]
fn pairs_are_counted_once() -> Outcome<()> {
    let (_folder, bert, texts) = model("pairs")?;
    let pass = Pass::new(&bert, &texts[1..2])?;
    let tokens: &Tokens = &pass.layers[0].tokens;
    let count = |near, keys| Pairs { near, keys }.count(&tokens.head(0, 0));
    // Of seven tokens, five have three neighbours, their own place among them, and two have two.
    assert_eq!(count(Some(1), 0)?, 19.0 / 7.0);
    assert_eq!(count(None, 3)?, 3.0);
    assert_eq!(count(Some(7), 3)?, 7.0);
    assert_eq!(count(None, 0)?, 0.0);
    assert_eq!(Head::Exact.pairs(&tokens.head(0, 0))?, 7.0);
    Ok(())
}

#[test]
fn texts_are_cut_before_the_token_that_ends_them() -> Outcome<()> {
    let (folder, ..) = model("cuts")?;
    let reader = Reader::read(folder.path())?;
    let whole = reader.tokens("in the beginning was the word", 100)?;
    let cut = reader.tokens("in the beginning was the word", 4)?;
    assert_eq!((cut[..3].to_vec(), cut[3]), (whole[..3].to_vec(), whole[whole.len() - 1]));
    assert!(reader.exactly("in the beginning", 100).is_err());
    Ok(())
}
