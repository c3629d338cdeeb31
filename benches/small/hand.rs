//! What a user would write by hand: loops over arrays of `f32` that do the arithmetic alone.
#![allow(
    unsafe_code,
    reason = "functions for the vectors of a processor may be called on that processor alone"
)]

/// The compiler unrolls over these many features, which stay in registers.
const BLOCK: usize = 64;

/// Runs a loop as it is compiled for the vectors of this machine, as far as a user would ask for them.
macro_rules! for_this_machine {
    ($(#[$doc:meta])* pub fn $name:ident($($arg:ident: $type:ty),*) $body:block) => {
        $(#[$doc])*
        pub fn $name($($arg: $type),*) {
            #[inline(always)]
            fn body($($arg: $type),*) $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx2,fma")]
                unsafe fn wide($($arg: $type),*) {
                    body($($arg),*)
                }
                #[target_feature(enable = "avx2,fma")]
                unsafe fn narrow($($arg: $type),*) {
                    body($($arg),*)
                }
                if is_x86_feature_detected!("avx512f") {
                    // SAFETY: the processor has these instructions.
                    return unsafe { wide($($arg),*) };
                }
                if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                    // SAFETY: the processor has these instructions.
                    return unsafe { narrow($($arg),*) };
                }
            }
            body($($arg),*)
        }
    };
}

/// eˣ for x from −87 to 88, within some 1e-7: a polynomial of degree 6 for the fraction of x/ln 2, and a power of two.
#[inline(always)]
fn exp(x: f32) -> f32 {
    let n = (x * std::f32::consts::LOG2_E).round_ties_even();
    let r = (-n).mul_add(std::f32::consts::LN_2, x);
    let terms = [1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0];
    let power = terms.into_iter().fold(1.0_f32 / 720.0, |sum, term| sum.mul_add(r, term));
    f32::from_bits(power.to_bits().wrapping_add(((n as i32) << 23) as u32))
}

for_this_machine! {
    /// exp(ω·x − ½‖x‖²) for each row x of `x`, n × d, and each column ω of `omega`, d × m, where m is a multiple of 64.
    pub fn features(x: &[f32], d: usize, omega: &[f32], out: &mut [f32]) {
        let m = omega.len() / d;
        for (x, out) in x.chunks_exact(d).zip(out.chunks_exact_mut(m)) {
            let half = 0.5 * x.iter().map(|v| v * v).sum::<f32>();
            for (block, out) in out.chunks_exact_mut(BLOCK).enumerate() {
                let mut sums = [-half; BLOCK];
                for (x, omega) in x.iter().zip(omega.chunks_exact(m)) {
                    let omega = &omega[block * BLOCK..][..BLOCK];
                    sums.iter_mut().zip(omega).for_each(|(sum, omega)| *sum = x.mul_add(*omega, *sum));
                }
                out.iter_mut().zip(sums).for_each(|(out, sum)| *out = exp(sum));
            }
        }
    }
}

for_this_machine! {
    /// Adds φ vᵀ to `sums`, m × t, and φ to `totals`.
    pub fn add(features: &[f32], values: &[f32], sums: &mut [f32], totals: &mut [f32]) {
        for ((feature, total), sums) in features.iter().zip(totals).zip(sums.chunks_exact_mut(values.len())) {
            *total += feature;
            sums.iter_mut().zip(values).for_each(|(sum, value)| *sum = feature.mul_add(*value, *sum));
        }
    }
}

for_this_machine! {
    /// φ · sums, for sums m × t, divided by φ · totals.
    pub fn average(features: &[f32], sums: &[f32], totals: &[f32], out: &mut [f32]) {
        let mut total = 0.0;
        out.fill(0.0);
        for ((feature, own), sums) in features.iter().zip(totals).zip(sums.chunks_exact(out.len())) {
            total = feature.mul_add(*own, total);
            out.iter_mut().zip(sums).for_each(|(out, sum)| *out = feature.mul_add(*sum, *out));
        }
        out.iter_mut().for_each(|out| *out /= total);
    }
}

for_this_machine! {
    /// φ · c, for coefficients c.
    pub fn product(features: &[f32], coefficients: &[f32], out: &mut [f32]) {
        let mut sums = [0.0_f32; 16];
        for (features, coefficients) in features.chunks_exact(16).zip(coefficients.chunks_exact(16)) {
            let pairs = features.iter().zip(coefficients);
            sums.iter_mut().zip(pairs).for_each(|(sum, (a, b))| *sum = a.mul_add(*b, *sum));
        }
        out[0] = sums.iter().sum();
    }
}
