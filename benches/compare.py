#!/usr/bin/env python3
"""Times the experiment `throughput` beside PyTorch, JAX, NumPy and scikit-learn doing the same work.

    python benches/compare.py [--threads T] [--rounds 5] [--repeat 7] [--cases SUBSTRING] [--quick]
        [--out FILE]
    python benches/compare.py --errors [--repeat DRAWS] [--out FILE]

Needs Python 3.10, cargo, threadpoolctl, and the packages that are to be compared: numpy, torch, jax, scikit-learn, performer-pytorch.
Those that are not installed are left out; without NumPy, which makes the points, only draws are compared. Writes a Markdown table
to standard output and to FILE, after the kernels and the threads of each library. Environment variables that keep a library from its
fastest kernels are unset. It refuses to compare where a library has another number of threads.

With --errors it compares errors instead, of the Gram matrices of three sets of data: see kernel_errors.py.

In every round each case runs here first and then in each peer, R times after a warm-up, on the same T cores (where
the system can pin processes; else JAX takes all of them unless T is 1). Times are the least of all, the median of
the rounds' medians, and the largest of all. Ratios are those of medians; above 1 this crate is faster. Where other
work runs on the machine, believe the least times, or use one thread: threads that wait for each other, as those of
PyTorch and NumPy do, lose far more than their share.

Every peer is written as its users would write it for speed, and checked against the formula:

- positive: exp(xWᵀ − ‖x‖²/2)/√m; trigonometric: cos and sin of xWᵀ, in two arrays, and /√m where that is an
  operation of its own in eager code, but not in place, since here it is part of a scale as well
- "in place": arrays that exist are written to, as by `features_into`; with "fresh" in the case, arrays that
  every repetition allocates, as by `features`, and as eager code and JAX always do
- RBFSampler has 2m components, cosines alone, so that it takes twice as large a product
- attention, attention-causal, attention-step, and with gradients, -backward: see attention_peers.py
- ridge-statistics, ridge-fit, ridge-predict, ridge-search, logistic-fit, cholesky: see ridge_peers.py
- softmax-sample: 64 classes of n for one point; in PyTorch from the exact softmax of all classes (`C @ h`, softmax,
  multinomial), here from the tree of positive features, whose making is not timed
- nystroem: Nystroem with as many landmarks, which it makes as many features of; here the best half of them
- draw-orthogonal: QR of a batch of normal matrices with the signs of R absorbed, times the norms of normal
  rows. Draws here are in double precision.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import itertools
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import attention_peers
import fairness
import kernel_errors
import ridge_peers

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {
    "numpy": "NumPy",
    "torch": "PyTorch",
    "jax": "JAX",
    "sklearn": "scikit-learn",
    "performer_pytorch": "performer-pytorch",
}
SHAPES = [(65536, 64, 256), (16384, 128, 512), (4096, 1024, 4096)]
# Frequencies whose features are checked.
CHECKED = 16

Modules = dict[str, ModuleType]


@dataclass(frozen=True)
class Case:
    """What is timed."""

    name: str
    n: int
    d: int
    m: int
    dtype: str = "f32"
    fresh: bool = False
    heads: int = 1

    def is_attention(self) -> bool:
        return self.name.startswith("attention")

    def is_ridge(self) -> bool:
        return self.name.startswith("ridge") or self.name in ("logistic-fit", "cholesky")

    def label(self) -> str:
        points = "" if self.n == 1 else f"{self.n}×"
        fresh = " fresh" if self.fresh else ""
        heads = f" {self.heads} heads" if self.heads > 1 else ""
        return f"{self.name} {points}{self.d}→{self.m} {self.dtype}{heads}{fresh}"


@dataclass
class Times:
    """The least time, the median and the largest time of each round, in milliseconds."""

    rounds: list[tuple[float, float, float]] = field(default_factory=list)

    def median(self) -> float:
        return statistics.median(median for _, median, _ in self.rounds)

    def least(self) -> float:
        return min(least for least, _, _ in self.rounds)

    def cell(self) -> str:
        times = (self.least(), self.median(), max(largest for _, _, largest in self.rounds))
        return " / ".join(f"{time:.3g}" if time < 100 else f"{time:.0f}" for time in times)


@dataclass
class Peer:
    """Someone else's way to do the work of a case."""

    name: str
    run: Callable[[], Any]
    # Whether what `run` returns is what it should be.
    right: Callable[[Any], bool]
    # Whether it takes so long that it runs once, without a warm-up.
    once: bool = False
    times: Times = field(default_factory=Times)


