"""Values defined by an equation: fixed points, roots, minimisers, with implicit derivatives.

    z = f(z, a)      z' = (1 - f_z)^-1 f_a a'
    0 = g(z, a)      z' = - g_z^-1 g_a a'

(implicit function theorem).  The solver is not differentiated; the rule is stated on the
solution, so derivatives of any order and mode follow.  A solution whose residual is above the
tolerance is an error, never a wrong derivative.  The matrix f_z is formed, and solved by
`ops.factor.solve` (LAPACK: outside the one-result rule, except for one unknown).
"""
from __future__ import annotations

from typing import Any, Callable, NamedTuple, Sequence

import numpy as np

from tlgrad.control.custom import custom_jvp
from tlgrad.control.staging import Staged, flatten_values, stage_tree
from tlgrad.control.while_loop import while_loop
from tlgrad.core import dtypes, tree
from tlgrad.core.aval import Aval, Zero
from tlgrad.core.jaxpr import eval_jaxpr
from tlgrad.core.primitive import Linear, Primitive
from tlgrad.core.source import describe_callable
from tlgrad.core.tensor import as_value
from tlgrad.core.trace import Value
from tlgrad.errors import ArgumentError, CarryError, ConvergenceError, DTypeError
from tlgrad.ops.arithmetic import abs_, div, neg, sub
from tlgrad.ops.convert import convert
from tlgrad.ops.define import documented, instantiate
from tlgrad.ops.factor import solve
from tlgrad.ops.index import mapped
from tlgrad.ops.layout import reshape, transpose
from tlgrad.ops.logic import and_, eq, is_finite, le, lt, maximum, not_
from tlgrad.ops.promote import as_dtype_value
from tlgrad.ops.reduce import reduce_max
from tlgrad.ops.shape import concatenate, iota, slice_axis
from tlgrad.ops.stop import fixed
from tlgrad.transforms.batch import batch_flat
from tlgrad.transforms.jvp import jvp_flat
from tlgrad.transforms.partial_eval import linearize_flat
from tlgrad.transforms.transpose import backward


class Report(NamedTuple):
    """How a solve ended: the largest entry of the residual, and the turns it took."""
    residual: Value
    steps: Value


# ---- a value that is refused when its residual is above the tolerance ----

def _checked_impl(z, residual, steps, *, tolerance, what):
    bad = ~(residual <= tolerance)
    if np.any(bad):
        place = tuple(int(i) for i in np.argwhere(np.atleast_1d(bad))[0])
        lane = f" in lane {place[0]}" if np.ndim(bad) else ""
        raise ConvergenceError(
            f"{what} did not converge{lane}: the residual is {_at(residual, place):.3g} after "
            f"{_at(steps, place):.0f} steps, the tolerance {tolerance:g}. "
            "Start closer, allow more steps (max_steps=), or ask for less (tolerance=).")
    return z


def _at(array, place) -> float:
    return float(np.atleast_1d(array)[place])


def _checked_batch(args, axes, size, **params):
    z, residual, steps = (mapped(x, k, size) for x, k in zip(args, axes))
    return checked_p.bind(z, residual, steps, **params), 0


checked_p = documented(
    Primitive("checked", impl=_checked_impl, abstract=lambda z, residual, steps, *, tolerance, what: z,
              jvp=lambda primals, tangents, **params: (checked_p.bind(*primals, **params), tangents[0]),
              batch=_checked_batch),
    "z, where the residual is within the tolerance; an error elsewhere.", "z residual steps")


# ---- flat vectors ----

class Vector(NamedTuple):
    """A list of arrays seen as one vector."""
    avals: tuple[Aval, ...]

    @property
    def size(self) -> int:
        """Entries in all."""
        return sum(a.size for a in self.avals)

    def join(self, values) -> Value:
        """One vector."""
        flat = [reshape.bind(x, shape=(x.aval.size,)) for x in values]
        return flat[0] if len(flat) == 1 else concatenate.bind(*flat, axis=0)

    def split(self, vector) -> list[Value]:
        """The arrays of a vector."""
        out, start = [], 0
        for a in self.avals:
            part = slice_axis(vector, 0, start, start + a.size)
            out.append(reshape.bind(part, shape=a.shape))
            start += a.size
        return out


