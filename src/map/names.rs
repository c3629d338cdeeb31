//! The names of kernels and maps in text.

use std::fmt::{Display, Formatter};
use std::str::FromStr;

use num_complex::Complex64;

use super::{
    AnyKernel, EluPlusOne, Geometric, Gerf, Hyperbolic, Mechanism, Nonlinear, Poisson, Positive, Sign,
    Trigonometric,
};
use crate::error::{Error, Result};
use crate::frequency::{Rates, check_probability};
use crate::kernel::{
    Activation, ActivationKernel, Angular, Gaussian, Laplace, Lengthscale, Matern, PoweredExponential,
    RationalQuadratic, RegularisedSoftmax, ShiftInvariant, Smoothness, Softmax, SpectralMixture,
};
use crate::names::{Named, UnreadWords, plain};
use crate::theory::gerf::GerfSign;

/// The name of a lengthscale without a kernel in messages.
const IMPLIED: &str = "a lengthscale without a kernel";

/// What the text of a spectral mixture needs.
const MIXTURE: &str = "its terms stand in parentheses: “spectral mixture (0.3 × gaussian 2 × cosine [1.5] + 0.7 × laplace)”, \
                       of kernels that are functions of x − y";

impl FromStr for AnyKernel {
    type Err = Error;

    /// Reads the name of a kernel with its parameters and its lengthscale: `softmax`, `gaussian 0.5`, `matern 3/2, lengthscale 0.5`,
    /// `rational quadratic, α = 1, lengthscales [0.5, 2]`. The terms of a spectral mixture stand in parentheses, between them ` + `,
    /// and between factors `×` or `*`: `spectral mixture (0.3 × gaussian 2 × cosine [1.5] + 0.7 × periodic [24] 0.5)`. Options with a name stand in any order. Among numbers without a name
    /// the smoothness comes before the lengthscale.
    ///
    /// # Errors
    /// [`Text`](Error::Text) with the names that are known, or with the fault; [`Parameter`](Error::Parameter) if a
    /// number is outside its domain.
    fn from_str(text: &str) -> Result<Self> {
        let (mixture, text) = mixture(plain(text))?;
        let Named { name, words } = Named::read("a kernel", &text, AnyKernel::TAGS, &[(IMPLIED, "implied")])?;
        let mut words = words.joined();
        // Named options are read first, then parameters, then the lengthscale as the number that is left.
        let named = lengthscale(&mut words)?;
        let kernel: AnyKernel = match name {
            "softmax" => Softmax::default().into(),
            "gaussian" => Gaussian::default().into(),
            "laplace" => Laplace::default().into(),
            "regularised softmax" => regularised(&mut words)?.into(),
            "matern" => Matern::new(smoothness(&mut words)?, 1.0)?.into(),
            "rational quadratic" => RationalQuadratic::new(alpha(&mut words)?, 1.0)?.into(),
            "powered exponential" => powered(&mut words)?,
            "spectral mixture" => mixture.ok_or_else(|| words.refused(MIXTURE))?.into(),
            "angular" => Angular.into(),
            "activation" => activation(&mut words)?.into(),
            "implied" => AnyKernel::Implied(Lengthscale::default()),
            _ => return Err(words.refused("this kernel has no text")),
        };
        let unnamed = |words: &mut UnreadWords<'_>| words.number::<f64>().map(Lengthscale::from);
        let lengthscale = named.or_else(|| unnamed(&mut words)).unwrap_or_default();
        let kernel = kernel.with_lengthscale(lengthscale)?;
        words.finish()?;
        Ok(kernel)
    }
}

/// Takes the terms of a spectral mixture, which stand in parentheses, out of a text.
fn mixture(text: String) -> Result<(Option<SpectralMixture>, String)> {
    let is_mixture = text.replace(['-', '_'], " ").starts_with("spectral mixture");
    let found = is_mixture.then(|| text.split_once('(')).flatten();
    let Some((terms, rest)) = found.and_then(|(_, rest)| rest.rsplit_once(')')) else {
        return Ok((None, text));
    };
    let words: Vec<&str> = terms.split_whitespace().collect();
    let terms = words.join(" ").split(" + ").map(term).collect::<Result<Vec<_>>>()?;
    let terms: Vec<(f64, &dyn ShiftInvariant)> =
        terms.iter().map(|(weight, product)| (*weight, product as &dyn ShiftInvariant)).collect();
    Ok((Some(SpectralMixture::sum(&terms)?), format!("spectral mixture{rest}")))
}

