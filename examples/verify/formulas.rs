//! From a formula's name and a case's parameters to what the crate computes.

use ndarray::{Array1, Array2};
use num_complex::Complex64;
use random_features::frequency::structured::{PlaneRotation, Rotation};
use random_features::frequency::{CountLaw, Counts, Frequencies, quasi, simplex, simplex_plus};
use random_features::hybrid::{Bases, Hybrid};
use random_features::kernel::{Activation, Gaussian, Kernel, RegularisedSoftmax, Softmax, angle};
use random_features::map::Transform;
use random_features::plan::{PairStatistics, Statistics};
use random_features::theory::complex_exponential::{self, Symmetry};
use random_features::theory::gerf::{self, GerfSign};
use random_features::theory::hybrid;
use random_features::theory::{
    self, Dependence, Law, Pair, Radius, bounds, coefficient, conformity, counts, diagonal, relative_error,
    special,
};
use random_features::{
    ComplexExponential, Geometric, Gerf, Hyperbolic, Map, Poisson, Positive, SignedLog, Trigonometric,
};
use serde_json::Value;

use crate::golden::{Computed, decimal};

/// Families that a later capability will compute.
const LATER: [&str; 4] = ["attention.", "krr.", "metrics.", "sampled_softmax"];

/// The largest count that a case may have.
const MOST: u64 = 1_000_000;

/// What became of a formula.
pub enum Outcome {
    Computed(Computed),
    /// It needs code of a later capability.
    Later,
}

/// A case's inputs, by the names of the table.
struct Case<'a> {
    formula: &'a str,
    json: &'a Value,
}

impl Case<'_> {
    fn count(&self, name: &str) -> Result<usize, String> {
        let value = self.json.get(name).filter(|v| !v.is_null()).unwrap_or(&self.json["params"][name]);
        match value.as_u64() {
            Some(count @ 0..=MOST) => Ok(count as usize),
            Some(count) => Err(format!("{name} is {count}, beyond {MOST}")),
            None => Err(format!("{name} is missing")),
        }
    }

    fn number(&self, name: &str) -> Result<f64, String> {
        decimal(&self.json["params"][name]).map_err(|e| format!("{name}: {e}"))
    }

    fn point(&self, name: &str) -> Result<Array1<f64>, String> {
        let values = self.json[name].as_array().ok_or(format!("{name} is missing"))?;
        values.iter().map(decimal).collect()
    }

    fn points(&self) -> Result<(Array1<f64>, Array1<f64>), String> {
        let (x, y) = (self.point("x")?, self.point("y")?);
        let d = self.json["d"].as_u64().map_or(x.len(), |d| d as usize);
        let fits = x.len() == d && y.len() == d;
        if fits { Ok((x, y)) } else { Err("x and y do not have d coordinates each".into()) }
    }

    fn pair(&self) -> Result<Pair, String> {
        let (x, y) = self.points()?;
        Ok(pair_of(&x, &y))
    }

    fn matrix(&self, name: &str) -> Result<Array2<f64>, String> {
        rows(&self.json["params"][name], decimal)
    }

    fn complex(&self, name: &str) -> Result<Complex64, String> {
        complex(&self.json["params"][name])
    }

    fn diagonal(&self, name: &str) -> Result<Vec<Complex64>, String> {
        let values = self.json["params"][name].as_array().ok_or(format!("{name} is missing"))?;
        values.iter().map(complex).collect()
    }

    fn sign(&self) -> Result<GerfSign, String> {
        match self.number("s")? {
            1.0 => Ok(GerfSign::Plus),
            -1.0 => Ok(GerfSign::Minus),
            s => Err(format!("s is {s}")),
        }
    }

    /// The law that the middle of a formula's name states: `iid`, `ort` or `sim`.
    fn law(&self, pair: &Pair, radius: Radius) -> Result<Law, String> {
        let (d, m) = (pair.dim, self.count("m")?);
        let dependence = if self.formula.contains(".ort") {
            Dependence::Orthogonal
        } else if self.formula.contains(".sim") {
            Dependence::Angle { cos: -1.0 / (d as f64 - 1.0) }
        } else {
            Dependence::Independent
        };
        Ok(Law::blocks(m, d, dependence, radius))
    }
}

