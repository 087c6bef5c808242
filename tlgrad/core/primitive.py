"""A primitive: an atomic operation together with all of its rules.

The rules are slots of one object, so a primitive is one expression (see `tlgrad.ops.define`).
Array data is positional, static parameters are keyword-only and hashable.

    impl      : *arrays, **params -> array            its meaning on NumPy storage
    abstract  : *avals, **params -> aval              shape and dtype of the result
    jvp       : primals, tangents, **params -> y, y_dot
    transpose : ct, *args, **params -> [ct or None]   args linear in are `Linear(aval)`
    batch     : args, axes, size, **params -> y, axis
    partial_eval : trace, args, **params -> outs      only for higher-order primitives
    lower     : what the kernel compiler reads; an intrinsic's name and class
"""
from __future__ import annotations

from typing import Any, Callable

from tlgrad.core.aval import Aval
from tlgrad.core.tensor import Tensor
from tlgrad.core.trace import Tracer, _current, leaked
from tlgrad.errors import DifferentiationError, UnsupportedError

#: every primitive by name; a name is used once
PRIMITIVES: dict[str, "Primitive"] = {}


class Linear:
    """Stands for an operand that a transposed operation is linear in; only its aval is known."""

    __slots__ = ("aval",)

    def __init__(self, aval: Aval):
        self.aval = aval

    def __repr__(self):
        return f"Linear({self.aval})"

    @property
    def data(self):
        """Asked for where a rule multiplies by what should be linear: there is no number."""
        raise DifferentiationError("the function is not linear: it multiplies or divides by a value that depends "
                                   f"on its argument ({self.aval}); use tl.vjp, which linearizes first")


class Primitive:
    """An atomic operation.  `multiple`: gives a list of results instead of one.

    `onto`: its transpose rule also takes ``onto=``, for each operand the cotangent that has arrived
    already or None, and gives totals: sums then run in the order of the program inlined.
    `eager`: what calls on tensors run, where that is not `impl`; the words must be the same.
    `nondiff` is the sentence that says why there is no derivative; such results carry zero
    tangents when `nondiff` is the empty string (steps, comparisons, integers).
    """

    def __init__(self, name: str, *, impl: Callable, abstract: Callable, jvp: Callable | None = None,
                 transpose: Callable | None = None, batch: Callable | None = None,
                 partial_eval: Callable | None = None, lower: Any = None, multiple: bool = False,
                 nondiff: str | None = None, kind: str = "general", taylor: Callable | None = None,
                 onto: bool = False, eager: Callable | None = None):
        if name in PRIMITIVES:
            raise ValueError(f"primitive {name} is defined twice")
        self.name, self.impl, self.abstract = name, impl, abstract
        self.jvp, self.transpose, self.batch = jvp, transpose, batch
        self.partial_eval, self.lower, self.multiple = partial_eval, lower, multiple
        self.nondiff, self.kind, self.taylor, self.onto = nondiff, kind, taylor, onto
        self.eager = eager or impl
        self._avals: dict = {}
        PRIMITIVES[name] = self

    def __repr__(self):
        return self.name

    def __reduce__(self):
        return _find, (self.name,)

    def bind(self, *args, **params):
        """Apply to values through the current trace; the only interception point."""
        return _current.get().process(self, args, params)

    def evaluate(self, args, params):
        """Apply to tensors at once, after the abstract rule has checked them.

        Raises LeakedTracerError when an operand is a dead tracer.
        """
        try:
            arrays = [a.data for a in args]
        except AttributeError:
            for a in args:
                if isinstance(a, Tracer):
                    raise leaked(a, f"in {self.name}") from None
            raise
        avals = self.avals_out([a.aval for a in args], params)      # refuses bad operands first
        out = self.eager(*arrays, **params)
        if self.multiple:
            return [Tensor.of(x, a) for x, a in zip(out, avals, strict=True)]
        return Tensor.of(out, avals)

    def avals_out(self, avals, params):
        """The abstract rule, remembered per (avals, params), except where params hold programs."""
        if self.multiple:
            return self.abstract(*avals, **params)
        key = (*avals, *params.items())
        try:
            found = self._avals.get(key)
        except TypeError:
            raise _unhashable(self, params) from None
        if found is None:
            found = self.abstract(*avals, **params)
            if len(self._avals) > 4096:
                self._avals.clear()
            self._avals[key] = found
        return found


def _find(name: str) -> Primitive:
    return PRIMITIVES[name]


def _unhashable(prim, params):
    for name, value in params.items():
        try:
            hash(value)
        except TypeError:
            return UnsupportedError(f"{prim.name}: the static parameter {name} must be hashable, "
                                    f"got {type(value).__name__}: {value!r}")
    return UnsupportedError(f"{prim.name}: a static parameter is not hashable")
