//! [`Activation`]: the functions f of the features f(ω·x).

use crate::error::{Error, Result};
use crate::names::{Named, plain};
use crate::tagged::tagged;

/// A function f of one real number, for the features f(ω·x) and the kernels E\[f(ω·x) f(ω·y)\].
///
/// ```
/// use random_features::kernel::Activation;
/// assert_eq!("relu".parse::<Activation>()?, Activation::Relu);
/// assert!(Activation::Relu.kernel().is_some());
/// assert!(Activation::Tanh.kernel().is_none());
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// `Display` writes its name, such as `relu` or `relu squared`, and it is read from that text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Activation {
    /// u.
    Identity,
    /// u².
    Square,
    /// eᵘ.
    Exp,
    /// cos u.
    Cos,
    /// sin u.
    Sin,
    /// sgn u, +1 at 0.
    Sign,
    /// 0 below 0, 1 above, ½ at 0.
    Step,
    /// The error function.
    Erf,
    /// max(u, 0).
    Relu,
    /// max(u, 0)².
    ReluSquared,
    /// |u|.
    Abs,
    /// u Φ(u), with Φ the distribution function of N(0, 1).
    Gelu,
    /// 1/(1 + e⁻ᵘ).
    Sigmoid,
    /// tanh u.
    Tanh,
}

tagged!(Activation, "a function of one number" {
    "identity" => Identity,
    "square" => Square,
    "exp" => Exp,
    "cos" => Cos,
    "sin" => Sin,
    "sign" => Sign,
    "step" => Step,
    "erf" => Erf,
    "relu" => Relu,
    "relu squared" => ReluSquared,
    "abs" => Abs,
    "gelu" => Gelu,
    "sigmoid" => Sigmoid,
    "tanh" => Tanh,
});

impl std::fmt::Display for Activation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.tag())
    }
}

impl std::str::FromStr for Activation {
    type Err = Error;

    /// Reads the name of a function.
    ///
    /// # Errors
    /// [`Text`](Error::Text) with the names that are known.
    fn from_str(text: &str) -> Result<Self> {
        let text = plain(text);
        let Named { name, words } = Named::read("a function", &text, Activation::TAGS, &[])?;
        words.finish()?;
        let found = Activation::ALL.into_iter().find(|activation| activation.tag() == name);
        found.ok_or_else(|| words.refused("this function has no text"))
    }
}

impl Activation {
    /// Every function.
    pub const ALL: [Activation; 14] = [
        Activation::Identity,
        Activation::Square,
        Activation::Exp,
        Activation::Cos,
        Activation::Sin,
        Activation::Sign,
        Activation::Step,
        Activation::Erf,
        Activation::Relu,
        Activation::ReluSquared,
        Activation::Abs,
        Activation::Gelu,
        Activation::Sigmoid,
        Activation::Tanh,
    ];

    /// The greatest lower bound of f, up to rounding.
    pub(crate) fn lower_bound(self) -> f64 {
        match self {
            Activation::Identity => f64::NEG_INFINITY,
            Activation::Cos | Activation::Sin | Activation::Sign | Activation::Erf | Activation::Tanh => -1.0,
            // The least value is −0.169971…, at u = −0.7518…
            Activation::Gelu => -0.169_98,
            Activation::Square
            | Activation::Exp
            | Activation::Step
            | Activation::Relu
            | Activation::ReluSquared
            | Activation::Abs
            | Activation::Sigmoid => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_is_read_from_its_text() {
        assert_eq!(Activation::TAGS.len(), Activation::ALL.len());
        for activation in Activation::ALL {
            assert_eq!(activation.to_string().parse::<Activation>(), Ok(activation));
        }
        assert_eq!("ReLU-squared".parse::<Activation>(), Ok(Activation::ReluSquared));
        let message = "swish".parse::<Activation>().unwrap_err().to_string();
        assert_eq!(
            message,
            format!("“swish” cannot be read as a function: the names are {}", Activation::TAGS.join(", "))
        );
    }
}