fn pair_of(x: &Array1<f64>, y: &Array1<f64>) -> Pair {
    Pair::new(x.iter().copied().zip(y.iter().copied()))
}

fn complex(value: &Value) -> Result<Complex64, String> {
    match value.as_array().map(Vec::as_slice) {
        Some([re, im]) => Ok(Complex64::new(decimal(re)?, decimal(im)?)),
        _ => decimal(value).map(Complex64::from),
    }
}

fn rows<A: Clone>(value: &Value, entry: fn(&Value) -> Result<A, String>) -> Result<Array2<A>, String> {
    let rows = value.as_array().ok_or("a matrix is missing")?;
    let mut entries = Vec::new();
    for row in rows {
        for value in row.as_array().ok_or("a row is not a list")? {
            entries.push(entry(value)?);
        }
    }
    Array2::from_shape_vec((rows.len(), entries.len() / rows.len().max(1)), entries)
        .map_err(|e| e.to_string())
}

/// Computes a case; `Err` is a sentence about what cannot be.
pub fn compute(json: &Value) -> Result<Outcome, String> {
    let formula = json["formula"].as_str().ok_or("a case has no formula")?;
    let case = Case { formula, json };
    let family = formula.split('.').next().unwrap_or_default();
    let computed = match family {
        "kernel" | "angle" => kernel(&case)?,
        "mse" | "performers" | "gap" => gaussian_map(&case)?,
        "conformity" | "rff" => conformity(&case)?,
        "ce" => complex_exponential(&case)?,
        "hybrid" | "relerr" | "bound" => hybrid_map(&case)?,
        "gerf" | "oprf" | "crt" => generalised(&case)?,
        "poisson" | "geometric" => count_map(&case)?,
        "estimate" => estimate(&case)?,
        "simplex" | "simrf_plus" => simplex_matrix(&case)?,
        "structured" => structured(&case)?,
        "qmc" => quasi_random(&case)?,
        "data" => data(&case)?,
        _ => None,
    };
    match computed {
        Some(computed) => Ok(Outcome::Computed(computed)),
        None if LATER.iter().any(|later| formula.starts_with(later)) => Ok(Outcome::Later),
        None => Err(format!("there is no formula {formula}")),
    }
}

/// A computed number, or `None` for an unknown formula.
type Found = Result<Option<Computed>, String>;

fn number(value: SignedLog) -> Found {
    Ok(Some(Computed::Number(value)))
}

fn plain(value: f64) -> Found {
    number(SignedLog::from(value))
}

fn ln(ln: f64) -> Found {
    number(SignedLog::positive(ln))
}

fn known(ln_value: Option<f64>) -> Found {
    ln(ln_value.ok_or("the crate says that there is no closed form")?)
}

