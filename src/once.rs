//! [`once`]: generic functions that are compiled here, not again in every program that uses the crate.

/// Compiles functions of a scalar `T` for `f32` and for `f64`: `once!(Map::<T>::gram, Map::<T>::estimate)`.
///
/// Each is `#[inline(never)]`: the compiler then links programs to the copy in this crate, and to all that it calls. Of any
/// other generic function it makes a copy for each program.
macro_rules! once {
    (for $T:ty: $($function:expr),+) => {
        // Unit tests have no program that would link to it.
        #[cfg(not(test))]
        const _: () = {
            #[allow(dead_code)]
            type T = $T;
            // A static asks for the code of the functions that it names. Nobody reads it, so that it is left out itself.
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