/// A term of a mixture: factors, and a weight before them.
fn term(text: &str) -> Result<(f64, SpectralMixture)> {
    let refused = || Error::Text { what: "a kernel", text: text.into(), reason: MIXTURE.into() };
    let mut factors: Vec<&str> = text.split(['×', '*']).map(str::trim).collect();
    let weight = factors[0].parse();
    if weight.is_ok() {
        factors.remove(0);
    }
    // Parentheses within parentheses are never written.
    if factors.is_empty() || text.contains(['(', ')']) {
        return Err(refused());
    }
    let factors = factors.into_iter().map(factor).collect::<Result<Vec<_>>>()?;
    let factors = factors.iter().map(AnyKernel::shift_invariant).collect::<Option<Vec<_>>>();
    Ok((weight.unwrap_or(1.0), SpectralMixture::product(&factors.ok_or_else(refused)?)?))
}

/// A factor of a term: a cosine, a periodic kernel, or the name of another kernel.
fn factor(text: &str) -> Result<AnyKernel> {
    let Ok(Named { name, mut words }) = Named::read("a kernel", text, &["cosine", "periodic"], &[]) else {
        return text.parse();
    };
    let numbers =
        words.list()?.ok_or_else(|| words.refused("it needs a list: “cosine [1, 2]”, “periodic [24]”"))?;
    let kernel = match name {
        "cosine" => SpectralMixture::cosine(numbers)?,
        _ => {
            let named = words.behind("lengthscale")?;
            SpectralMixture::periodic(numbers, named.or_else(|| words.number()).unwrap_or(1.0))?
        }
    };
    words.finish()?;
    Ok(kernel.into())
}

fn regularised(words: &mut UnreadWords<'_>) -> Result<RegularisedSoftmax> {
    words.take("in");
    let dim = words.behind("dimension")?;
    Ok(dim.map_or_else(RegularisedSoftmax::default, RegularisedSoftmax::in_dimension))
}

fn activation(words: &mut UnreadWords<'_>) -> Result<ActivationKernel> {
    let offset = words.behind("offset")?.unwrap_or(0.0);
    let function: Activation = words.rest().parse()?;
    let kernel =
        function.kernel().ok_or_else(|| words.refused("the kernel of this function has no closed form"))?;
    kernel.with_offset(offset)
}

fn smoothness(words: &mut UnreadWords<'_>) -> Result<Smoothness> {
    let found = Smoothness::read(words)?;
    found.ok_or_else(|| words.refused("it needs a smoothness: “matern 3/2”, or “matern, ν = 0.8”"))
}

fn alpha(words: &mut UnreadWords<'_>) -> Result<f64> {
    let found = words.behind_any(&["alpha", "α"])?;
    found.ok_or_else(|| words.refused("it needs α: add “α = 1” to it"))
}

/// The isotropic kernel, or the product over coordinates.
fn powered(words: &mut UnreadWords<'_>) -> Result<AnyKernel> {
    let alpha = alpha(words)?;
    if !words.take("by") {
        return Ok(PoweredExponential::new(alpha, 1.0)?.into());
    }
    match words.take("coordinates") {
        true => Ok(SpectralMixture::powered_exponential(alpha, 1.0)?.into()),
        false => Err(words.refused("“by” needs “coordinates” behind it")),
    }
}

/// The lengthscales that are named, or a list in brackets.
fn lengthscale(words: &mut UnreadWords<'_>) -> Result<Option<Lengthscale>> {
    if let Some(scales) = words.list_behind("lengthscales")? {
        return Ok(Some(scales.into()));
    }
    if let Some(scales) = words.list()? {
        words.take("lengthscale");
        return Ok(Some(scales.into()));
    }
    Ok(words.behind::<f64>("lengthscale")?.map(Lengthscale::from))
}

