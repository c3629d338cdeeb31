"""Errors of Gram matrices beside scikit-learn's samplers, for compare.py.

The data are those that come with scikit-learn: the first 1000 digits over 16, wine and breast cancer standardised. The kernel is
Gaussian, with the median distance or half of it as lengthscale. Every sampler makes D features. An error is ‖K̂ − K‖/‖K‖ in the norm of
Frobenius, the root mean square over draws.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

DATA = ("digits", "wine", "breast_cancer")
SCALES = (1.0, 0.5)
FEATURES = (64, 256, 1024)
# Columns of the table, of ours and of theirs, in order.
OURS = (
    "independent",
    "orthogonal",
    "paired radii",
    "uniform landmarks",
    "Nyström, fitted",
    "Nyström, unbiased",
    "unbiased limit",
    "least",
)
THEIRS = ("RBFSampler", "Nystroem")


def points(np: Any, data: str) -> Any:
    """Points as the experiment `gram_errors` has them."""
    datasets = importlib.import_module("sklearn.datasets")
    x = getattr(datasets, f"load_{data}")().data
    if data == "digits":
        return x[:1000] / 16
    return (x - x.mean(axis=0)) / x.std(axis=0)


def gram(np: Any, x: Any, lengthscale: float) -> Any:
    squares = (x * x).sum(axis=1)
    distances = np.maximum(squares[:, None] + squares[None, :] - 2 * x @ x.T, 0)
    return np.exp(-distances / (2 * lengthscale**2))


def theirs(np: Any, data: str, line: dict[str, Any], draws: int) -> dict[str, float | None]:
    """The errors of scikit-learn's samplers for the points, the lengthscale and the number of features of a line of ours."""
    approximation = importlib.import_module("sklearn.kernel_approximation")
    x, features = points(np, data), line["features"]
    if x.shape != (line["n"], line["d"]):
        sys.exit(f"{data} has another shape in scikit-learn")
    exact = gram(np, x, line["lengthscale"])
    gamma = 1 / (2 * line["lengthscale"] ** 2)

    def error(sampler: str) -> float | None:
        if sampler == "Nystroem" and features > len(x):
            return None
        squares = []
        for seed in range(draws):
            make = getattr(approximation, sampler)(gamma=gamma, n_components=features, random_state=seed)
            phi = make.fit_transform(x)
            squares.append(((phi @ phi.T - exact) ** 2).sum() / (exact**2).sum())
        return float(np.mean(squares) ** 0.5)

    return {sampler: error(sampler) for sampler in THEIRS}


def cell(error: float | None) -> str:
    return "–" if error is None else f"{error:.2g}" if error >= 0.1 else f"{error:.1e}" if error < 1e-3 else f"{error:.4f}"


def table(np: Any, binary: str, draws: int) -> Iterator[str]:
    """The lines of the table."""
    yield f"relative Frobenius error of the Gram matrix, root mean square of {draws} draws\n\n"
    columns = ["data", "ℓ", "D", *THEIRS, *OURS]
    yield f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}\n"
    for data in DATA:
        for scale in SCALES:
            for features in FEATURES:
                options = ["--data", data, "--scale", str(scale), "--features", str(features), "--draws", str(draws)]
                done = subprocess.run([binary, *options], stdout=subprocess.PIPE, check=True, text=True)
                line = json.loads(done.stdout)
                errors = {**theirs(np, data, line, draws), **line["errors"]}
                cells = [data, "median" if scale == 1 else "half", str(features)]
                cells += [cell(errors[name]) for name in (*THEIRS, *OURS)]
                yield f"| {' | '.join(cells)} |\n"
