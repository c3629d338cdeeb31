"""Linear and exact attention in PyTorch, JAX and performer-pytorch, for compare.py.

One sequence of n tokens in `heads` heads, d = d_v, m positive features, queries and keys uniform in [0, 1)ᵈ and divided by
d^¼. The linear ones are written as one would write them for speed: in chunks, so that features stay in the caches, with
prefix sums over chunks where they are causal, and without a stabiliser. They are checked against the definition, and those
that are trained by the gradient of a query too. Exact attention and performer-pytorch, which draws its own frequencies,
compute something else: their time is what counts. Where they take seconds they run once, without a warm-up.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

CHUNK = {"attention": 1024, "attention-causal": 128, "attention-backward": 1024, "attention-causal-backward": 128}

# Longer sequences take some peers seconds.
LONG = 16384

# Name, what to time, whether its result is right, and whether once is enough.
Run = tuple[str, Callable[[], Any], Callable[[Any], bool], bool]


def inputs(np: ModuleType, case: Any) -> tuple[Any, Any, Any, Any]:
    """Queries, keys and values, heads × n × d, and frequencies."""
    rng = np.random.default_rng(1)
    shape = (case.heads, case.n, case.d)
    q, k, v = (rng.random(shape, dtype=np.float32) for _ in range(3))
    return q, k, v, rng.standard_normal((case.m, case.d), dtype=np.float32)


def right(np: ModuleType, case: Any, arrays: tuple[Any, Any, Any, Any]) -> Callable[[Any], bool]:
    """Compares a row of the first head with the definition."""
    q, k, v, w = (np.asarray(a, np.float64) for a in arrays)
    row, causal = min(case.n - 1, 777), is_causal(case)
    seen = row + 1 if causal else case.n
    root = case.d**-0.25

    def features(x: Any) -> Any:
        x = x * root
        return np.exp(x @ w.T - (x * x).sum(-1, keepdims=True) / 2)

    weights = features(k[0, :seen]) @ features(q[0, row])
    expected = weights @ v[0, :seen] / weights.sum()

    def check(result: Any) -> bool:
        found = np.asarray(result, np.float64).reshape(case.heads, -1, case.d)[0]
        found = found[row] if found.shape[0] > 1 else found[0]
        return bool(np.abs(found - expected).max() < 1e-3)

    return check


def right_gradient(np: ModuleType, case: Any, arrays: Any, upstream: Any) -> Callable[[Any], bool]:
    """Compares the gradient of a query of the first head with the definition."""
    q, k, v, w = (np.asarray(a, np.float64) for a in arrays)
    row, root = min(case.n - 1, 777), case.d**-0.25
    seen = row + 1 if is_causal(case) else case.n
    x, keys, values = root * q[0, row], root * k[0, :seen], v[0, :seen]
    features = lambda x: np.exp(x @ w.T - (x * x).sum(-1, keepdims=True) / 2)
    query, keys = features(x), features(keys)
    weights = keys @ query
    along = (values - weights @ values / weights.sum()) @ np.asarray(upstream[0, row], np.float64) / weights.sum()
    expected = root * (query * (along @ keys)) @ (w - x)

    def check(gradients: Any) -> bool:
        return bool(np.abs(np.asarray(gradients[0, row]) - expected).max() < 1e-3 * np.abs(expected).max())

    return check


def is_causal(case: Any) -> bool:
    return "causal" in case.name or case.name == "attention-step"


def anything(_: Any) -> bool:
    """For those that compute something else."""
    return True


def torch_gradients(modules: dict[str, ModuleType], case: Any, arrays: Any, check: Any) -> Iterator[Run]:
    """Outputs and gradients by autograd, in chunks without operations in place."""
    torch = modules["torch"]
    q, k, v = (torch.from_numpy(a).requires_grad_() for a in arrays[:3])
    weights, root, size = torch.from_numpy(arrays[3]).T.contiguous(), case.d**-0.25, CHUNK[case.name]
    upstream, causal = torch.rand(q.shape), is_causal(case)

    def features(x: Any) -> Any:
        x = x * root
        return torch.exp(x @ weights - 0.5 * (x * x).sum(-1, keepdim=True))

    def bidirectional() -> Any:
        sums, totals = torch.zeros(case.heads, case.m, case.d), torch.zeros(case.heads, case.m, 1)
        for keys, values in zip(k.split(size, 1), v.split(size, 1), strict=True):
            keys = features(keys)
            sums, totals = torch.baddbmm(sums, keys.mT, values), totals + keys.sum(1).unsqueeze(-1)
        of = lambda queries: (queries @ sums) / (queries @ totals)
        return torch.cat([of(features(queries)) for queries in q.split(size, 1)], 1)

    def in_order() -> Any:
        sums, totals, out = torch.zeros(case.heads, case.m, case.d), torch.zeros(case.heads, case.m, 1), []
        for queries, keys, values in zip(*(x.split(size, 1) for x in (q, k, v)), strict=True):
            queries, keys = features(queries), features(keys)
            scores = torch.tril(queries @ keys.mT)
            own = torch.baddbmm(scores @ values, queries, sums)
            out.append(own / (scores.sum(-1, keepdim=True) + queries @ totals))
            sums, totals = torch.baddbmm(sums, keys.mT, values), totals + keys.sum(1).unsqueeze(-1)
        return torch.cat(out, 1)

    def trained(forward: Callable[[], Any], upstream: Any) -> Callable[[], Any]:
        def run() -> Any:
            q.grad = k.grad = v.grad = None
            with torch.enable_grad():
                out = forward()
                out.backward(upstream)
            return out.detach()

        return run

    check_gradient = right_gradient(modules["numpy"], case, arrays, upstream)
    both = lambda out: check(out) and check_gradient(q.grad)
    yield f"PyTorch in chunks of {size}", trained(in_order if causal else bidirectional, upstream), both, False
    exact = torch.nn.functional.scaled_dot_product_attention
    shaped = lambda: [x.unsqueeze(0) for x in (q, k, v)]
    yield "PyTorch exact", trained(lambda: exact(*shaped(), is_causal=causal), upstream.unsqueeze(0)), anything, True
    if "performer_pytorch" in modules:
        performer = importlib.import_module("performer_pytorch").FastAttention(case.d, case.m, causal=causal)
        yield "performer-pytorch", trained(lambda: performer(*shaped()), upstream.unsqueeze(0)), anything, causal


def torch_attention(modules: dict[str, ModuleType], case: Any, arrays: Any, check: Any) -> Iterator[Run]:
    torch = modules["torch"]
    q, k, v, w = (torch.from_numpy(a) for a in arrays)
    weights, root = w.T.contiguous(), case.d**-0.25

    def features(x: Any) -> Any:
        x = x * root
        return torch.matmul(x, weights).sub_((x * x).sum(-1, keepdim=True), alpha=0.5).exp_()

    def bidirectional() -> Any:
        sums, totals = torch.zeros(case.heads, case.m, case.d), torch.zeros(case.heads, case.m, 1)
        for keys, values in zip(k.split(CHUNK["attention"], 1), v.split(CHUNK["attention"], 1), strict=True):
            keys = features(keys)
            sums.baddbmm_(keys.mT, values)
            totals += keys.sum(1).unsqueeze(-1)
        out = torch.empty_like(q)
        for to, queries in zip(out.split(CHUNK["attention"], 1), q.split(CHUNK["attention"], 1), strict=True):
            queries = features(queries)
            torch.div(queries @ sums, queries @ totals, out=to)
        return out

    def causal() -> Any:
        size = CHUNK["attention-causal"]
        sums, totals = torch.zeros(case.heads, case.m, case.d), torch.zeros(case.heads, case.m, 1)
        out = torch.empty_like(q)
        parts = (x.split(size, 1) for x in (out, q, k, v))
        for to, queries, keys, values in zip(*parts, strict=True):
            queries, keys = features(queries), features(keys)
            scores = torch.tril(queries @ keys.mT)
            own = (scores @ values).baddbmm_(queries, sums)
            torch.div(own, scores.sum(-1, keepdim=True) + queries @ totals, out=to)
            sums.baddbmm_(keys.mT, values)
            totals += keys.sum(1).unsqueeze(-1)
        return out

    def steps() -> Callable[[], Any]:
        keys = features(k[:, : case.n - 1])
        sums, totals = keys.mT @ v[:, : case.n - 1], keys.sum(1)

        def step() -> Any:
            query, key = features(q[:, -1:]), features(k[:, -1:])
            own, total = torch.baddbmm(sums, key.mT, v[:, -1:]), totals + key[:, 0]
            return (query @ own) / (query @ total.unsqueeze(-1))

        return step

    if case.name == "attention-step":
        last = lambda result: check(result) if case.n <= 778 else True
        yield "PyTorch, state by hand", steps(), last, False
        return
    exact = torch.nn.functional.scaled_dot_product_attention
    run = bidirectional if case.name == "attention" else causal
    yield f"PyTorch in chunks of {CHUNK[case.name]}", run, check, False
    causal_case, shaped = is_causal(case), [x.unsqueeze(0) for x in (q, k, v)]
    yield "PyTorch exact", functools.partial(exact, *shaped, is_causal=causal_case), anything, case.n > LONG
    if "performer_pytorch" in modules:
        fast = importlib.import_module("performer_pytorch").FastAttention
        performer = fast(case.d, case.m, causal=causal_case)
        yield "performer-pytorch", lambda: performer(*shaped), anything, causal_case and case.n > LONG


def jax_attention(modules: dict[str, ModuleType], case: Any, arrays: Any, check: Any) -> Iterator[Run]:
    if case.name == "attention-step" or case.n % CHUNK[case.name]:
        return
    jax = modules["jax"]
    jnp = jax.numpy
    q, k, v, w = (jnp.asarray(a) for a in arrays)
    size, root = CHUNK[case.name], case.d**-0.25
    chunks = lambda x: x.reshape(case.heads, case.n // size, size, case.d).swapaxes(0, 1)
    start = (jnp.zeros((case.heads, case.m, case.d), jnp.float32), jnp.zeros((case.heads, case.m), jnp.float32))

    def features(x: Any) -> Any:
        x = x * root
        return jnp.exp(x @ w.T - (x * x).sum(-1, keepdims=True) / 2)

    def add(state: Any, keys: Any, values: Any) -> Any:
        return state[0] + jnp.einsum("hcm,hcd->hmd", keys, values), state[1] + keys.sum(1)

    @jax.jit
    def bidirectional(q: Any, k: Any, v: Any) -> Any:
        state, _ = jax.lax.scan(lambda s, x: (add(s, features(x[0]), x[1]), None), start, (chunks(k), chunks(v)))

        def of(queries: Any) -> Any:
            queries = features(queries)
            return (queries @ state[0]) / (queries @ state[1][..., None])

        return jax.lax.map(of, chunks(q)).swapaxes(0, 1).reshape(q.shape)

    @jax.jit
    def causal(q: Any, k: Any, v: Any) -> Any:
        def of(state: Any, x: Any) -> Any:
            queries, keys, values = features(x[0]), features(x[1]), x[2]
            scores = jnp.tril(queries @ keys.swapaxes(1, 2))
            sums = scores @ values + queries @ state[0]
            totals = scores.sum(-1, keepdims=True) + queries @ state[1][..., None]
            return add(state, keys, values), sums / totals

        _, out = jax.lax.scan(of, start, (chunks(q), chunks(k), chunks(v)))
        return out.swapaxes(0, 1).reshape(q.shape)

    run = bidirectional if case.name == "attention" else causal
    yield f"JAX in chunks of {size}", lambda: jax.block_until_ready(run(q, k, v)), check, False


def runs(modules: dict[str, ModuleType], case: Any) -> Iterator[Run]:
    """The peers that are installed."""
    arrays = inputs(modules["numpy"], case)
    check = right(modules["numpy"], case, arrays)
    makers = {"torch": torch_attention, "jax": jax_attention}
    if case.name.endswith("-backward"):
        makers = {"torch": torch_gradients}
    for name, make in makers.items():
        if name in modules:
            yield from make(modules, case, arrays, check)
