"""Ridge regression beside NumPy, SciPy and scikit-learn, for compare.py.

- NumPy: AᵀA of features that exist already, which is what BLAS does at its best (a symmetric product); here features
  are computed on the way and never stored
- RBFSampler + Ridge: the whole fit, with its solve, and the predictions of the pipeline. Features of RBFSampler are cosines
  alone, so that it takes twice as large a product of points and frequencies
- RBFSampler + RidgeCV: the choice among nine lengthscales and twenty λ by leave-one-out, map by map
- LogisticRegression: lbfgs with its tolerance of 1e-4 on features that exist already; here they are computed on the way
- cholesky: SciPy's factor of a symmetric matrix and the solution of one system with it
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

Run = tuple[str, Callable[[], Any], Callable[[Any], bool]]

# Features whose products are checked.
CHECKED = 4


def points(np: ModuleType, case: Any) -> Any:
    """Points like those of `throughput`."""
    dtype = np.float32 if case.dtype == "f32" else np.float64
    return np.random.default_rng(1).random((case.n, case.d), dtype=dtype) * dtype(case.d**-0.5)


def products(np: ModuleType, case: Any) -> Iterator[Run]:
    """The products of all pairs of features, which are made before."""
    x = points(np, case)
    frequencies = np.random.default_rng(2).standard_normal((case.d, case.m // 2), dtype=x.dtype)
    dots = x @ frequencies
    features = np.hstack([np.cos(dots), np.sin(dots)])
    del dots
    out = np.empty((case.m, case.m), x.dtype)
    first = features[:, :CHECKED].astype(np.float64)
    expected = first.T @ first

    def right(result: Any) -> bool:
        return bool(np.allclose(result[:CHECKED, :CHECKED], expected, rtol=1e-3))

    yield "NumPy A.T @ A, features made", lambda: np.matmul(features.T, features, out=out), right


def pipeline(np: ModuleType, case: Any) -> tuple[Any, Any, Any]:
    """Approximate kernel ridge regression of the first coordinate, points and targets."""
    approximation = importlib.import_module("sklearn.kernel_approximation")
    linear_model = importlib.import_module("sklearn.linear_model")
    make = importlib.import_module("sklearn.pipeline").make_pipeline
    x = points(np, case)
    sampler = approximation.RBFSampler(gamma=0.5, n_components=case.m, random_state=1)
    return make(sampler, linear_model.Ridge(alpha=1.0, solver="cholesky")), x, x[:, 0].copy()


def follows(np: ModuleType, predictions: Any, targets: Any) -> bool:
    """Whether predictions follow the targets, on which they depend by a smooth function."""
    return bool(np.corrcoef(np.ravel(predictions), targets)[0, 1] > 0.9)


def fits(np: ModuleType, case: Any) -> Iterator[Run]:
    model, x, y = pipeline(np, case)
    yield "RBFSampler + Ridge fit", lambda: model.fit(x, y), lambda m: follows(np, m.predict(x[:1000]), y[:1000])


def predictions(np: ModuleType, case: Any) -> Iterator[Run]:
    model, x, y = pipeline(np, case)
    model.fit(x[:20000], y[:20000])
    yield "RBFSampler + Ridge predict", lambda: model.predict(x), lambda found: follows(np, found, y)


def wave(np: ModuleType, x: Any) -> tuple[Any, Any]:
    """A wave along the diagonal of the points, and the wave with noise."""
    along = x.sum(axis=1, dtype=np.float64) - x.shape[1] ** 0.5 / 2
    signal = np.sin(12**0.5 * along)
    return signal, (signal + 0.3 * np.random.default_rng(3).standard_normal(len(x))).astype(x.dtype)


def searches(np: ModuleType, case: Any) -> Iterator[Run]:
    approximation = importlib.import_module("sklearn.kernel_approximation")
    linear_model = importlib.import_module("sklearn.linear_model")
    scaler = importlib.import_module("sklearn.preprocessing").StandardScaler()
    x = points(np, case)
    signal, y = wave(np, x)
    lambdas = np.logspace(-3, 3, 20)

    def search() -> Any:
        scaled, found = scaler.fit_transform(x), []
        for k in range(9):
            gamma = 0.5 / (4 * 2 ** ((k - 4) / 2)) ** 2
            sampler = approximation.RBFSampler(gamma=gamma, n_components=case.m, random_state=1).fit(scaled)
            features = sampler.transform(scaled)
            model = linear_model.RidgeCV(alphas=lambdas).fit(features, y)
            found.append((model.best_score_, k, sampler, model))
        return max(found, key=lambda one: one[0])

    def accurate(best: Any) -> bool:
        errors = best[3].predict(best[2].transform(scaler.transform(x))) - signal
        accuracy = 1 - (errors**2).mean() / signal.var()
        print(f"RidgeCV: R² {accuracy:.4f}", file=sys.stderr)
        return bool(accuracy > 0.9)

    yield "RBFSampler + RidgeCV", search, accurate


def logistic(np: ModuleType, case: Any) -> Iterator[Run]:
    linear_model = importlib.import_module("sklearn.linear_model")
    x = points(np, case)
    labels = wave(np, x)[1] > 0
    dots = x @ np.random.default_rng(2).standard_normal((case.d, case.m // 2), dtype=x.dtype)
    features = np.hstack([np.cos(dots), np.sin(dots)]) / x.dtype.type((case.m // 2) ** 0.5)
    model = linear_model.LogisticRegression(C=1.0, tol=1e-4, max_iter=10_000)

    def accurate(fitted: Any) -> bool:
        accuracy = fitted.score(features, labels)
        print(f"LogisticRegression: {accuracy:.4f} of labels, {fitted.n_iter_} steps", file=sys.stderr)
        return bool(accuracy > 0.8)

    yield "LogisticRegression, features made", lambda: model.fit(features, labels), accurate


def solutions(np: ModuleType, case: Any) -> Iterator[Run]:
    """A matrix that stands, its factor and a solution."""
    linalg = importlib.import_module("scipy.linalg")
    i = np.arange(case.m)
    a = np.exp(-np.abs(i[:, None] - i) / 10)
    b = a[:, 0].copy()

    def solve() -> Any:
        return linalg.cho_solve(linalg.cho_factor(a, lower=True, check_finite=False), b, check_finite=False)

    yield "SciPy cho_factor, cho_solve", solve, lambda u: bool(np.allclose(u, i == 0, atol=1e-9))


def runs(modules: dict[str, ModuleType], case: Any) -> list[Run]:
    """The peers of a case: a name, what is timed, and whether its result is right."""
    np, found = modules["numpy"], []
    if case.name == "ridge-statistics":
        found += products(np, case)
    if case.name == "cholesky" and importlib.util.find_spec("scipy"):
        found += solutions(np, case)
    of_sklearn = {"ridge-fit": fits, "ridge-predict": predictions, "ridge-search": searches, "logistic-fit": logistic}
    if "sklearn" in modules and case.name in of_sklearn:
        found += of_sklearn[case.name](np, case)
    return found
