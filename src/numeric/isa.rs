//! Instruction sets, chosen once at run time.
//!
//! A loop body is an `#[inline(always)]` function generic over its scalar and `const FMA: bool`; the macro
//! `multiversion!` wraps it in one function for each scalar and instruction set, in which the compiler
//! vectorises it for that set, and picks one by the scalar and an [`Isa`].

use std::sync::OnceLock;

/// An instruction set that this machine has.
///
/// Values are created only by detection, so holding one proves that its instructions are available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isa(Level);

/// The instruction sets that the loops are compiled for, in increasing order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// The baseline of the target: SSE2 on x86-64, NEON on AArch64.
    Portable,
    /// AVX2 with fused multiply-add.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 F, BW, DQ and VL.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// Whether the baseline itself has a fused multiply-add (elsewhere `mul_add` is a slow library call).
pub(super) const BASELINE_FMA: bool = cfg!(any(target_arch = "aarch64", target_feature = "fma"));

impl Isa {
    /// Every instruction set of this machine, the baseline first.
    pub fn available() -> Vec<Isa> {
        #[allow(unused_mut)]
        let mut all = vec![Isa(Level::Portable)];
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            let avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl");
            if avx2 {
                all.push(Isa(Level::Avx2));
            }
            if avx2 && avx512 {
                all.push(Isa(Level::Avx512));
            }
        }
        all
    }

    /// The best instruction set of this machine, detected once.
    ///
    /// In builds with debug assertions, such as tests, the environment variable `RANDOM_FEATURES_ISA` can select a
    /// lower one.
    #[inline]
    pub fn best() -> Isa {
        static BEST: OnceLock<Isa> = OnceLock::new();
        *BEST.get_or_init(|| {
            let mut available = Isa::available();
            let best = available.pop().unwrap_or(Isa(Level::Portable));
            let named = |name: String| available.into_iter().find(|isa| isa.name() == name);
            let asked = if cfg!(debug_assertions) { std::env::var("RANDOM_FEATURES_ISA").ok() } else { None };
            asked.and_then(named).unwrap_or(best)
        })
    }

    /// The name of the instruction set: `portable`, `avx2` or `avx512`.
    pub fn name(self) -> &'static str {
        match self.0 {
            Level::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => "avx512",
        }
    }

    pub(super) fn level(self) -> Level {
        self.0
    }
}

/// Defines a safe function `name(isa, …)` of any [`Real`](crate::Real) T that runs `body::<T, FMA>(…)`, or
/// `body::<T, FMA, option>(…)`, compiled for each instruction set; or `body::<T, V>(…)` with the set's
/// [`Vector`](super::Vector) V, if `vector` follows T.
///
/// Bodies are generic over a [`Lane`](super::Lane); the safe function dispatches on the scalar type. The loops are
/// therefore compiled once, here, and not in every crate that uses a generic function.
macro_rules! multiversion {
    (
        $(#[$meta:meta])*
        $vis:vis fn $name:ident<$T:ident, vector>($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? = $body:ident;
    ) => {
        multiversion! {
            @entrance $(#[$meta])* $vis fn $name<$T>($($arg: $ty),*) $(-> $ret)?;
            // SAFETY: this function's own instruction set.
            avx512: unsafe { $body::<$T, <$T as crate::numeric::Lane>::Avx512>($($arg),*) },
            // SAFETY: as above.
            avx2: unsafe { $body::<$T, <$T as crate::numeric::Lane>::Avx2>($($arg),*) },
            // SAFETY: what the target guarantees.
            portable: unsafe { $body::<$T, <$T as crate::numeric::Lane>::Portable>($($arg),*) },
        }
    };
    (
        $(#[$meta:meta])*
        $vis:vis fn $name:ident<$T:ident>($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? = $body:ident$([$option:literal])?;
    ) => {
        multiversion! {
            @entrance $(#[$meta])* $vis fn $name<$T>($($arg: $ty),*) $(-> $ret)?;
            avx512: $body::<$T, true $(, $option)?>($($arg),*),
            avx2: $body::<$T, true $(, $option)?>($($arg),*),
            portable: $body::<$T, { crate::numeric::isa::BASELINE_FMA } $(, $option)?>($($arg),*),
        }
    };
    (
        @entrance $(#[$meta:meta])*
        $vis:vis fn $name:ident<$T:ident>($($arg:ident: $ty:ty),*) $(-> $ret:ty)?;
        avx512: $avx512:expr, avx2: $avx2:expr, portable: $portable:expr,
    ) => {
        $(#[$meta])*
        #[inline]
        $vis fn $name<$T: crate::Real>(isa: crate::numeric::Isa, $($arg: $ty),*) $(-> $ret)? {
            /// The function's type for a scalar.
            struct Loop;
            impl crate::real::sealed::Family for Loop {
                type Of<$T> = fn(crate::numeric::Isa, $($ty),*) $(-> $ret)?;
            }
            let chosen = <$T as crate::real::sealed::Sealed>::choose::<Loop>(
                multiversion! {
                    @scalar f32; fn<$T>($($arg: $ty),*) $(-> $ret)?;
                    avx512: $avx512, avx2: $avx2, portable: $portable,
                },
                multiversion! {
                    @scalar f64; fn<$T>($($arg: $ty),*) $(-> $ret)?;
                    avx512: $avx512, avx2: $avx2, portable: $portable,
                },
            );
            chosen(isa, $($arg),*)
        }
    };
    (
        @scalar $scalar:ident; fn<$T:ident>($($arg:ident: $ty:ty),*) $(-> $ret:ty)?;
        avx512: $avx512:expr, avx2: $avx2:expr, portable: $portable:expr,
    ) => {{
        type $T = $scalar;
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
        fn avx512($($arg: $ty),*) $(-> $ret)? {
            $avx512
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        fn avx2($($arg: $ty),*) $(-> $ret)? {
            $avx2
        }
        fn portable($($arg: $ty),*) $(-> $ret)? {
            $portable
        }
        #[inline]
        fn run(isa: crate::numeric::Isa, $($arg: $ty),*) $(-> $ret)? {
            match isa.level() {
                // SAFETY: an `Isa` of this level exists only where the machine was found to have it.
                #[cfg(target_arch = "x86_64")]
                crate::numeric::isa::Level::Avx512 => unsafe { avx512($($arg),*) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                crate::numeric::isa::Level::Avx2 => unsafe { avx2($($arg),*) },
                crate::numeric::isa::Level::Portable => portable($($arg),*),
            }
        }
        run
    }};
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests of loops run on every available set; the suite reports which are missing.
    #[test]
    fn sets_are_in_order() {
        let names: Vec<&str> = Isa::available().iter().map(|isa| isa.name()).collect();
        let all = ["portable", "avx2", "avx512"];
        assert_eq!(names, all[..names.len()]);
        if std::env::var_os("RANDOM_FEATURES_ISA").is_none() {
            assert_eq!(Isa::available().last(), Some(&Isa::best()));
        }
    }
}
