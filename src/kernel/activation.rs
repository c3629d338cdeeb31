//! [`Activation`]: the functions f of the features f(ω·x).

use crate::tagged::tagged;

/// A function f of one real number, for the features f(ω·x) and the kernels E\[f(ω·x) f(ω·y)\].
///
/// ```
/// use random_features::kernel::Activation;
/// assert!(Activation::Relu.kernel().is_some());
/// assert!(Activation::Tanh.kernel().is_none());
/// ```
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
