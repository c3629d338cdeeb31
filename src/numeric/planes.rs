//! Products of plane rotations, applied to several points at once.

use super::{Lane, zip};

/// The number of points that are rotated together. A coordinate of all points is adjacent, so that a rotation is a loop over
/// points.
pub const POINTS: usize = 16;

/// A rotation in the plane of two coordinates: (a, b) → (a cos t − b sin t, a sin t + b cos t).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plane<T> {
    /// The coordinates a and b, which must differ.
    pub axes: [usize; 2],
    /// (cos t, sin t).
    pub turn: (T, T),
}

#[inline(always)]
fn rotate_body<T: Lane, const FMA: bool>(v: &mut [[T; POINTS]], planes: &[Plane<T>]) {
    for plane in planes {
        let (cos, sin) = plane.turn;
        if let Ok([a, b]) = v.get_disjoint_mut(plane.axes) {
            for (a, b) in zip((&mut a[..], &mut b[..])) {
                let (x, y) = (*a, *b);
                *a = x.madd::<FMA>(cos, -(y * sin));
                *b = x.madd::<FMA>(sin, y * cos);
            }
        }
    }
}

multiversion! {
    /// Applies the rotations in order to points whose coordinates are the rows of `v`. Rotations with equal or missing
    /// axes are skipped.
    pub fn rotate_planes<T>(v: &mut [[T; POINTS]], planes: &[Plane<T>]) = rotate_body;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::Isa;

    #[test]
    fn rotations_turn_every_point_in_order() {
        let planes: Vec<Plane<f64>> = [(0, 2, 0.3f64), (2, 1, 1.9), (0, 1, -2.5), (1, 1, 0.7), (0, 9, 0.7)]
            .iter()
            .map(|(a, b, t)| Plane { axes: [*a, *b], turn: (t.cos(), t.sin()) })
            .collect();
        for isa in Isa::available() {
            let mut v: Vec<[f64; POINTS]> =
                (0..3).map(|k| std::array::from_fn(|l| (k * 5 + l * 3) as f64)).collect();
            let before = v.clone();
            rotate_planes(isa, &mut v, &planes);
            for l in 0..POINTS {
                let mut x = [before[0][l], before[1][l], before[2][l]];
                for plane in &planes[..3] {
                    let ([i, j], (c, s)) = (plane.axes, plane.turn);
                    (x[i], x[j]) = (x[i] * c - x[j] * s, x[i] * s + x[j] * c);
                }
                assert!((0..3).all(|k| (v[k][l] - x[k]).abs() < 1e-13), "{isa:?}, point {l}");
            }
        }
    }
}
