//! [`once`]: compiles generic functions in this crate, so that programs need not compile them again.

/// Compiles functions of a scalar `T` for `f32` and for `f64`: `once!(Map::<T>::gram, Map::<T>::estimate)`.
///
/// Each is `#[inline(never)]`: the compiler then links programs to the copy in this crate, and to all that it calls. It
/// compiles any other generic function again for each program. Without the feature `precompiled` a program compiles what it calls.
macro_rules! once {
    (for $T:ty: $($function:expr),+) => {
        // No program links to unit tests.
        #[cfg(all(feature = "precompiled", not(test)))]
        const _: () = {
            #[allow(dead_code)]
            type T = $T;
            // A static needs the code of the functions that it names. Nothing reads it, so that the static itself is left out.
            static _FUNCTIONS: [std::sync::atomic::AtomicPtr<()>; [$(stringify!($function)),+].len()] =
                [$(std::sync::atomic::AtomicPtr::new($function as *mut ())),+];
        };
    };
    ($($function:expr),+ $(,)?) => {
        $crate::once::once!(for f32: $($function),+);
        $crate::once::once!(for f64: $($function),+);
    };
}

pub(crate) use once;
