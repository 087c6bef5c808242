"""The CPU backend: kernels compiled through llvmlite (direct engine) or numba.njit (njit engine)."""
from __future__ import annotations

import importlib.util

from tlgrad.backends.numba_cpu import buffers, contraction, copies, kernels, launch, native
from tlgrad.backends.numba_cpu.plan import Plan
from tlgrad.core.execute import BackendMissing
from tlgrad.kernels import cache
from tlgrad.kernels.elementary import FUNCTIONS, evaluation


class NumbaCPU:
    """Runs jaxprs as compiled kernels, with the words of the reference."""

    name = "cpu"

    def execute(self, jaxpr, arrays):
        """Run a jaxpr: arrays in, arrays out.  Compiled once per jaxpr."""
        plan = jaxpr.memo.get("cpu")
        if plan is None:
            plan = jaxpr.memo["cpu"] = Plan(jaxpr)
        return plan.run(*arrays)

    def contiguous(self, array):
        """The array itself if it is row-major, else a copy that is."""
        return copies.contiguous(array)

    def clear_caches(self, disk: bool = False):
        """Forget kernels and pooled memory; with `disk`, the entries on disk too."""
        kernels.clear()
        buffers.pool.clear()
        if disk:
            cache.disk.clear()

    def warmup(self):
        """Compile what programs share; gives the name of each kernel when it is ready."""
        native.launcher()
        yield "launcher"
        for type in ("f32", "f64"):
            for order in ("ordered", "fused"):
                contraction.tile_kernel(type, order)
                yield f"contraction {type} {order}"
        for kind in ("run", "square"):
            for size in (4, 8):
                copies.copy_kernel(kind, size)
                yield f"copy {kind} {size}"
        for name in FUNCTIONS:
            for dtype in ("float32", "float64"):
                evaluation.compiled(name, dtype)
            yield name


def load() -> NumbaCPU:
    """The backend; BackendMissing when llvmlite is not installed, or on another kind of Python."""
    if not launch.supported():
        raise BackendMissing("compiled kernels need CPython with the GIL on a 64-bit little-endian machine")
    if importlib.util.find_spec("llvmlite") is None:
        raise BackendMissing("the compiler needs llvmlite, which comes with numba")
    return NumbaCPU()
