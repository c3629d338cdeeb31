//! [`Real`]: the scalars, `f32` and `f64`.

/// A scalar that maps compute in: `f32` or `f64`. Sealed.
///
/// Results have the scalar type of the points; scales, squared norms and logarithms are always `f64`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a scalar of points, which are `f32` or `f64`",
    note = "convert arrays of other numbers first: `x.mapv(|v| v as f32)`"
)]
pub trait Real: ndarray::NdFloat + Default + sealed::Sealed {
    /// The number as `f64`, without rounding.
    fn widen(self) -> f64;

    /// The nearest number of this type; ±∞ on overflow.
    fn narrow(x: f64) -> Self;

    /// The nearest finite number of this type; NaN stays NaN.
    fn saturated(x: f64) -> Self {
        Self::narrow(x.clamp(Self::min_value().widen(), Self::max_value().widen()))
    }
}

/// Chooses code for `f32` or for `f64` from a generic scalar. Other crates cannot name a [`Family`](sealed::Family), and so
/// cannot use it.
pub(crate) mod sealed {
    /// A type for each scalar.
    pub trait Family {
        /// The type of the scalar `T`.
        type Of<T>;
    }

    pub trait Sealed: Sized {
        /// The value for this scalar.
        fn choose<F: Family>(f32: F::Of<f32>, f64: F::Of<f64>) -> F::Of<Self>;
    }

    impl Sealed for f32 {
        #[inline(always)]
        fn choose<F: Family>(f32: F::Of<f32>, _: F::Of<f64>) -> F::Of<f32> {
            f32
        }
    }

    impl Sealed for f64 {
        #[inline(always)]
        fn choose<F: Family>(_: F::Of<f32>, f64: F::Of<f64>) -> F::Of<f64> {
            f64
        }
    }
}

macro_rules! real {
    ($($T:ty),*) => {$(
        impl Real for $T {
            #[inline(always)]
            fn widen(self) -> f64 {
                f64::from(self)
            }

            #[inline(always)]
            fn narrow(x: f64) -> Self {
                x as $T
            }
        }
    )*};
}

real!(f32, f64);
