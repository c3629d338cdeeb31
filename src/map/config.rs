//! [`MapConfig`]: a recipe as a few words and numbers.

use super::for_kernel::draw_of_law;
use super::{AnyKernel, Mechanism, Recipe};
use crate::error::{Error, Result};
use crate::frequency::{AnyCoupling, CountLaw, Draw, DrawCounts};
use crate::kernel::{Lengthscale, Radius};
use crate::map::{Omega, PlainRecipe};

/// A map that is not made of others, as a few words and numbers: what people write into configuration files.
///
/// ```
/// # #[cfg(feature = "serde")] {
/// use random_features::frequency::Orthogonal;
/// use random_features::recipe::Draw;
/// use random_features::kernel::Softmax;
/// use random_features::map::MapConfig;
/// use random_features::{Map, Positive};
///
/// let text = r#"{
///     "map": "positive", "kernel": "softmax", "lengthscale": 2.0,
///     "coupling": "orthogonal", "d": 64, "m": 256
/// }"#;
/// let config: MapConfig = serde_json::from_str(text).unwrap();
/// let recipe = config.recipe()?;
/// let draw = Draw::new(64, 256, Orthogonal);
/// assert_eq!(recipe, Positive.recipe(draw, Softmax::new(2.0)?));
/// let map: Map<f32> = recipe.draw(7)?;
///
/// let text = r#"{"map": "positive", "kernl": "softmax"}"#;
/// let wrong = serde_json::from_str::<MapConfig>(text).unwrap_err().to_string();
/// assert!(wrong.starts_with("unknown field `kernl`, expected one of `map`,"));
/// # }
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// With the feature `serde` it is read from any format for people, such as JSON, TOML and YAML. Names are those from which
/// [`Mechanism`], [`AnyKernel`] and [`AnyCoupling`] are parsed. Every map needs only `map` and `d`; unknown fields are refused.
/// A [`Recipe`] is stored with a checksum instead, and may be a composite.
///
/// | field | meaning | if it is missing |
/// |---|---|---|
/// | `map` | the map with its parameters: `"positive"`, `"gerf, A = -0.2"` | |
/// | `kernel` | the kernel: `"softmax"`, `"matern 3/2"` | an error, but for `sign`, `nonlinear` and `elu plus one`, which take none |
/// | `lengthscale` | ℓ: a number, or a list with one for each dimension | that of `kernel`, or 1 |
/// | `coupling` | how frequencies depend on each other: `"orthogonal"`, `"antithetic orthogonal"` | `"orthogonal"`; `"product, cauchy"` for the Laplace kernel; none for `poisson` and `geometric` |
/// | `d` | the dimension of points | |
/// | `m` | the number of frequencies | an error, but for `elu plus one`, which has no frequencies |
/// | `stream` | the number of the stream of a seed from which frequencies are drawn | 0 |
///
/// The law of the norms of the frequencies is that of the kernel. The seed is given when the map is drawn.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct MapConfig {
    /// The definition of the map, with parameters that are no arrays.
    #[cfg_attr(feature = "serde", serde(with = "crate::names::text"))]
    pub map: Mechanism,
    /// The kernel.
    #[cfg_attr(
        feature = "serde",
        serde(default, with = "crate::names::text::option", skip_serializing_if = "Option::is_none")
    )]
    pub kernel: Option<AnyKernel>,
    /// The lengthscale ℓ of the kernel or, without a kernel, the one by which points are divided.
    #[cfg_attr(feature = "serde", serde(default, with = "written", skip_serializing_if = "Option::is_none"))]
    pub lengthscale: Option<Lengthscale>,
    /// How the frequencies depend on each other.
    #[cfg_attr(
        feature = "serde",
        serde(default, with = "crate::names::text::option", skip_serializing_if = "Option::is_none")
    )]
    pub coupling: Option<AnyCoupling>,
    /// The dimension d of points.
    pub d: usize,
    /// The number of frequencies.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub m: Option<usize>,
    /// The number of the stream of a seed from which frequencies are drawn.
    #[cfg_attr(feature = "serde", serde(default))]
    pub stream: u64,
}

impl MapConfig {
    /// The configuration of a map of points in ℝᵈ, without kernel, coupling and frequencies.
    pub fn new(map: impl Into<Mechanism>, d: usize) -> Self {
        MapConfig { map: map.into(), kernel: None, lengthscale: None, coupling: None, d, m: None, stream: 0 }
    }