fn parts(parts: Vec<(&'static str, Vec<f64>)>) -> Found {
    Ok(Some(Computed::Parts(parts)))
}

fn kernel(case: &Case) -> Found {
    let (x, y) = case.points()?;
    let kernel: Box<dyn Kernel<f64>> = match case.formula {
        "angle" => return plain(angle(x.iter().copied().zip(y.iter().copied()))),
        "kernel.softmax" => Box::new(Softmax::default()),
        "kernel.gaussian" => Box::new(Gaussian::new(case.number("lengthscale")?).map_err(|e| e.to_string())?),
        "kernel.smreg" => Box::new(RegularisedSoftmax::default()),
        other => match activation(other).and_then(Activation::kernel) {
            Some(kernel) => Box::new(kernel),
            None => return Ok(None),
        },
    };
    number(kernel.log_value(&x, &y).map_err(|e| e.to_string())?)
}

/// The function of a kernel of generalised attention.
fn activation(formula: &str) -> Option<Activation> {
    Some(match formula.strip_prefix("kernel.generalized.")? {
        "sgn" => Activation::Sign,
        "step" => Activation::Step,
        "identity" => Activation::Identity,
        "square" => Activation::Square,
        "exp" => Activation::Exp,
        "cos" => Activation::Cos,
        "sin" => Activation::Sin,
        "erf" => Activation::Erf,
        "relu" => Activation::Relu,
        "relu2" => Activation::ReluSquared,
        "abs" => Activation::Abs,
        _ => return None,
    })
}

fn gaussian_map(case: &Case) -> Found {
    let pair = case.pair()?;
    let m = case.count("m")?;
    let pairs = SignedLog::from(-(m as f64 - 1.0) / m as f64);
    let times = |v: SignedLog| SignedLog { ln_abs: v.ln_abs + pairs.ln_abs, sign: v.sign * pairs.sign };
    let log_mse: fn(&Pair, &Law) -> Option<f64> = match case.formula {
        "performers.thm2_gap" => return ln(bounds::ln_orthogonality_gap(&pair, m)),
        "gap.prf" => {
            return number(
                times(conformity::conformity_excess(pair.dim, pair.sum, 0.0)).scaled(-pair.difference),
            );
        }
        "gap.rff" => {
            return number(times(conformity::trigonometric_excess(pair.dim, pair.difference, 0.0).into()));
        }
        "mse.smreg_positive.iid" | "mse.smreg_positive.ort" | "mse.smreg_positive.sim" => {
            return known(theory::regularised_positive(&pair, &case.law(&pair, Radius::RootDim)?));
        }
        name => match name.split('.').collect::<Vec<_>>()[..] {
            ["mse", "trig", "iid" | "ort" | "sim", "softmax" | "gaussian"] => theory::trigonometric,
            ["mse", "positive", "iid" | "ort" | "sim", "softmax" | "gaussian"] => theory::positive,
            ["mse", "hyperbolic", "iid" | "ort" | "sim", "softmax" | "gaussian"] => theory::hyperbolic,
            _ => return Ok(None),
        },
    };
    let target = if case.formula.ends_with(".gaussian") { -pair.norms } else { 0.0 };
    known(log_mse(&pair, &case.law(&pair, Radius::Chi)?).map(|ln| ln + target))
}

fn conformity(case: &Case) -> Found {
    let d = case.count("d")?;
    let v2 = case.number("v_squared");
    match case.formula {
        "conformity.iid" => ln(v2?),
        "conformity.ort" => ln(conformity::ln_conformity(d, v2?, 0.0)),
        "conformity.sim" => ln(conformity::ln_conformity(d, v2?, -1.0 / (d as f64 - 1.0))),
        "conformity.angle" => ln(conformity::ln_conformity(d, v2?, case.number("cos")?)),
        "conformity.rff_ort" => {
            plain(conformity::trigonometric_conformity(d, case.number("z_squared")?, 0.0))
        }
        "rff.asymptotic_ratio" => {
            plain(bounds::asymptotic_trigonometric_ratio(d, case.number("z")?, case.count("m")?))
        }
        _ => Ok(None),
    }
}

fn complex_exponential(case: &Case) -> Found {
    let (x, y) = case.points()?;
    let zeta = |name| {
        let a = case.diagonal(name)?;
        if a.len() != x.len() {
            return Err(format!("{name} does not have d entries"));
        }
        Ok::<_, String>(complex_exponential::zeta_diagonal(&a, &x.to_vec(), &y.to_vec()))
    };
    let dot = x.dot(&y);
    let (plain, both) = (Symmetry::Plain, Symmetry::Symmetric);
    match case.formula {
        "ce.mse.real.plain" => {
            ln(complex_exponential::ln_mse(dot, &zeta("A_diag")?, plain, case.count("m")?))
        }
        "ce.mse.real.pm" => ln(complex_exponential::ln_mse(dot, &zeta("A_diag")?, both, case.count("m")?)),
        "ce.mse.complex.plain" => {
            ln(complex_exponential::ln_complex_mse(dot, &zeta("A_diag")?, plain, case.count("m")?))
        }
        "ce.mse.complex.pm" => {
            ln(complex_exponential::ln_complex_mse(dot, &zeta("A_diag")?, both, case.count("m")?))
        }
        "ce.mse.real.full" => {
            let a = rows(&case.json["params"]["A"], complex)?;
            let zeta = complex_exponential::zeta(&a, &x, &y).map_err(|e| e.to_string())?;
            ln(complex_exponential::ln_mse(dot, &zeta, plain, case.count("m")?))
        }
        "ce.cov_shared" => number(complex_exponential::shared_covariance(
            dot,
            (&zeta("A_diag")?, plain),
            (&zeta("B_diag")?, plain),
            case.count("m")?,
        )),
        "ce.optimal_diag.real" | "ce.optimal_diag.complex" => {
            let (r, q, clamp) = (x.to_vec(), y.to_vec(), case.number("clamp_eps")?);
            let a = if case.formula.ends_with("complex") {
                diagonal::complex(&r, &q, clamp)
            } else {
                diagonal::real(&r, &q, clamp).into_iter().map(Complex64::from).collect()
            };
            let loss = diagonal::loss(&a, &r, &q);
            parts(vec![("A", a.iter().flat_map(|a| [a.re, a.im]).collect()), ("loss", vec![loss])])
        }
        _ => Ok(None),
    }
}

fn moments(moments: coefficient::Moments) -> Found {
    parts(vec![("mean", vec![moments.mean]), ("second_moment", vec![moments.square])])
}

fn hybrid_map(case: &Case) -> Found {
    let normalised = || Ok::<_, String>((case.number("sigma")?, case.number("r")?));
    let gaussian = |pair: &Pair| {
        let (sigma, r) = normalised()?;
        Ok::<_, String>(coefficient::gaussian_normalised(pair, sigma, r, case.count("n")?))
    };
    let bipolar = |moments: &coefficient::Moments, bases| {
        known(hybrid::ln_bipolar_mse(&case.pair()?, moments, case.count("m")?, bases))
    };
    let angular = || Ok::<_, String>(coefficient::angular(case.pair()?.angle, case.count("n")?));
    match case.formula {
        "hybrid.angular.lambda" => moments(angular()?),
        "hybrid.angular.mse.independent" => bipolar(&angular()?, hybrid::Sharing::Independent),
        "hybrid.angular.mse.shared" => bipolar(&angular()?, hybrid::Sharing::Shared),
        "hybrid.gaussian.lambda" => moments(gaussian(&case.pair()?)?),
        "hybrid.gaussian.mse.independent" => bipolar(&gaussian(&case.pair()?)?, hybrid::Sharing::Independent),
        "hybrid.gaussian.mse.shared" => bipolar(&gaussian(&case.pair()?)?, hybrid::Sharing::Shared),
        "hybrid.gaussian_general.lambda.trig" => {
            moments(coefficient::gaussian_trigonometric(&case.pair()?, case.count("n")?))
        }
        "hybrid.gaussian_general.lambda.positive" => {
            moments(coefficient::gaussian_positive(&case.pair()?, case.count("n")?))
        }
        "hybrid.nested.mse" => known(hybrid::ln_nested_mse(
            &case.pair()?,
            normalised()?,
            case.count("m")?,
            (case.count("m2")?, case.count("n2")?),
        )),
        "relerr.trig" => {
            let (theta, r) = (case.number("theta")?, case.number("r")?);
            ln(relative_error::ln_trigonometric(theta, r, case.count("m")?))
        }
        "relerr.angular_hybrid" => {
            let (theta, r) = (case.number("theta")?, case.number("r")?);
            let computed = relative_error::ln_angular(theta, r, case.count("m")?, case.count("n")?);
            // At θ = 0 the error vanishes. The table has what 90-digit arithmetic leaves of π − θ there, some
            // 1e-90 squared: exactly 0 meets a value that is no more than that.
            // No more than 1e-80 of the largest error over all angles.
            let largest = relative_error::ln_max_trigonometric(r, case.count("m")?);
            let residue = decimal(&case.json["expected"]["ln_abs"]).is_ok_and(|ln| ln < largest - 184.0);
            if theta == 0.0 && computed == f64::NEG_INFINITY && residue {
                return plain(decimal(&case.json["expected"]["value"])?);
            }
            ln(computed)
        }
        "bound.hrf_thm35.corrected" => {
            ln(relative_error::ln_max_angular_bound(case.number("r")?, case.count("m")?, case.count("n")?))
        }
        "bound.hrf_thm35.as_published_false" => ln(relative_error::ln_max_angular_bound_as_published(
            case.number("r")?,
            case.count("m")?,
            case.count("n")?,
        )),
        _ => Ok(None),
    }
}

fn generalised(case: &Case) -> Found {
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
            let (b, c, d) = gerf::coefficients(case.complex("A")?, case.sign()?, case.count("d")?);
            parts(vec![("B", vec![b.re, b.im]), ("C", vec![c]), ("D", vec![d.re, d.im])])
        }
        "oprf.pairwise" => {
            let (rho, a) = gerf::optimal(case.pair()?.dim, case.pair()?.sum);
            parts(vec![("rho", vec![rho]), ("A", vec![a])])
        }
        "oprf.variance" => {
            let pair = case.pair()?;
            let (_, a) = gerf::optimal(pair.dim, pair.sum);
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

fn count_map(case: &Case) -> Found {
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

fn simplex_matrix(case: &Case) -> Found {
    match case.formula {
        "simplex.rows" => {
            let d = case.count("d")?;
            if d > 10_000 {
                return Err(format!("d is {d}, and its matrix too large"));
            }
            parts(vec![("rows", simplex::vertices(d).into_iter().collect())])
        }
        "simplex.apply" => {
            let v = case.json["params"]["v"].as_array().ok_or("v is missing")?;
            let v = v.iter().map(|v| Ok([decimal(v)?])).collect::<Result<Vec<_>, String>>()?;
            let (mut out, mut transposed) = (Array2::from(v.clone()), Array2::from(v));
            simplex::multiply(out.view_mut());
            simplex::multiply_transposed(transposed.view_mut());
            parts(vec![
                ("out", out.into_iter().collect()),
                ("out_transpose", transposed.into_iter().collect()),
            ])
        }
        "simrf_plus.directions" => {
            let norms = case.json["params"]["norms"].as_array().ok_or("norms are missing")?;
            let norms = norms.iter().map(decimal).collect::<Result<Vec<_>, _>>()?;
            let directions = simplex_plus::place(&norms, case.count("passes")?);
            let sum = Array1::from(norms).dot(&directions);
            parts(vec![
                ("resultant_norm", vec![sum.dot(&sum).sqrt()]),
                ("rows", directions.into_iter().collect()),
            ])
        }
        _ => Ok(None),
    }
}

fn structured(case: &Case) -> Found {
    let list = |name: &str| case.json["params"][name].as_array().ok_or(format!("{name} is missing"));
    let mut v = list("v")?.iter().map(decimal).collect::<Result<Array1<_>, _>>()?;
    let rotation = match case.formula {
        "structured.hd3" => {
            let padded = case.count("padded")?;
            if padded < v.len() {
                return Err(format!("v is longer than {padded}"));
            }
            v.append(ndarray::Axis(0), Array1::zeros(padded - v.len()).view()).map_err(|e| e.to_string())?;
            let signs = rows(&case.json["params"]["signs_first_to_last"], decimal)?;
            Rotation::Hadamard(signs.mapv(|sign| sign < 0.0))
        }
        "structured.givens" => {
            let axis = |value: &Value| value.as_u64().map(|axis| axis as usize).ok_or("an axis is missing");
            let plane = |value: &Value| {
                let axes = [axis(&value[0])?, axis(&value[1])?];
                Ok::<_, String>(PlaneRotation { axes, angle: decimal(&value[2])? })
            };
            Rotation::Givens(list("rotations_in_order")?.iter().map(plane).collect::<Result<_, _>>()?)
        }
        _ => return Ok(None),
    };
    rotation.apply(&mut v).map_err(|e| e.to_string())?;
    parts(vec![("out", v.to_vec())])
}

fn quasi_random(case: &Case) -> Found {
    if case.formula != "qmc.halton" {
        return Ok(None);
    }
    let bases = case.json["params"]["bases"].as_array().ok_or("bases are missing")?;
    let index = case.count("index")? as u64;
    let inverse = |base: &Value| {
        let base = base.as_u64().ok_or(format!("{base} is not a base"))?;
        Ok::<_, String>(quasi::radical_inverse(index, base))
    };
    let u = bases.iter().map(inverse).collect::<Result<Vec<_>, _>>()?;
    parts(vec![("gaussian", u.iter().map(|u| special::normal_quantile(*u)).collect()), ("u", u)])
}

fn data(case: &Case) -> Found {
    if case.formula != "data.statistics" {
        return Ok(None);
    }
    let statistics = |name| Statistics::of(&case.matrix(name)?).map_err(|e| e.to_string());
    let (x, y) = (statistics("X")?, statistics("Y")?);
    let pairs = PairStatistics::new(&x, &y).map_err(|e| e.to_string())?;
    let (rho, a) = pairs.oprf();
    let squares = pairs.root_mean_square_products().iter().map(|t| t * t).sum();
    parts(vec![
        ("mean_sq_plus", vec![pairs.mean_squared_sum(GerfSign::Plus)]),
        ("mean_sq_minus", vec![pairs.mean_squared_sum(GerfSign::Minus)]),
        ("oprf_rho", vec![rho]),
        ("oprf_A", vec![a]),
        ("pois_T", vec![squares]),
        ("pois_lambda", vec![pairs.poisson()]),
        ("geom_t", pairs.magnitude_products()),
        ("geom_p", vec![pairs.geometric()]),
        ("shift", pairs.shift(case.number("eps")?).map_err(|e| e.to_string())?),
    ])
}

fn estimate(case: &Case) -> Found {
    let omega = || Frequencies::from_rows(case.matrix("W")?).map_err(|e| e.to_string());
    let tau = || Frequencies::from_rows(case.matrix("T")?).map_err(|e| e.to_string());
    let counts = |law: CountLaw| {
        if case.json["params"]["kernel"] != "gaussian" {
            return Err("the kernel is not gaussian".into());
        }
        let count = |value: &Value| value.as_u64().ok_or(format!("{value} is not a count"));
        Counts::from_parts(rows(&case.json["params"]["omega"], count)?, law).map_err(|e| e.to_string())
    };
    let map: Map<f64> = match case.formula {
        "estimate.poisson" => {
            let omega = counts(CountLaw::Poisson(case.number("lambda")?.into()))?;
            Poisson::default().gaussian(omega, 1.0).map_err(|e| e.to_string())?
        }
        "estimate.geometric" => {
            let omega = counts(CountLaw::Geometric(case.number("p")?))?;
            Geometric::default().gaussian(omega, 1.0).map_err(|e| e.to_string())?
        }
        "estimate.trig" => Trigonometric.softmax(omega()?).map_err(|e| e.to_string())?,
        "estimate.positive" => Positive.softmax(omega()?).map_err(|e| e.to_string())?,
        "estimate.hyperbolic" => Hyperbolic.softmax(omega()?).map_err(|e| e.to_string())?,
        "estimate.gerf_real" => {
            let gerf = Gerf::new(case.complex("A")?, case.sign()?).map_err(|e| e.to_string())?;
            gerf.gaussian(omega()?, 1.0).map_err(|e| e.to_string())?
        }
        "estimate.ce_real" => {
            let a = Transform::diagonal(case.diagonal("A_diag")?).map_err(|e| e.to_string())?;
            let map = ComplexExponential::new(a, Symmetry::Plain).softmax(omega()?);
            map.map_err(|e| e.to_string())?
        }
        "estimate.angular_hybrid_shared" => {
            Hybrid::angular(Bases::shared(omega()?), tau()?).map_err(|e| e.to_string())?
        }
        "estimate.gaussian_hybrid_shared" => {
            let (sigma, r) = (case.number("sigma")?, case.number("r")?);
            let map = Hybrid::gaussian(Bases::shared(omega()?), tau()?, sigma, r);
            map.map_err(|e| e.to_string())?
        }
        "estimate.smreg_positive" => {
            // Rows of norm √d.
            let mut rows = case.matrix("W")?;
            let root = (rows.ncols() as f64).sqrt();
            rows.rows_mut().into_iter().for_each(|mut row| row *= root / row.dot(&row).sqrt());
            let omega = Frequencies::from_rows(rows).map_err(|e| e.to_string())?;
            Positive.softmax(omega).map_err(|e| e.to_string())?
        }
        _ => return Ok(None),
    };
    let (x, y) = case.points()?;
    number(map.log_estimate(&x, &y).map_err(|e| e.to_string())?)
}
