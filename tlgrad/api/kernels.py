"""`kernels`: what a call launches, as text and as code that a user can take away."""
from __future__ import annotations

import functools
from typing import Callable

from tlgrad.backends.numba_cpu.kernels import llvm_text
from tlgrad.kernels.machine import host
from tlgrad.backends.numba_cpu.plan import Plan
from tlgrad.api.inspecting import make_jaxpr
from tlgrad.core.source import check_callable
from tlgrad.kernels.later import Later

njit = Later("tlgrad.backends.numba_cpu.njit")
python_text = Later("tlgrad.codegen.python_text")
picture = Later("tlgrad.api.picture")


class KernelView:
    """One kernel: `text` (Kernel IR), `llvm`, `assembly`, `python`, and `to_numba()`."""

    def __init__(self, lowered, compiled):
        self.lowered, self.name, self.text = lowered, compiled.name, compiled.text

    @property
    def llvm(self) -> str:
        """LLVM IR of the direct engine for this machine."""
        return llvm_text(self.lowered.kernel, self.name, host())[0]

    @property
    def assembly(self) -> str:
        """Machine code as assembly text."""
        return host().assembly(self.llvm)

    @property
    def python(self) -> str:
        """Plain Python source of the same loops."""
        return python_text.python_text(self.lowered.kernel)

    def to_numba(self, fixed: bool = True):
        """The loops compiled by numba.njit, a function of (inputs..., outputs..., sizes...).

        The numbers of the program are constants of it; with ``fixed=False`` they are arguments, before
        the sizes.  Arrays of float16 are passed as uint16.  Raises UnsupportedError for float16 on a CPU
        that does not convert it.
        """
        return njit.to_numba(self.lowered.kernel, numbers=njit.numbers_of(self.lowered) if fixed else None)

    def __repr__(self):
        return self.text


class Kernels(tuple):
    """The kernels of a call in order; `steps` is the Python text that runs them.

    A notebook shows them as a picture (SVG): what is launched, and what each launch reads.
    """

    steps: str
    plan: Plan

    def __repr__(self):
        return "\n\n".join([*map(repr, self), self.steps])

    def _repr_svg_(self):
        return picture.draw(self.plan)


def kernels(f: Callable) -> Callable:
    """The function that gives what ``tl.run(f)`` would launch on the CPU for its arguments.

    >>> tl.kernels(lambda x: x * x + 1.0)(tl.tensor([1.0, 2.0]))[0]
    kernel nest=lanes rank=1
      input v0:f64 @ lanes
      literal v1:f64!
      v2:f64 = mul v0 v0
      v3:f64 = add v2 v1
      store v3
    """
    check_callable(f, "kernels")

    @functools.wraps(f)
    def shown(*args, **kwargs) -> Kernels:
        plan = Plan(make_jaxpr(f)(*args, **kwargs).jaxpr)
        out = Kernels(KernelView(lowered, compiled) for lowered, compiled in plan.kernels)
        out.steps, out.plan = plan.source, plan
        return out
    return shown
