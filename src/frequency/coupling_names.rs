//! The names of couplings in text.

use std::fmt::{Display, Formatter};
use std::str::FromStr;

use super::{
    AnyCoupling, CoupledRadii, Givens, Hadamard, Partial, PlainCoupling, RotationLaw, Simplex, SimplexPlus,
};
use crate::error::{Error, Result};
use crate::kernel::{Radius, Smoothness};
use crate::names::{Named, UnreadWords, plain};
use crate::theory::RadiusCoupling;

const WHAT: &str = "a coupling";
const ANTITHETIC: &str = "antithetic";
const RADII: &str = "radii";
const ROUNDS: [&str; 2] = ["round", "rounds"];
const PASSES: [&str; 2] = ["pass", "passes"];

impl Display for AnyCoupling {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            AnyCoupling::Plain(coupling) => coupling.fmt(f),
            AnyCoupling::Antithetic(coupling) => write!(f, "{ANTITHETIC} {coupling}"),
            AnyCoupling::CoupledRadii(own) => write!(f, "{}, {} {RADII}", own.coupling, own.radii.tag()),
        }
    }
}

impl Display for PlainCoupling {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.tag())?;
        match self {
            PlainCoupling::Simplex(Simplex { partial, rotation }) => {
                let truncated = *partial == Partial::Truncated;
                f.write_str(if truncated { ", truncated" } else { "" })?;
                write_rotation(rotation, f)
            }
            PlainCoupling::SimplexPlus(SimplexPlus { passes, rotation }) => {
                if *passes != SimplexPlus::default().passes {
                    write!(f, ", {passes} passes")?;
                }
                write_rotation(rotation, f)
            }
            PlainCoupling::Hadamard(hadamard) => write_rounds(rounds_of_hadamard(hadamard), f),
            PlainCoupling::Givens(givens) => write_rounds(givens.rounds, f),
            PlainCoupling::Product(law)
            | PlainCoupling::HaltonProduct(law)
            | PlainCoupling::SobolProduct(law) => write_law(law, f),
            PlainCoupling::Independent
            | PlainCoupling::Orthogonal
            | PlainCoupling::Halton
            | PlainCoupling::Sobol => Ok(()),
        }
    }
}

fn write_rotation(rotation: &RotationLaw, f: &mut Formatter<'_>) -> std::fmt::Result {
    let rounds = match rotation {
        RotationLaw::Haar => return Ok(()),
        RotationLaw::Hadamard(hadamard) => rounds_of_hadamard(hadamard),
        RotationLaw::Givens(givens) => givens.rounds,
    };
    write!(f, ", {}", rotation.tag())?;
    write_rounds(rounds, f)
}

/// The number of rounds, unless it is the default.
fn rounds_of_hadamard(hadamard: &Hadamard) -> Option<usize> {
    Some(hadamard.rounds).filter(|_| *hadamard != Hadamard::default())
}

fn write_rounds(rounds: Option<usize>, f: &mut Formatter<'_>) -> std::fmt::Result {
    rounds.map_or(Ok(()), |rounds| write!(f, ", {rounds} rounds"))
}

fn write_law(law: &Radius, f: &mut Formatter<'_>) -> std::fmt::Result {
    write!(f, ", {}", law.tag())?;
    match law {
        Radius::Matern(smoothness) => write!(f, " {smoothness}"),
        Radius::RationalQuadratic { alpha } | Radius::PoweredExponential { alpha } => write!(f, " {alpha}"),
        Radius::Mixture(hash) => write!(f, " {hash}"),
        _ => Ok(()),
    }
}

impl FromStr for AnyCoupling {
    type Err = Error;

    /// Reads the name of a coupling with its options.
    ///
    /// # Errors
    /// [`Text`](Error::Text) with the names that are known, or with what is wrong.
    fn from_str(text: &str) -> Result<Self> {
        let text = plain(text);
        let names = [PlainCoupling::TAGS, &[ANTITHETIC]].concat();
        let mut named = Named::read(WHAT, &text, &names, &[])?;
        if named.name == ANTITHETIC {
            return named.words.rest().parse().map(AnyCoupling::Antithetic);
        }
        let (coupling, mut words) = coupling(named)?;
        let radii = coupled_radii(&mut words)?;
        words.finish()?;
        Ok(match radii {
            Some(radii) => AnyCoupling::CoupledRadii(CoupledRadii { coupling, radii }),
            None => AnyCoupling::Plain(coupling),
        })
    }
}

impl FromStr for PlainCoupling {
    type Err = Error;