impl Display for Mechanism {
    /// Writes the name and the parameters, rates among them, but no shift, matrix or list of coefficients.
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.tag())?;
        match self {
            Mechanism::Gerf(gerf) => write!(f, ", A = {}, s = {}", gerf.a(), gerf.sign().value()),
            Mechanism::Nonlinear(map) if map.offset() == 0.0 => write!(f, " {}", map.activation()),
            Mechanism::Nonlinear(map) => write!(f, " {}, offset {}", map.activation(), map.offset()),
            Mechanism::Poisson(map) => {
                if let Some(Rates::Same(rate)) = map.rates() {
                    write!(f, ", rate {rate}")?;
                }
                if let Some(Rates::PerDimension(rates)) = map.rates() {
                    write!(f, ", rates {rates:?}")?;
                }
                f.write_str(if map.shift().is_some() { ", shifted" } else { "" })
            }
            Mechanism::Geometric(map) => {
                if let Some(p) = map.p() {
                    write!(f, ", p = {p}")?;
                }
                f.write_str(if map.shift().is_some() { ", shifted" } else { "" })
            }
            _ => Ok(()),
        }
    }
}

impl FromStr for Mechanism {
    type Err = Error;

    /// Reads the name of a map with its parameters: `positive`, `trigonometric`, `hyperbolic`, `sign`, `elu plus one`, `nonlinear
    /// relu`, `nonlinear relu, offset 0.001`, `gerf, A = -0.2`, `gerf, A = 0.1+0.2i, s = -1`, `poisson, rate 0.5`, `poisson, rates
    /// [0.5, 1]`, `geometric, p = 0.5`. A Poisson map without rates, or a geometric map without p, takes them from its counts.
    ///
    /// # Errors
    /// [`Text`](Error::Text) with the names that are known, or with the fault, such as parameters that are arrays;
    /// [`Parameter`](Error::Parameter) if a number is outside its domain.
    fn from_str(text: &str) -> Result<Self> {
        let text = plain(text);
        let printed = [
            ("generalised exponential", "gerf"),
            ("importance weighted positive", "importance"),
            ("elu+1", "elu plus one"),
        ];
        let Named { name, mut words } = Named::read("a map", &text, Mechanism::TAGS, &printed)?;
        let map: Mechanism = match name {
            "trigonometric" => Trigonometric.into(),
            "positive" => Positive.into(),
            "hyperbolic" => Hyperbolic.into(),
            "sign" => Sign.into(),
            "elu plus one" => EluPlusOne.into(),
            "gerf" => gerf(&mut words)?.into(),
            "nonlinear" => nonlinear(&mut words)?.into(),
            "poisson" => poisson(&mut words)?.into(),
            "geometric" => geometric(&mut words)?.into(),
            "sketched" => {
                return Err(words.refused("its sketch is made by a program, which a text does not hold"));
            }
            _ => return Err(words.refused("its parameters are arrays, which a text does not hold")),
        };
        if words.take("shifted") {
            return Err(words.refused("its shift is an array, which a text does not hold"));
        }
        words.finish()?;
        Ok(map)
    }
}

fn gerf(words: &mut UnreadWords<'_>) -> Result<Gerf> {
    let sign = match words.behind("s")? {
        None | Some(1) => GerfSign::Plus,
        Some(-1) => GerfSign::Minus,
        Some(_) => return Err(words.refused("s is 1 or -1")),
    };
    let a: Option<Complex64> = words.behind("a")?;
    let a = a.or_else(|| words.number());
    Gerf::new(a.ok_or_else(|| words.refused("it needs A, such as “gerf, A = -0.2”"))?, sign)
}

fn nonlinear(words: &mut UnreadWords<'_>) -> Result<Nonlinear> {
    let offset = words.behind("offset")?.unwrap_or(0.0);
    let function: Activation = words.rest().parse()?;
    Nonlinear::new(function).with_offset(offset)
}

