"""Elementary functions, the same words on every backend: `FUNCTIONS`, `evaluate`, `render`.

Each function is written once over `tlgrad.kernels.expr`. Results in binary32 and narrower are
evaluated in binary64 and rounded once: correctly rounded for every one-argument function, which an
exhaustive run over all inputs shows (``python3 -m benchmarks elementary --exhaustive``). Results
in binary64 have the bound in ``FUNCTIONS[name].ulps``.

To call a function inside a generated kernel, give `render` Values of the kernel's emitter:

>>> from tlgrad.kernels.expr import Value
>>> from tlgrad.kernels.expr.llvm import LLVM
>>> emitter = LLVM(lanes=8)      # or one that shares the kernel's lines and names
>>> y = render("exp", Value(emitter, "%x", "f32"))    # %x is a <8 x float>
>>> y.type, y.handle == emitter.lines[-1].split()[0]
('f32', True)

Then ``emitter.block`` is the label of the block that the next line goes to (exceptional arguments
branch), ``emitter.declarations`` are lines for the module, and ``emitter.externals`` go to
`tlgrad.kernels.expr.llvm.link` before the object is loaded. `CText` works alike and gives C++ and
CUDA text.
"""
from .evaluation import evaluate, meaning
from .registry import FUNCTIONS, Elementary, has_pairs, render, render_abreast, render_half, unrounded

__all__ = ["FUNCTIONS", "Elementary", "evaluate", "has_pairs", "meaning", "render", "render_abreast",
           "render_half", "unrounded"]