def unit_vectors(n: int, dtype) -> Value:
    """The identity matrix."""
    rows, columns = (iota.bind(shape=(n, n), axis=k, dtype=dtypes.int64) for k in (0, 1))
    return convert(eq(rows, columns), dtype)


def jacobian(f: Callable, z: Value) -> Value:
    """Matrix of d f_i / d z_j of a function of one vector."""
    n = z.shape[0]

    def column(e):
        return [instantiate(jvp_flat(lambda v: [f(v)], [z], [e])[1][0])]
    (columns,), (axis,) = batch_flat(column, [unit_vectors(n, z.dtype)], [0], n)
    return transpose.bind(mapped(columns, axis, n), perm=(1, 0))


def gradient(f: Callable, z: Value) -> Value:
    """Gradient of a function of one vector that gives a value of shape ()."""
    (y,), lin = linearize_flat(lambda v: [f(v)], [z])
    if lin.out_zero[0] is not None:
        return instantiate(Zero(z.aval.strong()))
    one = as_value(np.ones((), y.dtype.storage))
    return instantiate(backward(lin.jaxpr, [*lin.residuals, Linear(z.aval)], [one])[0])


def solve_vector(a: Value, b: Value) -> Value:
    """x with a x = b; one unknown is a division."""
    if b.shape == (1,):
        return div(b, reshape.bind(a, shape=(1,)))
    return reshape.bind(solve.bind(a, reshape.bind(b, shape=(*b.shape, 1))), shape=b.shape)


def relative_size(change: Value, z: Value) -> Value:
    """The largest absolute entry of `change`, in units of that of z where it exceeds 1."""
    most, scale = (reduce_max.bind(abs_(v), axes=(0,)) for v in (change, z))
    return div(most, maximum(scale, 1.0))


# ---- what the three solvers share ----

class Problem:
    """An equation in a vector z and parameters a: those given, and traced ones closed over."""

    def __init__(self, name: str, f: Callable, start: Any, args, kwargs, tolerance, max_steps):
        if not callable(f):
            raise ArgumentError(f"{name} takes a callable first, got {type(f).__name__}")
        self.name, self.f, self.max_steps = name, f, int(max_steps)
        self.what = f"{name} of {describe_callable(f)}"
        start, self.treedef = flatten_values(start, f"the start of {name}")
        params, params_tree = flatten_values((args, kwargs), f"an argument of {name}")
        dtype = _one_dtype(start, name)
        self.start = [as_dtype_value(x, dtype) for x in start]
        self.vector = Vector(tuple(x.aval for x in self.start))
        self.tolerance = float(tolerance if tolerance is not None else 16 * float(_epsilon(dtype)))
        avals = [*self.vector.avals, *[x.aval for x in params]]
        call = lambda z, rest: f(z, *rest[0], **rest[1])
        self.staged: Staged = stage_tree(call, [self.treedef, params_tree], avals)
        self.params = [*self.staged.captured, *params]
        self.n_captured = len(self.staged.captured)

    def evaluate(self, z: Value, params: Sequence[Value]) -> list[Value]:
        """f(z, a) on the vector z."""
        captured, given = params[:self.n_captured], params[self.n_captured:]
        return eval_jaxpr(self.staged.jaxpr, [*captured, *self.vector.split(z), *given])

    def same_structure(self):
        """Raises CarryError unless f gives what it takes."""
        out = self.staged.jaxpr.out_avals
        if self.staged.out_tree != self.treedef or [a.shape for a in out] != [a.shape for a in self.vector.avals]:
            paths = tree.paths(self.staged.out_tree, "result")
            raise CarryError(f"{self.what} must return values of the structure and shapes of its first argument: "
                             f"{list(self.vector.avals)} in, {dict(zip(paths, out))} out")

    def vector_of(self, z, params) -> Value:
        """f(z, a) as a vector in the dtype of z."""
        return self.vector.join([as_dtype_value(y, z.dtype) for y in self.evaluate(z, params)])

    def run(self, advance: Callable, residual_of: Callable, slope: Callable, report: bool) -> Any:
        """Iterate `advance` until the residual is within the tolerance; attach the rule `slope`.

        advance(z, a) -> z;   residual_of(z, a) -> number;   slope(z, a, a_dot) -> z_dot
        """
        start = self.vector.join([fixed(x) for x in self.start])
        what, tolerance, limit = self.what, self.tolerance, self.max_steps

        def search(*params):
            def going(state):
                z, r, k = state
                return and_(and_(not_(le(r, tolerance)), is_finite(r)), lt(k, limit))

            def turn(state):
                z = advance(state[0], params)
                return z, residual_of(z, params), state[2] + 1
            zero = as_value(np.int64(0))
            z, r, k = while_loop(going, turn, (start, residual_of(start, params), zero))
            return checked_p.bind(z, r, k, tolerance=tolerance, what=what), r, k
        solution = custom_jvp(search)

        @solution.defjvp
        def rule(params, tangents):
            z, r, k = solution(*params)
            return (z, r, k), (slope(z, params, tangents), instantiate(Zero(r.aval)), instantiate(Zero(k.aval)))
        z, r, k = solution(*self.params)
        out = tree.unflatten(self.treedef, self.vector.split(z))
        return (out, Report(fixed(r), k)) if report else out


