"""Which kernels the peers run and on how many threads: neither may be held back."""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import Any

# What keeps a library from its fastest kernels: users do not set these for speed.
HOLD_BACK = (
    "OPENBLAS_CORETYPE",
    "OPENBLAS_L2_SIZE",
    "MKL_ENABLE_INSTRUCTIONS",
    "MKL_CBWR",
    "DNNL_MAX_CPU_ISA",
    "ONEDNN_MAX_CPU_ISA",
    "ATEN_CPU_CAPABILITY",
    "NPY_DISABLE_CPU_FEATURES",
)


class Unfair(Exception):
    """Times that would not be comparable."""


def release() -> None:
    """Unsets what holds peers back, and says so; before any peer is imported."""
    for name in HOLD_BACK:
        value = os.environ.pop(name, None)
        if value is not None:
            print(f"{name}={value} is not passed on: it would slow a peer down", file=sys.stderr)


def pools() -> list[dict[str, Any]]:
    """The thread pools of all libraries that are loaded."""
    try:
        from threadpoolctl import threadpool_info
    except ImportError as error:
        raise Unfair("threads of the peers are not known: install threadpoolctl") from error
    return threadpool_info()


def check(found: list[tuple[str, int]], threads: int) -> None:
    """Refuses pools of another number of threads."""
    others = [f"{name} has {count}" for name, count in found if count != threads]
    if others:
        raise Unfair(f"this crate would run on {threads} of the threads, but {', '.join(others)}")


def kernels(modules: dict[str, ModuleType], threads: int) -> str:
    """What the peers compute with, a line for each library; refuses libraries with another number of threads."""
    if not modules:
        return ""
    lines, found = [], []
    for pool in pools():
        name = f"{pool['internal_api']} ({pool['prefix']})"
        found.append((name, pool["num_threads"]))
        facts = [pool.get(key) for key in ("version", "architecture", "threading_layer")]
        known = [str(fact) for fact in facts if fact]
        lines.append(f"{name}: {', '.join([*known, counted(pool['num_threads'])])}")
    if "torch" in modules:
        torch = modules["torch"]
        found.append(("PyTorch", torch.get_num_threads()))
        built = [line.strip(" -") for line in torch.__config__.show().splitlines()]
        products = [line for line in built if "oneAPI" in line or "MKL-DNN" in line]
        capability = f"kernels for {torch.backends.cpu.get_cpu_capability()}"
        facts = [capability, *products, counted(torch.get_num_threads())]
        lines.append(f"PyTorch: {', '.join(facts)}")
    check(found, threads)
    return "".join(f"{line}\n" for line in lines)


def counted(threads: int) -> str:
    return f"{threads} thread{'s' if threads > 1 else ''}"