def cases(quick: bool) -> list[Case]:
    """All of them, or the same ones on fewer points."""
    names, part = ("positive", "trigonometric"), 16 if quick else 1
    shapes = [(n // part, d, m) for n, d, m in SHAPES]
    single = [Case(name, *shape) for shape in shapes for name in names]
    double = [Case(name, *shapes[0], dtype="f64") for name in names]
    fresh = [Case(name, *shapes[0], fresh=True) for name in names]
    draws = [
        Case(name, 1, *((256, 1024) if quick else (1024, 4096)), dtype="f64") for name in ("draw-orthogonal", "draw-paired")
    ]
    nystroem = Case("nystroem", 20_000 // part, 64, 256)
    lengths = (1024, 4096) if quick else (1024, 4096, 16384, 65536)
    attention = [Case(name, n, 64, 256) for name in ("attention", "attention-causal") for n in lengths]
    trained = [f"{name}-backward" for name in ("attention", "attention-causal")]
    backward = [Case(name, 4096 if quick else 16384, 64, 256) for name in trained]
    steps = [Case("attention-step", 1024, 64, 256, heads=heads) for heads in (8, 64)]
    ridge = [Case(name, 100_000 // part, 64, 2048) for name in ("ridge-statistics", "ridge-fit")]
    ridge.append(Case("ridge-predict", 65_536 // part, 64, 1024))
    ridge.append(Case("ridge-search", 20_000 // part, 16, 512, dtype="f64"))
    ridge.append(Case("logistic-fit", 100_000 // part, 16, 512, dtype="f64"))
    cholesky = Case("cholesky", 1, 1, 2048 // part, dtype="f64")
    numbers = (1000, 10_000) if quick else (1000, 10_000, 100_000, 1_000_000)
    sampling = [Case("softmax-sample", n, 64, 128) for n in numbers]
    return [*single, *double, *fresh, *draws, nystroem, *attention, *backward, *steps, *ridge, cholesky, *sampling]


def points_and_frequencies(np: ModuleType, case: Case) -> tuple[Any, Any]:
    """Points like those of `throughput`, so that exponentials are of their size, and normal frequencies."""
    dtype = np.float32 if case.dtype == "f32" else np.float64
    rng = np.random.default_rng(1)
    x = rng.random((case.n, case.d), dtype=dtype) * dtype(case.d**-0.5)
    return x, rng.standard_normal((case.m, case.d), dtype=dtype)


def formula(case: Case, x: Sequence[float], w: Sequence[Sequence[float]]) -> list[float]:
    """The features of one point, cosines before sines, from the definition."""
    dots = [math.fsum(a * b for a, b in zip(x, row, strict=True)) for row in w]
    if case.name == "positive":
        half = 0.5 * math.fsum(a * a for a in x)
        return [math.exp(dot - half) / math.sqrt(case.m) for dot in dots]
    return [f(dot) / math.sqrt(case.m) for f in (math.cos, math.sin) for dot in dots]


def close(features: Sequence[float], expected: Sequence[float], scale: float) -> bool:
    """Whether single precision explains the differences; the largest features are of size 1/√m or so."""
    pairs = zip(features, expected, strict=True)
    return all(abs(float(a) * scale - b) <= 1e-4 * max(map(abs, expected)) for a, b in pairs)


def row_check(case: Case, x: Any, w: Any, in_place: bool = False) -> Callable[[Any], bool]:
    """Compares the first features of the first row: of one array, or of one of cosines and one of sines."""
    expected = formula(case, x[0].tolist(), w[:CHECKED].tolist())
    scale = case.m**-0.5 if in_place and case.name == "trigonometric" else 1.0

    def check(result: Any) -> bool:
        if isinstance(result, tuple):
            first = [value for part in result for value in part[0][:CHECKED]]
        else:
            starts = range(0, result.shape[1], case.m)
            first = [value for start in starts for value in result[0][start : start + CHECKED]]
        return close(first, expected, scale)

    return check


def reusing(case: Case, new: Callable[[], Any]) -> Callable[[], Any]:
    """What `new` makes: the same each time, or a fresh one if the case says so."""
    if case.fresh:
        return new
    made = new()
    return lambda: made


def torch_maps(modules: Modules, case: Case, x: Any, w: Any) -> Iterator[Peer]:
    torch = modules["torch"]
    points, weights = torch.from_numpy(x), torch.from_numpy(w).T
    root = math.sqrt(case.m)
    positive = case.name == "positive"

    def new() -> tuple[Any, Any]:
        empty = functools.partial(torch.empty, dtype=points.dtype)
        return empty(case.n, case.m), empty(case.n, 1 if positive else case.m)

    arrays = reusing(case, new)

    def positive_in_place() -> Any:
        out, shift = arrays()
        torch.mm(points, weights, out=out)
        torch.linalg.vector_norm(points, dim=1, keepdim=True, out=shift)
        shift.square_().mul_(-0.5).sub_(math.log(root))
        return out.add_(shift).exp_()

    def positive_eager() -> Any:
        return torch.exp(points @ weights - (points * points).sum(-1, keepdim=True) / 2) / root

    def trigonometric_in_place() -> Any:
        cos, sin = arrays()
        torch.mm(points, weights, out=sin)
        torch.cos(sin, out=cos)
        return cos, sin.sin_()

    def trigonometric_eager() -> Any:
        dots = points @ weights
        return torch.cat((torch.cos(dots), torch.sin(dots)), -1) / root

    in_place = positive_in_place if positive else trigonometric_in_place
    yield Peer("PyTorch in place", in_place, row_check(case, x, w, in_place=True))
    yield Peer("PyTorch eager", positive_eager if positive else trigonometric_eager, row_check(case, x, w))


def jax_maps(modules: Modules, case: Case, x: Any, w: Any) -> Iterator[Peer]:
    jax = modules["jax"]
    jnp = jax.numpy
    points, frequencies = jnp.asarray(x), jnp.asarray(w)
    root = math.sqrt(case.m)

    @jax.jit
    def positive(x: Any, w: Any) -> Any:
        return jnp.exp(x @ w.T - (x * x).sum(-1, keepdims=True) / 2) / root

    @jax.jit
    def trigonometric(x: Any, w: Any) -> Any:
        dots = x @ w.T
        return jnp.cos(dots) / root, jnp.sin(dots) / root

    features = positive if case.name == "positive" else trigonometric
    run = lambda: jax.block_until_ready(features(points, frequencies))
    yield Peer("JAX jit", run, row_check(case, x, w))


def numpy_maps(modules: Modules, case: Case, x: Any, w: Any) -> Iterator[Peer]:
    np = modules["numpy"]
    log_root = x.dtype.type(math.log(case.m) / 2)
    shape = (case.n, case.m)
    positive_array = case.name == "positive"
    arrays = reusing(case, lambda: [np.empty(shape, x.dtype) for _ in range(1 if positive_array else 2)])

    def positive() -> Any:
        (out,) = arrays()
        np.matmul(x, w.T, out=out)
        out -= (np.einsum("ij,ij->i", x, x) / 2 + log_root)[:, None]
        return np.exp(out, out=out)

    def trigonometric() -> Any:
        cos, sin = arrays()
        np.matmul(x, w.T, out=sin)
        np.cos(sin, out=cos)
        return cos, np.sin(sin, out=sin)

    run = positive if positive_array else trigonometric
    yield Peer("NumPy in place", run, row_check(case, x, w, in_place=True))


def sklearn_maps(_: Modules, case: Case, x: Any, __: Any) -> Iterator[Peer]:
    if case.name != "trigonometric":
        return
    approximation = importlib.import_module("sklearn.kernel_approximation")
    sampler = approximation.RBFSampler(gamma=0.5, n_components=2 * case.m, random_state=1).fit(x[:2])

    def near_kernel(features: Any) -> bool:
        # Standard errors are at most 1/√(2m).
        estimates = (features[:8] @ features[:8].T).tolist()
        rows = x[:8].tolist()
        exact = [[math.exp(-0.5 * math.dist(a, b) ** 2) for b in rows] for a in rows]
        pairs = ((a, b) for i, j in zip(estimates, exact, strict=True) for a, b in zip(i, j, strict=True))
        return all(abs(a - b) <= 6 / math.sqrt(2 * case.m) for a, b in pairs)

    yield Peer("RBFSampler", lambda: sampler.transform(x), near_kernel)


def sklearn_nystroem(modules: Modules, case: Case) -> Iterator[Peer]:
    np = modules["numpy"]
    approximation = importlib.import_module("sklearn.kernel_approximation")
    x = np.random.default_rng(1).random((case.n, case.d), dtype=np.float32) * np.float32(case.d**-0.5)
    gamma = 1 / (2 * 0.8**2)
    sampler = approximation.Nystroem(gamma=gamma, n_components=2 * case.m, random_state=1).fit(x[: 4 * case.m])

    def near_kernel(features: Any) -> bool:
        rows = x[:8].astype(float)
        exact = np.exp(-gamma * ((rows[:, None] - rows[None]) ** 2).sum(-1))
        return bool(np.abs(features[:8] @ features[:8].T - exact).max() < 0.05)

    yield Peer("Nystroem", lambda: sampler.transform(x), near_kernel)


def torch_draws(modules: Modules, case: Case) -> Iterator[Peer]:
    torch = modules["torch"]
    d, m = case.d, case.m

    def draw(dtype: Any) -> Any:
        q, r = torch.linalg.qr(torch.randn(m // d, d, d, dtype=dtype))
        rows = (q * torch.diagonal(r, dim1=-2, dim2=-1).sign().unsqueeze(-2)).mT.reshape(m, d)
        return rows.mul_(torch.randn(m, d, dtype=dtype).norm(dim=1, keepdim=True))

    def orthogonal(rows: Any) -> bool:
        block = rows[:d]
        gram = block @ block.T / d
        diagonal = gram.diagonal()
        off = (gram - torch.diag(diagonal)).abs().max().item()
        return rows.shape == (m, d) and off < 1e-3 and abs(diagonal.mean().item() - 1) < 0.05

    yield Peer("PyTorch QR, f64", lambda: draw(torch.float64), orthogonal)
    yield Peer("PyTorch QR, f32", lambda: draw(torch.float32), orthogonal)


def torch_samples(modules: Modules, case: Case) -> Iterator[Peer]:
    torch = modules["torch"]
    classes = torch.rand(case.n, case.d) * case.d**-0.5
    points = itertools.cycle((torch.rand(16, case.d) * case.d**-0.5).unbind())
    draws = 64

    def sample() -> Any:
        return torch.multinomial(torch.softmax(classes @ next(points), 0), draws, replacement=True)

    def of_classes(found: Any) -> bool:
        return found.shape == (draws,) and 0 <= int(found.min()) and int(found.max()) < case.n

    yield Peer("PyTorch, exact softmax", sample, of_classes)


def peers(modules: Modules, case: Case) -> list[Peer]:
    """The peers of a case that are installed, each checked."""
    if case.name == "nystroem":
        found = list(sklearn_nystroem(modules, case)) if {"numpy", "sklearn"} <= modules.keys() else []
    elif case.name.startswith("draw"):
        # Nobody else couples radii.
        plain = case.name == "draw-orthogonal" and "torch" in modules
        found = list(torch_draws(modules, case)) if plain else []
    elif case.name == "softmax-sample":
        found = list(torch_samples(modules, case)) if "torch" in modules else []
    elif case.is_attention():
        found = [Peer(*run) for run in attention_peers.runs(modules, case)] if "numpy" in modules else []
    elif case.is_ridge():
        found = [Peer(*run) for run in ridge_peers.runs(modules, case)] if "numpy" in modules else []
    elif "numpy" in modules:
        x, w = points_and_frequencies(modules["numpy"], case)
        maps = {"torch": torch_maps, "jax": jax_maps, "numpy": numpy_maps, "sklearn": sklearn_maps}
        found = [peer for name, make in maps.items() if name in modules for peer in make(modules, case, x, w)]
    else:
        found = []
    for peer in found:
        if not peer.once and not peer.right(peer.run()):
            sys.exit(f"{case.label()}: {peer.name} computes something else")
    return found


def timed(peer: Peer, repeat: int) -> tuple[float, float, float]:
    """The least time, the median and the largest of `repeat` runs after a warm-up, or of one run."""
    if not peer.once:
        peer.run()
    times = []
    for _ in range(1 if peer.once else repeat):
        start = time.perf_counter()
        result = peer.run()
        times.append(1e3 * (time.perf_counter() - start))
        del result
    return min(times), statistics.median(times), max(times)


def throughput(binary: str, arguments: Sequence[str]) -> dict[str, Any]:
    """The line that `throughput` prints."""
    done = subprocess.run([binary, *arguments], stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout)


def compare(modules: Modules, binary: str, case: Case, options: argparse.Namespace) -> str:
    """The row of a case."""
    arguments = ["--case", case.name, "--n", str(case.n), "--d", str(case.d), "--m", str(case.m)]
    arguments += ["--dtype", case.dtype, "--threads", str(options.threads), "--repeat", str(options.repeat)]
    arguments += ["--fresh"] * case.fresh + ["--heads", str(case.heads)] * case.is_attention()
    others, ours, fractions = peers(modules, case), Times(), []
    for number in range(options.rounds):
        print(f"{case.label()}: round {number + 1} of {options.rounds}", file=sys.stderr)
        line = throughput(binary, arguments)
        ours.rounds.append((line["min_ms"], line["median_ms"], line["max_ms"]))
        fractions.append(line["roofline_fraction"])
        for peer in others:
            if number == 0 or not peer.once:
                peer.times.rounds.append(timed(peer, options.repeat))
    start = f"| {case.label()} | {ours.cell()} | {statistics.median(fractions):.2f} |"
    # The best peer first.
    others.sort(key=lambda peer: peer.times.median())
    ratio = {peer.name: peer.times.median() / ours.median() for peer in others}
    cells = [f"**{ratio[peer.name]:.2f}** {peer.name} ({peer.times.cell()})" for peer in others]
    return f"{start} {'; '.join(cells) or '–'} |\n"


def confine(threads: int) -> None:
    """Gives this process and its children as many cores and threads; before any peer is imported."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    fairness.release()
    for library in ("OMP", "OPENBLAS", "MKL"):
        os.environ[f"{library}_NUM_THREADS"] = str(threads)
    os.environ["JAX_PLATFORMS"] = "cpu"
    if threads == 1:
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"


def installed(threads: int) -> Modules:
    """The peers that can be imported, set up."""
    modules = {}
    for name, title in PACKAGES.items():
        try:
            modules[name] = importlib.import_module(name)
        except ImportError as error:
            print(f"{title} is left out: {error}", file=sys.stderr)
    if "torch" in modules:
        modules["torch"].set_num_threads(threads)
        modules["torch"].set_grad_enabled(False)
    if "jax" in modules:
        modules["jax"].config.update("jax_enable_x64", True)
    return modules


def build(example: str) -> str:
    """Builds an experiment and says where it is."""
    command = ["cargo", "build", "--release", "--example", example, "--message-format=json"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True)
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    return next(m["executable"] for m in messages if m.get("executable") and m["target"]["name"] == example)


def machine() -> str:
    """The processor, its cores and its best vectors among those that are used here."""
    info, flags = platform.processor() or platform.machine(), set()
    if Path("/proc/cpuinfo").exists():
        lines = [line.partition(":") for line in Path("/proc/cpuinfo").read_text().splitlines()]
        facts = {key.strip(): value.strip() for key, _, value in reversed(lines)}
        info, flags = facts.get("model name", info), set(facts.get("flags", "").split())
    avx2 = {"avx2", "fma"}
    sets = {"AVX-512": avx2 | {"avx512f", "avx512bw", "avx512dq", "avx512vl"}, "AVX2": avx2}
    vectors = next((name for name, needs in sets.items() if needs <= flags), platform.machine())
    return f"{info}, {os.cpu_count()} cores, {vectors}"


def heading(modules: Modules, binary: str, options: argparse.Namespace) -> str:
    """Where, with what and how the times are taken."""
    rustc = subprocess.run(["rustc", "--version"], stdout=subprocess.PIPE, check=False, text=True).stdout
    version = lambda module: getattr(module, "__version__", "")
    versions = [f"{PACKAGES[name]} {version(module)}".strip() for name, module in modules.items()]
    missing = [title for name, title in PACKAGES.items() if name not in modules]
    text = f"{machine()}; {fairness.counted(options.threads)}; {', '.join([rustc.strip(), *versions])}"
    text += f"; not installed: {', '.join(missing)}\n" if missing else "\n"
    text += fairness.kernels(modules, options.threads)
    for dtype in ("f32", "f64"):
        arguments = ["--case", "peak", "--dtype", dtype, "--threads", str(options.threads)]
        peak = throughput(binary, arguments)
        text += f"{dtype}: {peak['multiply_add_gflops']:.0f} GFLOPS of multiply-adds, "
        text += f"{peak['write_gbs']:.1f} GB/s written, {peak['read_gbs']:.1f} GB/s read\n"
    text += f"{options.rounds} rounds of {options.repeat} repetitions; min / median / max in milliseconds\n\n"
    text += "| case | ours | of roofline | ratio, peer / ours, and peer |\n|---|---|---|---|\n"
    return text


def positive_number(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 1 on")
    return int(text)


def request() -> argparse.Namespace:
    """The command line."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--threads", type=positive_number, default=available, metavar="T")
    parser.add_argument("--rounds", type=positive_number, metavar="K")
    parser.add_argument("--repeat", type=positive_number, metavar="R")
    parser.add_argument("--cases", default="", metavar="SUBSTRING", help="cases whose labels contain this")
    parser.add_argument("--quick", action="store_true", help="fewer points, 2 rounds of 3 repetitions")
    parser.add_argument("--errors", action="store_true", help="errors of Gram matrices instead of times")
    parser.add_argument("--out", type=Path, metavar="FILE")
    options = parser.parse_args()
    if options.threads > available:
        parser.error(f"there are {available} cores, not {options.threads}")
    options.draws = options.repeat or 12
    options.rounds = options.rounds or (2 if options.quick else 5)
    options.repeat = options.repeat or (3 if options.quick else 7)
    options.chosen = [case for case in cases(options.quick) if options.cases in case.label()]
    if not options.chosen:
        labels = ", ".join(case.label() for case in cases(options.quick))
        parser.error(f"no case contains '{options.cases}': {labels}")
    return options


def times(binary: str, options: argparse.Namespace) -> Iterator[str]:
    """The heading and the rows of the cases."""
    modules = installed(options.threads)
    yield heading(modules, binary, options)
    for case in options.chosen:
        yield compare(modules, binary, case, options)


def errors(binary: str, options: argparse.Namespace) -> Iterator[str]:
    """The table of errors, of 12 draws unless another number of repetitions is asked for."""
    numpy = importlib.import_module("numpy")
    yield from kernel_errors.table(numpy, binary, options.draws)


def main() -> None:
    options = request()
    binary = build("gram_errors" if options.errors else "throughput")
    confine(options.threads)
    table = ""
    for row in errors(binary, options) if options.errors else times(binary, options):
        print(row, end="", flush=True)
        table += row
    if options.out:
        options.out.write_text(table, encoding="utf-8")


if __name__ == "__main__":
    try:
        main()
    except (OSError, subprocess.CalledProcessError, fairness.Unfair) as error:
        sys.exit(str(error))
