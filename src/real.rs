//! [`Real`]: the scalars, `f32` and `f64`.

/// A scalar that maps compute in: `f32` or `f64`. Sealed.
///
/// Results have the scalar type of the points; scales, squared norms and logarithms are always `f64`.
pub trait Real: ndarray::NdFloat + Default + sealed::Sealed {
    /// The same number as `f64`.
    fn widen(self) -> f64;

    /// The nearest number of this type; ±∞ on overflow.
    fn narrow(x: f64) -> Self;

    /// The nearest finite number of this type; NaN stays NaN.
    fn saturated(x: f64) -> Self {
        Self::narrow(x.clamp(Self::min_value().widen(), Self::max_value().widen()))
    }
}

/// The way from a generic scalar to what is written for `f32` and for `f64`. Nobody outside can name a
/// [`Family`](sealed::Family), so nobody can take it.
pub(crate) mod sealed {
    /// A type for each scalar.
    pub trait Family {
        /// That of the scalar `T`.
        type Of<T>;
    }

    pub trait Sealed: Sized {
        /// The one of two values that is for this scalar.
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