    /// Reads the name of a coupling with its options, as [`AnyCoupling`] does.
    ///
    /// # Errors
    /// [`Text`](Error::Text) with the names that are known, or with what is wrong.
    fn from_str(text: &str) -> Result<Self> {
        let text = plain(text);
        let (coupling, words) = coupling(Named::read(WHAT, &text, PlainCoupling::TAGS, &[])?)?;
        words.finish()?;
        Ok(coupling)
    }
}

/// A coupling with its options, and the words after them.
fn coupling(Named { name, words }: Named<'_>) -> Result<(PlainCoupling, UnreadWords<'_>)> {
    let mut words = words.joined();
    let coupling = match name {
        "independent" => PlainCoupling::Independent,
        "orthogonal" => PlainCoupling::Orthogonal,
        "simplex" => {
            let partial = if words.take("truncated") { Partial::Truncated } else { Partial::Fitted };
            Simplex { partial, ..Simplex::on(rotation(&mut words)?) }.into()
        }
        "simplex plus" => {
            let passes = words.counted(PASSES)?.unwrap_or(SimplexPlus::default().passes);
            SimplexPlus::on(rotation(&mut words)?).with_passes(passes).into()
        }
        "hadamard" => hadamard(&mut words)?.into(),
        "givens" => givens(&mut words)?.into(),
        "halton" => PlainCoupling::Halton,
        "sobol" => PlainCoupling::Sobol,
        "product" => PlainCoupling::Product(law(&mut words)?),
        "halton product" => PlainCoupling::HaltonProduct(law(&mut words)?),
        "sobol product" => PlainCoupling::SobolProduct(law(&mut words)?),
        _ => return Err(words.refused("this coupling has no text")),
    };
    Ok((coupling, words))
}

/// How radii depend on each other: `paired radii`.
fn coupled_radii(words: &mut UnreadWords<'_>) -> Result<Option<RadiusCoupling>> {
    let of = |tag: &str| RadiusCoupling::ALL.into_iter().find(|radii| radii.tag() == tag);
    match words.take_if(of) {
        Some(_) if !words.take(RADII) => Err(words.refused("“radii” is missing at the end")),
        radii => Ok(radii),
    }
}

fn rotation(words: &mut UnreadWords<'_>) -> Result<RotationLaw> {
    if words.take("hadamard") {
        Ok(RotationLaw::Hadamard(hadamard(words)?))
    } else if words.take("givens") {
        Ok(RotationLaw::Givens(givens(words)?))
    } else {
        words.take("haar");
        Ok(RotationLaw::Haar)
    }
}

fn hadamard(words: &mut UnreadWords<'_>) -> Result<Hadamard> {
    let hadamard = Hadamard::default();
    Ok(words.counted(ROUNDS)?.map_or(hadamard, |rounds| hadamard.with_rounds(rounds)))
}

fn givens(words: &mut UnreadWords<'_>) -> Result<Givens> {
    Ok(Givens { rounds: words.counted(ROUNDS)? })
}

/// The law of independent coordinates.
fn law(words: &mut UnreadWords<'_>) -> Result<Radius> {
    let text = words.rest();
    let Named { name, words } = Named::read("a law of frequencies", &text, Radius::TAGS, &[])?;
    let mut words = words.joined();
    let law = match name {
        "chi" => Radius::Chi,
        "root dim" => Radius::RootDim,
        "matern" => {
            let smoothness = Smoothness::read(&mut words)?;
            Radius::Matern(smoothness.ok_or_else(|| words.refused("it needs a smoothness: 3/2, or ν = 0.8"))?)
        }
        "rational quadratic" => Radius::RationalQuadratic { alpha: alpha(&mut words)? },
        "powered exponential" => Radius::PoweredExponential { alpha: alpha(&mut words)? },
        "cauchy" => Radius::Cauchy,
        "mixture" => {
            Radius::Mixture(words.number().ok_or_else(|| words.refused("it needs the hash of a mixture"))?)
        }
        "other" => Radius::Other,
        "other product" => Radius::OtherProduct,
        "unstated" => Radius::Unstated,
        _ => return Err(words.refused("this law has no text")),
    };
    words.finish()?;
    if law.names_radii() {
        // Its parameters are in their domain.
        law.radii()?;
    }
    Ok(law)
}