def _one_dtype(start, name):
    found = {dtypes.default_weak("f") if x.aval.weak and x.dtype.kind in "iub" else x.dtype for x in start}
    if len(found) != 1 or found.copy().pop().kind != "f":
        raise DTypeError(f"{name}: the start must be floats of one dtype, got "
                         f"{', '.join(str(x.aval) for x in start) or 'nothing'}")
    return found.pop()


def _epsilon(dtype) -> float:
    return 2.0 ** -8 if dtype.software else np.finfo(dtype.storage).eps


def push(f: Callable, params, tangents) -> Value:
    """Derivative of a function of the parameters, in a direction."""
    inexact = [t if dtypes.is_inexact(p.dtype) else Zero(p.aval) for p, t in zip(params, tangents)]
    return instantiate(jvp_flat(lambda *a: [f(a)], list(params), inexact)[1][0])


# ---- the solvers ----

def fixed_point(f: Callable, start: Any, *args, tolerance: float | None = None, max_steps: int = 10_000,
                report: bool = False, **kwargs) -> Any:
    """z with ``z = f(z, *args, **kwargs)``, found by repeating f from `start`.

    z is a pytree of floats of one dtype.  The residual is the largest entry of |f(z) - z|, in
    units of max(1, |z|); it must come within `tolerance` (default 16 units of the last place of
    1) in `max_steps` turns, or ConvergenceError names it.  `report`: also give `Report(residual, steps)`.

    Derivatives with respect to arguments and closed-over values are implicit: those of the
    fixed point itself, whatever way it was found; `start` has none.

    >>> z = fixed_point(lambda z, p: tl.cos(p * z), 1.0, 1.0)
    >>> abs(float(z) - 0.7390851332151607) < 1e-14
    True
    """
    problem = Problem("fixed_point", f, start, args, kwargs, tolerance, max_steps)
    problem.same_structure()

    def slope(z, params, tangents):
        matrix = sub(unit_vectors(z.shape[0], z.dtype), jacobian(lambda v: problem.vector_of(v, params), z))
        return solve_vector(matrix, push(lambda a: problem.vector_of(z, a), params, tangents))
    return problem.run(problem.vector_of, lambda z, params: relative_size(sub(problem.vector_of(z, params), z), z),
                       slope, report)


def root(g: Callable, start: Any, *args, tolerance: float | None = None, max_steps: int = 100,
         report: bool = False, **kwargs) -> Any:
    """z with ``g(z, *args, **kwargs) = 0``, found by Newton's method from `start`.

    As `fixed_point`; the residual is the next Newton step, in units of max(1, |z|).  Raises
    SingularMatrixError where the derivative of g has no inverse.

    >>> round(float(root(lambda z, a: z * z - a, 1.0, 2.0)), 12)
    1.414213562373
    """
    problem = Problem("root", g, start, args, kwargs, tolerance, max_steps)
    problem.same_structure()

    def step(z, params):
        return solve_vector(jacobian(lambda v: problem.vector_of(v, params), z), problem.vector_of(z, params))

    def slope(z, params, tangents):
        pushed = push(lambda a: problem.vector_of(z, a), params, tangents)
        return neg(solve_vector(jacobian(lambda v: problem.vector_of(v, params), z), pushed))
    return problem.run(lambda z, params: sub(z, step(z, params)),
                       lambda z, params: relative_size(step(z, params), z), slope, report)