fn poisson(words: &mut UnreadWords<'_>) -> Result<Poisson> {
    let rates = match words.list_behind("rates")? {
        Some(rates) => Some(Rates::PerDimension(rates)),
        None => words.behind("rate")?.map(Rates::Same),
    };
    let Some(rates) = rates else { return Ok(Poisson::default()) };
    rates.check_values()?;
    Ok(Poisson::with_rates(rates))
}

fn geometric(words: &mut UnreadWords<'_>) -> Result<Geometric> {
    let Some(p) = words.behind("p")? else { return Ok(Geometric::default()) };
    check_probability(p)?;
    Ok(Geometric::with_p(p))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::Transform;
    use crate::names::mutations;
    use crate::theory::complex_exponential::Symmetry;
    use crate::{ComplexExponential, DenseExponential, Importance};

    fn kernels() -> Vec<AnyKernel> {
        let mut all = Vec::new();
        for scale in
            [Lengthscale::from(1.0), 0.1.into(), (1.0 / 3.0).into(), vec![0.5].into(), vec![2.0, 1e-7].into()]
        {
            all.push(Softmax::new(scale.clone()).unwrap().into());
            all.push(Gaussian::new(scale.clone()).unwrap().into());
            all.push(Laplace::new(scale.clone()).unwrap().into());
            all.push(RegularisedSoftmax::new(scale.clone()).unwrap().into());
            let padded = RegularisedSoftmax::in_dimension(64);
            all.push(padded.with_lengthscale(scale.clone()).unwrap().into());
            for smoothness in [0.5, 1.5, 2.5, 0.8, 4.0 / 3.0, 1000.0].map(|nu| Smoothness::of(nu).unwrap()) {
                all.push(Matern::new(smoothness, scale.clone()).unwrap().into());
            }
            for alpha in [1e-3, 2.0, 1.0 / 3.0, 1e12] {
                all.push(RationalQuadratic::new(alpha, scale.clone()).unwrap().into());
            }
            for alpha in [0.2, 1.0, 4.0 / 3.0, 2.0] {
                all.push(PoweredExponential::new(alpha, scale.clone()).unwrap().into());
            }
            for (function, offset) in [(Activation::Relu, 0.0), (Activation::Sign, 0.25)] {
                let kernel = function.kernel().unwrap().with_offset(offset).unwrap();
                all.push(kernel.with_lengthscale(scale.clone()).unwrap().into());
            }
            all.push(Angular.into());
            all.push(AnyKernel::Implied(scale));
        }
        // Words of a mixture have another meaning in another order.
        let others: Vec<&str> = AnyKernel::TAGS
            .iter()
            .copied()
            .filter(|tag| all.iter().all(|kernel: &AnyKernel| kernel.tag() != *tag))
            .collect();
        assert_eq!(others, ["spectral mixture"]);
        all
    }

    #[test]
    fn every_kernel_is_read_from_its_text() {
        let wave = SpectralMixture::cosine(vec![0.1 + 0.2, -1e-7]).unwrap();
        let mixture = SpectralMixture::sum(&[(0.1, &wave), (0.7, &Laplace::new(1.0 / 3.0).unwrap())]);
        for kernel in kernels().into_iter().chain([mixture.unwrap().into()]) {
            assert_eq!(kernel.to_string().parse::<AnyKernel>(), Ok(kernel.clone()), "{kernel}");
        }
    }

    #[test]
    fn changed_texts_never_become_other_numbers_in_silence() {
        kernels().iter().for_each(mutations::check);
        maps().iter().for_each(mutations::check);
        // What has a name is read before what has none, in any order.
        let matern = |smoothness, scale: f64| Ok(AnyKernel::from(Matern::new(smoothness, scale).unwrap()));
        for text in [
            "matern, ν = 3/2, 0.5",
            "matern, lengthscale 0.5, 1.5",
            "matern 1.5, lengthscale 0.5",
            "matern 3/2 0.5",
        ] {
            assert_eq!(text.parse(), matern(Smoothness::ThreeHalves, 0.5), "{text}");
        }
        assert_eq!("matern-2.5".parse(), matern(Smoothness::FiveHalves, 1.0));
        assert_eq!("matern-0.5, 1.5".parse(), matern(Smoothness::Half, 1.5));
        let scales = Matern::new(Smoothness::ThreeHalves, vec![0.5, 2.5]).unwrap();
        for text in
            ["matern [0.5, 2.5] 1.5", "matern, lengthscales 0.5 2.5 3/2", "matern 1.5 lengthscale [0.5 2.5]"]
        {
            assert_eq!(text.parse(), Ok(AnyKernel::from(scales.clone())), "{text}");
        }
        // A number that may be negative keeps its sign.
        let gerf = |a: Complex64| Ok(Mechanism::from(Gerf::new(a, GerfSign::Plus).unwrap()));
        assert_eq!("gerf-0.1".parse(), gerf(Complex64::new(-0.1, 0.0)));
        assert_eq!("gerf-0.1+2i, s = 1".parse(), gerf(Complex64::new(-0.1, 2.0)));
        assert_eq!("GERF-i".parse(), gerf(Complex64::new(0.0, -1.0)));
        assert_eq!("gerf-A=0.1".parse(), gerf(Complex64::new(0.1, 0.0)));
        for text in [
            "poisson, rate -1",
            "poisson, rate nan",
            "poisson, rates [1, 0]",
            "geometric, p = 1.5",
            "geometric, p = 0",
        ] {
            assert!(matches!(text.parse::<Mechanism>(), Err(Error::Parameter { .. })), "{text}");
        }
        for text in ["gaussian -0.5", "matern, lengthscale -0.5, 1.5"] {
            assert!(matches!(text.parse::<AnyKernel>(), Err(Error::Parameter { .. })), "{text}");
        }
    }

    #[test]
    fn kernels_have_short_texts() {
        let matern = AnyKernel::from(Matern::new(Smoothness::FiveHalves, 0.5).unwrap());
        let rational = AnyKernel::from(RationalQuadratic::new(2.0, 3.0).unwrap());
        let by_coordinates = SpectralMixture::powered_exponential(1.5, 1.0).unwrap();
        for (text, kernel) in [
            ("softmax", Softmax::default().into()),
            ("Gaussian 0.5", Gaussian::new(0.5).unwrap().into()),
            ("gaussian, ℓ = 0.5", Gaussian::new(0.5).unwrap().into()),
            ("gaussian lengthscale=0.5", Gaussian::new(0.5).unwrap().into()),
            ("gaussian, lengthscales 0.5 2", Gaussian::new(vec![0.5, 2.0]).unwrap().into()),
            ("matern-5/2 0.5", matern.clone()),
            ("Matérn 2.5 0.5", matern),
            ("rational-quadratic alpha 2 3", rational.clone()),
            ("rational quadratic, lengthscale 3, α = 2", rational),
            ("regularised-softmax", RegularisedSoftmax::default().into()),
            ("powered-exponential by coordinates, alpha 1.5", by_coordinates.clone().into()),
            ("spectral mixture (powered exponential by coordinates, α = 1.5)", by_coordinates.into()),
        ] {
            assert_eq!(text.parse::<AnyKernel>(), Ok(kernel), "{text}");
        }
    }

    #[test]
    fn other_kernels_are_refused_with_the_names_or_the_reason() {
        for (text, reason) in [
            ("rbf", format!("the names are {}", AnyKernel::TAGS.join(", "))),
            ("matern", "it needs a smoothness: “matern 3/2”, or “matern, ν = 0.8”".into()),
            ("rational quadratic 1", "it needs α: add “α = 1” to it".into()),
            ("powered exponential", "it needs α: add “α = 1” to it".into()),
            ("powered exponential by, α = 1", "“by” needs “coordinates” behind it".into()),
            ("gaussian 1 2", "“2” has no meaning there".into()),
            ("gaussian lengthscale", "“lengthscale” needs a number behind it".into()),
            ("gaussian [0.5, 2", "“[” needs a “]” behind it".into()),
            ("gaussian 0.5, 2]", "“2” has no meaning there".into()),
            ("gaussian [0.5 one]", "“one” is no number of the list".into()),
            (
                "matern, lengthscales 0.5 1.5",
                "it needs a smoothness: “matern 3/2”, or “matern, ν = 0.8”".into(),
            ),
            ("matern -5/2", "it needs a smoothness: “matern 3/2”, or “matern, ν = 0.8”".into()),
            ("softmax, α = 1", "“α” has no meaning there".into()),
        ] {
            match text.parse::<AnyKernel>() {
                Err(Error::Text { reason: found, .. }) => assert_eq!(found, reason, "{text}"),
                other => panic!("{text}: {other:?}"),
            }
        }
        for text in [
            "gaussian 0",
            "gaussian -1",
            "gaussian nan",
            "gaussian lengthscales",
            "rational quadratic, α = 0",
        ] {
            assert!(matches!(text.parse::<AnyKernel>(), Err(Error::Parameter { .. })), "{text}");
        }
    }

    fn maps() -> Vec<Mechanism> {
        let mut all: Vec<Mechanism> = vec![
            Trigonometric.into(),
            Positive.into(),
            Hyperbolic.into(),
            Sign.into(),
            EluPlusOne.into(),
            Poisson::default().into(),
            Poisson::with_rates(1.0 / 3.0).into(),
            Poisson::with_rates(vec![0.5, 1e-7]).into(),
            Geometric::default().into(),
            Geometric::with_p(0.1).into(),
        ];
        for activation in Activation::ALL {
            all.push(Nonlinear::new(activation).into());
            all.push(Nonlinear::new(activation).with_offset(-1e-3).unwrap().into());
        }
        for sign in [GerfSign::Plus, GerfSign::Minus] {
            for a in
                [Complex64::new(-1.0 / 3.0, 0.0), Complex64::new(0.1, -2.0), Complex64::new(-1e-7, 1e-20)]
            {
                all.push(Gerf::new(a, sign).unwrap().into());
            }
        }
        all
    }

    #[test]
    fn every_map_without_arrays_is_read_from_its_text() {
        for map in maps() {
            assert_eq!(map.to_string().parse::<Mechanism>(), Ok(map.clone()), "{map}");
            let named = map.name().parse::<Mechanism>();
            let needs_more = matches!(map, Mechanism::Gerf(_) | Mechanism::Nonlinear(_));
            assert_eq!(named.is_err(), needs_more, "{}", map.name());
        }
        assert_eq!("gerf -0.2".parse(), Ok(Mechanism::from(Gerf::new(-0.2, GerfSign::Plus).unwrap())));
    }

    #[test]
    fn other_maps_are_refused_with_the_names_or_the_reason() {
        let shift = crate::map::Shift::new(vec![1.0], 1e-3).unwrap();
        let arrays: [Mechanism; 5] = [
            ComplexExponential::new(Transform::diagonal(vec![1.0.into()]).unwrap(), Symmetry::Plain).into(),
            DenseExponential::new(vec![0.0]).unwrap().into(),
            Importance::new(vec![0.0]).unwrap().into(),
            Poisson::with_rates(1.0).shifted(shift).into(),
            crate::map::Sketched.into(),
        ];
        for map in &arrays {
            let message = map.to_string().parse::<Mechanism>().unwrap_err().to_string();
            assert!(message.contains("which a text does not hold"), "{message}");
        }
        let all = maps();
        let known = |tag: &&str| all.iter().chain(&arrays).any(|map| map.tag() == *tag);
        assert!(Mechanism::TAGS.iter().all(known));
        for (text, reason) in [
            ("favor", format!("the names are {}", Mechanism::TAGS.join(", "))),
            ("gerf", "it needs A, such as “gerf, A = -0.2”".into()),
            ("gerf -0.2 s 2", "s is 1 or -1".into()),
            ("nonlinear", format!("the names are {}", Activation::TAGS.join(", "))),
            ("positive relu", "“relu” has no meaning there".into()),
        ] {
            match text.parse::<Mechanism>() {
                Err(Error::Text { reason: found, .. }) => assert_eq!(found, reason, "{text}"),
                other => panic!("{text}: {other:?}"),
            }
        }
    }
}