/// α, with its name or without.
fn alpha(words: &mut UnreadWords<'_>) -> Result<f64> {
    let named = words.behind_any(&["alpha", "α"])?;
    named.or_else(|| words.number()).ok_or_else(|| words.refused("it needs a number α"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frequency::{Antithetic, Halton, Independent, Orthogonal, Product, Sobol};
    use crate::kernel::Cauchy;
    use crate::names::mutations;

    fn plain_couplings() -> Vec<PlainCoupling> {
        let hadamard = [Hadamard::default(), Hadamard::default().with_rounds(2)];
        let givens = [Givens::default(), Givens::default().with_rounds(7)];
        let rotations =
            hadamard.map(RotationLaw::Hadamard).into_iter().chain(givens.map(RotationLaw::Givens));
        let rotations: Vec<RotationLaw> = rotations.chain([RotationLaw::Haar]).collect();
        let mut all: Vec<PlainCoupling> =
            vec![Independent.into(), Orthogonal.into(), Halton.into(), Sobol.into()];
        all.extend(hadamard.map(PlainCoupling::from));
        all.extend(givens.map(PlainCoupling::from));
        for rotation in rotations {
            for partial in [Partial::Fitted, Partial::Truncated] {
                all.push(Simplex { partial, ..Simplex::on(rotation) }.into());
            }
            for passes in [1, 3] {
                all.push(SimplexPlus::on(rotation).with_passes(passes).into());
            }
        }
        let laws = [
            Radius::Chi,
            Radius::RootDim,
            Radius::Matern(Smoothness::Half),
            Radius::Matern(Smoothness::ThreeHalves),
            Radius::Matern(Smoothness::FiveHalves),
            Radius::Matern(Smoothness::Nu(0.1 + 0.2)),
            Radius::RationalQuadratic { alpha: 0.1 + 0.2 },
            Radius::PoweredExponential { alpha: 0.1 + 0.2 },
            Radius::Cauchy,
            Radius::Mixture(12),
            Radius::Other,
            Radius::OtherProduct,
            Radius::Unstated,
        ];
        assert!(Radius::TAGS.iter().all(|tag| laws.iter().any(|law| law.tag() == *tag)));
        for law in laws {
            all.extend([
                PlainCoupling::Product(law),
                PlainCoupling::HaltonProduct(law),
                PlainCoupling::SobolProduct(law),
            ]);
        }
        assert!(PlainCoupling::TAGS.iter().all(|tag| all.iter().any(|coupling| coupling.tag() == *tag)));
        all
    }

    #[test]
    fn every_coupling_is_read_from_its_text() {
        for plain in plain_couplings() {
            mutations::check(&plain);
            mutations::check(&AnyCoupling::Plain(plain));
            mutations::check(&AnyCoupling::Antithetic(plain));
            // A law of coordinates takes all words behind it: there are no radii to couple.
            if !plain.to_string().contains("product") {
                let coupled = |radii| AnyCoupling::CoupledRadii(CoupledRadii { coupling: plain, radii });
                RadiusCoupling::ALL.into_iter().for_each(|radii| mutations::check(&coupled(radii)));
            }
        }
    }

    #[test]
    fn names_are_those_of_the_field_however_they_are_joined() {
        let read = |text: &str| text.parse::<AnyCoupling>().unwrap();
        assert_eq!(read(" Orthogonal "), Orthogonal.into());
        assert_eq!(read("Antithetic(Orthogonal)"), Antithetic(Orthogonal).into());
        assert_eq!(read("±orthogonal"), Antithetic(Orthogonal).into());
        assert_eq!(read("simplex-plus"), SimplexPlus::default().into());
        assert_eq!(read("simplex hadamard 2 rounds truncated"), {
            let rotation = RotationLaw::Hadamard(Hadamard::default().with_rounds(2));
            Simplex::on(rotation).with_truncated_blocks().into()
        });
        assert_eq!(read("Hadamard, 1 round"), Hadamard::default().with_rounds(1).into());
        assert_eq!(read("product cauchy"), Product(Cauchy).into());
        assert_eq!(AnyCoupling::from(Orthogonal).to_string(), "orthogonal");
        assert_eq!(AnyCoupling::from(Antithetic(Simplex::default())).to_string(), "antithetic simplex");
    }

    #[test]
    fn other_texts_are_refused_with_the_names_or_the_reason() {
        let names = PlainCoupling::TAGS.join(", ");
        for (text, reason) in [
            ("ortho", format!("the names are {names}, antithetic")),
            ("", format!("the names are {names}, antithetic")),
            ("orthogonality", format!("the names are {names}, antithetic")),
            ("antithetic", format!("the names are {names}")),
            ("antithetic antithetic orthogonal", format!("the names are {names}")),
            ("orthogonal 3", "“3” has no meaning there".into()),
            ("orthogonal, truncated", "“truncated” has no meaning there".into()),
            ("hadamard, rounds", "“rounds” needs a whole number before it".into()),
            ("hadamard, -1 rounds", "“rounds” needs a whole number before it".into()),
            ("product", format!("the names are {}", Radius::TAGS.join(", "))),
            ("product matern", "it needs a smoothness: 3/2, or ν = 0.8".into()),
        ] {
            match text.parse::<AnyCoupling>() {
                Err(Error::Text { reason: found, .. }) => assert_eq!(found, reason, "{text}"),
                other => panic!("{text}: {other:?}"),
            }
        }
    }
}
