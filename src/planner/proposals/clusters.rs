//! Maps for clusters of the points: one for each pair of clusters, or weighted by Gaussians.

use ndarray::{Array2, s};

use super::family::MapFamily;
use super::input::FitInput;
use crate::Trigonometric;
use crate::data::Clustering;
use crate::error::{Error, Result};
use crate::frequency::{Draw, Independent};
use crate::kernel::Softmax;
use crate::map::compose::{Centres, Clustered, Diagonal, Formula, Hybrid, Mixture};
use crate::map::{AnyKernel, Recipe};

/// Numbers of clusters of each side that are proposed, and the formula for their diagonals.
const CLUSTERED: [(usize, Formula); 3] =
    [(2, Formula::Robust), (4, Formula::Robust), (4, Formula::RobustReal)];
/// The most points from which clusters are found.
const POINTS: usize = 1000;
/// Numbers of clusters of each side that are proposed, and the width over that at which λ = e^(−½) for a typical pair of
/// points of its clusters.
const MIXED: [(usize, f64); 3] = [(1, 1.0), (1, 2.0), (2, 1.0)];
/// Frequencies of each coefficient.
const COEFFICIENT: usize = 2;

/// Clusters of each side, with the diagonal that is best on average over their points.
pub(super) fn clustered(input: FitInput<'_>) -> Result<Vec<MapFamily>> {
    let points = some_points(&input);
    let of = |(k, formula): (usize, Formula)| {
        let Some([queries, keys]) = clusterings(&input, &points, k)? else { return Ok(None) };
        let (d, kernel) = (input.dim(), input.kernel.clone());
        let kind = if formula == Formula::RobustReal { "real" } else { "complex" };
        Ok(Some(MapFamily::coupled(format!("clustered {k} × {k}, {kind}"), move |m, coupling| {
            let centres = Centres::new(&queries, &keys).with_diagonal(formula);
            Clustered::<Recipe>::by_centres(centres, Draw::new(d, m, coupling), kernel.clone())
        })))
    };
    CLUSTERED.into_iter().filter_map(|choice| of(choice).transpose()).collect()
}

/// Clusters of each side, with the diagonal that is best on average over their points. Each part has a draw of its own.
pub(super) fn mixtures(input: FitInput<'_>) -> Result<Vec<MapFamily>> {
    if !matches!(input.kernel, AnyKernel::Softmax(softmax) if *softmax == Softmax::default()) {
        return Ok(Vec::new());
    }
    let (d, points) = (input.dim(), some_points(&input));
    let of = |(k, factor): (usize, f64)| {
        let Some([queries, keys]) = clusterings(&input, &points, k)? else { return Ok(None) };
        let spread = spread(Diagonal::robust(), &queries, &keys)?;
        // Around points without spread any width has the weight 1.
        let width = factor * if spread > 0.0 { spread } else { 1.0 };
        let name = format!("Gaussian {k} × {k}, c = {width:.3}");
        Ok(Some(MapFamily::coupled(name, move |m, coupling| {
            let mixture = Mixture::new(&queries, &keys, width).with_diagonal(Diagonal::robust());
            let draw = |m, coupling, stream| Draw::new(d, m, coupling).with_stream(stream);
            let rest = Trigonometric.recipe(draw(m, coupling, 0), Softmax::default());
            let (mut of_base, mut of_coefficient) = (0, 1);
            let omega = || {
                of_base += 2;
                Ok(draw(m, coupling, of_base))
            };
            let tau = || {
                of_coefficient += 2;
                Ok(draw(COEFFICIENT, Independent.into(), of_coefficient))
            };
            Hybrid::<Recipe>::clustered(mixture, omega, tau, rest)
        })))
    };
    MIXED.into_iter().filter_map(|choice| of(choice).transpose()).collect()
}

/// Some points of each side, not divided by the lengthscale: as clusters see them.
fn some_points(input: &FitInput<'_>) -> [Array2<f64>; 2] {
    input.points.map(|points| {
        let mut points = points.slice(s![..points.nrows().min(POINTS), ..]).to_owned();
        points.indexed_iter_mut().for_each(|((_, k), v)| *v *= input.kernel.lengthscale().at(k));
        points
    })
}

/// k clusters of the points of each side; `None` if there are fewer distinct points.
fn clusterings(input: &FitInput<'_>, [x, y]: &[Array2<f64>; 2], k: usize) -> Result<Option<[Clustering; 2]>> {
    let clusters =
        |points: &Array2<f64>, stream| Clustering::of(points, k, &mut crate::rng_of_step(input.seed, stream));
    match (clusters(x, 0), clusters(y, 1)) {
        (Ok(queries), Ok(keys)) => Ok(Some([queries, keys])),
        (Err(Error::Parameter { .. }), _) | (_, Err(Error::Parameter { .. })) => Ok(None),
        (Err(error), _) | (_, Err(error)) => Err(error),
    }
}

/// The root of the mean of ‖Ax + A⁻¹y‖² over independent points of pairs of clusters.
fn spread(diagonal: Diagonal, queries: &Clustering, keys: &Clustering) -> Result<f64> {
    let mut sum = 0.0;
    for (pair, entries) in diagonal.of_pairs(queries, keys).enumerate() {
        let (i, j) = (pair / keys.len(), pair % keys.len());
        for (k, a) in entries?.into_iter().enumerate() {
            let squares =
                [queries.mean_squares()[[i, k]] * a.norm_sqr(), keys.mean_squares()[[j, k]] / a.norm_sqr()];
            // The product of a and the conjugate of 1/a is 1 for real and −1 for imaginary entries.
            let sign = if a.im == 0.0 { 2.0 } else { -2.0 };
            sum += squares[0] + squares[1] + sign * queries.centres()[[i, k]] * keys.centres()[[j, k]];
        }
    }
    Ok((sum / (queries.len() * keys.len()) as f64).max(0.0).sqrt())
}