    /// The recipe, with frequencies that are to be drawn.
    ///
    /// # Errors
    /// [`Text`](Error::Text) if the kernel, the number of frequencies or the parameter of their law is missing, if frequencies or a
    /// coupling are stated although the map has none, or if `lengthscale` is stated beside a kernel whose own is not 1.
    /// [`Parameter`](Error::Parameter) if a number is outside its domain, [`Shape`](Error::Shape) if there are lengthscales or
    /// rates for another dimension than d, and errors of [`PlainRecipe::build`] that are known before a draw. [`Recipe::draw`]
    /// refuses whatever only a draw finds out, such as a coupling that has no frequencies in d dimensions.
    pub fn recipe(&self) -> Result<Recipe> {
        let kernel = self.kernel()?;
        let plain = PlainRecipe::new(self.map.clone(), self.omega(&kernel)?, kernel);
        plain.check()?;
        Ok(Recipe::Plain(plain))
    }

    /// The kernel with its lengthscale.
    fn kernel(&self) -> Result<AnyKernel> {
        let lengthscale = self.lengthscale.clone().unwrap_or_default().checked()?;
        match (&self.kernel, &self.lengthscale) {
            (None, _) if self.map.is_for_kernels() => {
                Err(self.refused("it needs a kernel, such as “softmax” or “gaussian”"))
            }
            (None, _) => Ok(AnyKernel::Implied(lengthscale)),
            (Some(kernel), None) => Ok(kernel.clone()),
            (Some(kernel), Some(_)) if *kernel.lengthscale() != Lengthscale::default() => Err(self.refused(
                format!("the kernel “{kernel}” has a lengthscale, and another is stated beside it"),
            )),
            (Some(kernel), Some(_)) => kernel.clone().with_lengthscale(lengthscale),
        }
    }

    /// The frequencies that are to be drawn.
    fn omega(&self, kernel: &AnyKernel) -> Result<Omega> {
        let law = match &self.map {
            Mechanism::Poisson(map) => map.rates().cloned().map(CountLaw::Poisson),
            Mechanism::Geometric(map) => map.p().map(CountLaw::Geometric),
            Mechanism::EluPlusOne(_) => return self.without_frequencies(),
            Mechanism::Sketched(_) => return Err(self.refused("its sketch is made by a program")),
            _ => {
                let m = self.m.ok_or_else(|| self.refused("it needs m, the number of frequencies"))?;
                return Ok(self.draw(m, kernel)?.into());
            }
        };
        let law = law.ok_or_else(|| {
            self.refused(
                "it needs the law of its counts, such as “poisson, rate 0.5” or “geometric, p = 0.5”",
            )
        })?;
        let m = self.m.ok_or_else(|| self.refused("it needs m, the number of frequencies"))?;
        match self.coupling {
            Some(_) => Err(self.refused("its counts are independent: it takes no coupling")),
            None => Ok(DrawCounts::new(self.d, m, law)?.with_stream(self.stream).into()),
        }
    }

    fn without_frequencies(&self) -> Result<Omega> {
        match (self.m, self.coupling) {
            (None, None) => Ok(self.d.into()),
            _ => Err(self.refused("it has no frequencies: it takes neither m nor a coupling")),
        }
    }

    /// The draw whose law is the kernel's.
    ///
    /// # Errors
    /// [`Sampler`](Error::Sampler) for a spectral mixture, whose frequencies are drawn by the kernel.
    fn draw(&self, m: usize, kernel: &AnyKernel) -> Result<Draw> {
        let law = kernel.radius().unwrap_or(Radius::Chi);
        Ok(draw_of_law(self.d, m, self.coupling, law)?.with_stream(self.stream))
    }

    fn refused(&self, reason: impl Into<String>) -> Error {
        Error::Text { what: "a recipe", text: self.map.to_string(), reason: reason.into() }
    }
}

/// Lengthscales as they are written by hand: a number, or a list.
#[cfg(feature = "serde")]
mod written {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::kernel::Lengthscale;

    #[derive(Serialize, Deserialize)]
    #[serde(untagged, expecting = "a lengthscale is a number, or a list of one number for each dimension")]
    enum WrittenLengthscale {
        One(#[serde(with = "crate::exact")] f64),
        Each(#[serde(with = "crate::exact")] Vec<f64>),
    }

    pub fn serialize<S: Serializer>(value: &Option<Lengthscale>, serializer: S) -> Result<S::Ok, S::Error> {
        let written = value.clone().map(|lengthscale| match lengthscale {
            Lengthscale::Isotropic(scale) => WrittenLengthscale::One(scale),
            Lengthscale::PerDimension(scales) => WrittenLengthscale::Each(scales),
        });
        written.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Lengthscale>, D::Error> {
        let written = Option::<WrittenLengthscale>::deserialize(deserializer)?;
        Ok(written.map(|written| match written {
            WrittenLengthscale::One(scale) => scale.into(),
            WrittenLengthscale::Each(scales) => scales.into(),
        }))
    }
}
