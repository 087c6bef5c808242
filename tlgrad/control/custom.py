"""Derivatives that the user states: `custom_jvp` and `custom_vjp`.

    f : a -> b      with      rule : (a, T a) -> (b, T b)
    f : a -> b      with      fwd : a -> (b, residuals),   bwd : residuals, T b -> T a

Where programs are being written down, function and rule are written down at once, so that they
may close over traced values, which become operands; elsewhere they are called as they are.  A
value that is closed over has no rule: differentiating with respect to it is an error.
"""
from __future__ import annotations

import functools
import inspect
from contextvars import ContextVar
from typing import Any, Callable, NamedTuple, Sequence

from tlgrad.control.rules import (BackwardRule, ForwardRule, PythonFunction, WrittenFunction, custom_p,
                                  inexact, zero_cotangent)
from tlgrad.control.staging import (Staged, flatten_values, join_captured, result_leaves, split_list,
                                    stage_with_constants, staging)
from tlgrad.core import tree
from tlgrad.core.source import describe_callable
from tlgrad.core.tensor import as_value
from tlgrad.core.trace import current_trace
from tlgrad.errors import ArgumentError, DifferentiationError, OutputError
from tlgrad.ops.promote import as_dtype_value
from tlgrad.transforms.jvp import JVPTrace


class Call(NamedTuple):
    """One call: positional arguments split into those with derivatives, flat, and the others."""
    values: list
    treedef: tree.TreeDef
    fixed: dict[int, Any]

    def arguments(self, values) -> list:
        """All positional arguments, in order."""
        it = iter(tree.unflatten(self.treedef, values))
        n = len(self.treedef.children) + len(self.fixed)
        return [self.fixed[k] if k in self.fixed else next(it) for k in range(n)]


class _Custom:
    """What both decorators share: the signature, and the choice between calling and binding."""

    kind = ""

    def __init__(self, fun: Callable, nondiff_argnums: int | Sequence[int] = ()):
        if not callable(fun):
            raise ArgumentError(f"{self.kind} takes a callable, got {type(fun).__name__}")
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.nondiff = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args, **kwargs):
        args = self._positional(args, kwargs)
        self._check_rule()
        if not staging() and not differentiating():
            return self.fun(*args)
        outside = [k for k in self.nondiff if not -len(args) <= k < len(args)]
        if outside:
            raise ArgumentError(f"{self.kind}: nondiff_argnums has {outside[0]}, but "
                                f"{describe_callable(self.fun)} was called with {len(args)} arguments")
        fixed = {k % len(args): args[k] for k in self.nondiff}
        values, treedef = flatten_values(tuple(a for k, a in enumerate(args) if k not in fixed),
                                         f"an argument of {describe_callable(self.fun)}")
        call = Call(values, treedef, fixed)
        knot = _find_knot(self, call)
        if knot is None:
            return self._bind(call)
        knot.met.append(True)
        if not knot.params:
            return self.fun(*args)
        return tree.unflatten(knot.out[0], custom_p.bind(*knot.captured, *values, **knot.params))

    def _positional(self, args, kwargs) -> tuple:
        try:
            signature = inspect.signature(self.fun)
        except (TypeError, ValueError):
            return args
        bound = signature.bind(*args, **kwargs)
        if bound.kwargs:
            raise ArgumentError(f"{self.kind}: {describe_callable(self.fun)} takes keyword-only arguments "
                                f"({', '.join(bound.kwargs)}); a rule is given arguments by position, so make "
                                "them positional")
        bound.apply_defaults()
        return bound.args

    def _flat(self, call: Call, f: Callable, store: list) -> Callable:
        """`f(*arguments)` on flat values; the structure of its result goes to `store`."""
        def flat(*values):
            leaves, treedef = result_leaves(f(*call.arguments(values)), f)
            store[:] = [treedef, [y.aval for y in leaves]]
            return leaves
        return flat

    def _check_rule(self):
        raise NotImplementedError

    def _bind(self, call: Call):
        raise NotImplementedError


def differentiating() -> bool:
    """True when some running trace carries tangents."""
    trace = current_trace()
    while trace is not None:
        if isinstance(trace, JVPTrace):
            return True
        trace = trace.parent
    return False


class Knot(NamedTuple):
    """A custom function that is being written down; its rule may apply the function itself."""
    custom: "_Custom"
    call: Call
    out: list                   # structure and avals of the result, once known
    met: list                   # not empty when the rule did apply the function
    captured: list              # operands of the inner application
    params: dict                # and its parameters; empty while captured values are looked for


_knots: ContextVar[tuple[Knot, ...]] = ContextVar("tlgrad_custom_knots", default=())


def _find_knot(custom, call: Call) -> Knot | None:
    def kind(c):
        return c.treedef, [x.aval.strong() for x in c.values]
    return next((k for k in _knots.get() if k.custom is custom and kind(k.call) == kind(call)), None)


def _written(knot: Knot, functions) -> list[Staged]:
    """Each (flat function, avals) staged in turn; avals may be a callable of what came before."""
    token = _knots.set((*_knots.get(), knot))
    try:
        return [stage_with_constants(f, avals() if callable(avals) else avals) for f, avals in functions]
    finally:
        _knots.reset(token)


def _write_down(knot: Knot, functions, make_rule: Callable) -> tuple[list, dict]:
    """Captured values and parameters of `custom_p`; functions[0] is the function, the rest its rule.

    Where the rule applies the function itself, it is written a second time, with that inner
    application bound to the rule that is being written.
    """
    what = describe_callable(knot.custom.fun)

    def as_functions(jaxprs):
        return [WrittenFunction(j, what) for j in jaxprs]
    staged = _written(knot, functions)
    captured, jaxprs = join_captured(staged)
    fun, *parts = as_functions(jaxprs)
    rule = make_rule(*parts)
    params = {"fun": fun, "rule": rule, "jaxpr": fun.jaxpr, "n_captured": len(captured)}
    if knot.met:
        again = _written(knot._replace(captured=captured, params=params), functions[1:])
        rule.restate(*as_functions(join_captured(again, captured)[1]))
    return captured, params


class custom_jvp(_Custom):
    """A function with a forward rule of its own; reverse mode transposes the rule.

    Decorate, then state the rule with ``@f.defjvp``: ``rule(primals, tangents)`` gives the
    result and its tangent, which must be linear in the tangents.  Arguments and results are
    pytrees; keyword arguments are put in their positions.  `nondiff_argnums` are positions of
    arguments that have no derivative (any Python value, also traced ones); the rule gets them
    first: ``rule(*nondiff, primals, tangents)``.

    Function and rule may close over any value; a derivative with respect to one of those raises
    DifferentiationError.

    >>> @custom_jvp
    ... def log1pexp(x): return tl.log(1 + tl.exp(x))
    >>> @log1pexp.defjvp
    ... def rule(primals, tangents):
    ...     (x,), (x_dot,) = primals, tangents
    ...     return log1pexp(x), x_dot / (1 + tl.exp(-x))
    >>> float(tl.grad(log1pexp)(0.0))
    0.5
    """

    kind = "custom_jvp"
    rule: Callable | None = None

    def defjvp(self, rule: Callable) -> Callable:
        """State the rule; returns it, so that it works as a decorator."""
        self.rule = rule
        return rule

    def _check_rule(self):
        if self.rule is None:
            raise ArgumentError(f"custom_jvp: {describe_callable(self.fun)} has no rule; "
                                f"write @{self.fun.__name__}.defjvp above rule(primals, tangents)")

    def _bind(self, call: Call):
        out: list = []
        what = describe_callable(self.fun)
        fun, rule = self._flat(call, self.fun, out), self._flat_rule(call, out)
        avals = [x.aval for x in call.values]
        dots = [a.strong() for a, k in zip(avals, inexact(avals)) if k]
        if staging():
            captured, params = _write_down(Knot(self, call, out, [], [], {}),
                                           [(fun, avals), (rule, [*avals, *dots])], ForwardRule)
        else:
            captured, params = [], {"fun": PythonFunction(fun, what), "jaxpr": None, "n_captured": 0,
                                    "rule": ForwardRule(PythonFunction(rule, what))}
        outs = custom_p.bind(*captured, *call.values, **params)
        return tree.unflatten(out[0], outs)

    def _flat_rule(self, call: Call, out: list):
        nondiff = [call.fixed[k] for k in sorted(call.fixed)]

        def flat(*values):
            n = len(call.values)
            primals = tree.unflatten(call.treedef, values[:n])
            it = iter(values[n:])
            dense = [next(it) if k else zero_cotangent(x.aval)
                     for x, k in zip(values, inexact([x.aval for x in values[:n]]))]
            pair = self.rule(*nondiff, primals, tree.unflatten(call.treedef, dense))
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise OutputError(f"{describe_callable(self.rule)} must return (result, tangent), "
                                  f"got {type(pair).__name__}")
            outs, treedef = result_leaves(pair[0], self.rule)
            out[:] = [treedef, [y.aval for y in outs]]
            return [*outs, *self._tangents(pair[1], outs, treedef)]
        return flat

    def _tangents(self, out_dot, outs, treedef):
        leaves = tree.flatten_as(treedef, out_dot, f"the tangent that {describe_callable(self.rule)} returned")
        dots = []
        for path, y, t in zip(tree.paths(treedef, "result"), outs, leaves):
            if inexact([y.aval])[0]:
                dots.append(_fitted(as_value(t, "a tangent"), y.aval, describe_callable(self.rule),
                                    f"the tangent of {path}"))
        return dots


def _fitted(t, aval, rule, what):
    if t.shape != aval.shape or not t.aval.weak and t.dtype is not aval.dtype:
        raise DifferentiationError(f"{rule}: {what} must be {aval.strong()}, got {t.aval}")
    return as_dtype_value(t, aval.dtype)


class custom_vjp(_Custom):
    """A function with a reverse rule of its own; forward mode transposes the rule.

    Decorate, then state the rule with ``f.defvjp(fwd, bwd)``: ``fwd(*args)`` gives the result
    and residuals, a pytree; ``bwd(residuals, cotangent)`` gives a tuple with one cotangent an
    argument (None for zero).  With `nondiff_argnums`, `fwd` takes all arguments and `bwd` gets
    those first: ``bwd(*nondiff, residuals, cotangent)``.

    Function and rule may close over any value; a derivative with respect to one of those raises
    DifferentiationError.  So does forward mode when `bwd` is not linear in the cotangent.

    >>> @custom_vjp
    ... def clipped(x): return x
    >>> clipped.defvjp(lambda x: (x, None), lambda _, ct: (tl.clip(ct, -1.0, 1.0),))
    >>> float(tl.grad(lambda x: 5 * clipped(x))(2.0))
    1.0
    """

    kind = "custom_vjp"
    fwd: Callable | None = None
    bwd: Callable | None = None

    def defvjp(self, fwd: Callable, bwd: Callable) -> None:
        """State the rule."""
        self.fwd, self.bwd = fwd, bwd

    def _check_rule(self):
        if self.fwd is None:
            raise ArgumentError(f"custom_vjp: {describe_callable(self.fun)} has no rule; "
                                f"write {self.fun.__name__}.defvjp(fwd, bwd)")

    def _bind(self, call: Call):
        what, out, res = describe_callable(self.fun), [], []
        avals = [x.aval for x in call.values]
        fun, fwd = self._flat(call, self.fun, out), self._flat_fwd(call, out, res)
        bwd = self._flat_bwd(call, out, res, avals)

        def make_rule(forward, back):
            return BackwardRule(forward, back, lambda: len(out[1]))

        def later():
            return [*res[1], *[a.strong() for a, k in zip(out[1], inexact(out[1])) if k]]
        if staging():
            captured, params = _write_down(Knot(self, call, out, [], [], {}),
                                           [(fun, avals), (fwd, avals), (bwd, later)], make_rule)
        else:
            f, forward, back = (PythonFunction(g, what) for g in (fun, fwd, bwd))
            captured, params = [], {"fun": f, "jaxpr": None, "n_captured": 0, "rule": make_rule(forward, back)}
        outs = custom_p.bind(*captured, *call.values, **params)
        return tree.unflatten(out[0], outs)

    def _flat_fwd(self, call, out, res):
        def flat(*values):
            pair = self.fwd(*call.arguments(values))
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise OutputError(f"{describe_callable(self.fwd)} must return (result, residuals), "
                                  f"got {type(pair).__name__}")
            leaves, treedef = result_leaves(pair[0], self.fwd)
            held, held_tree = flatten_values(pair[1], "a residual")
            out[:] = [treedef, [y.aval for y in leaves]]
            res[:] = [held_tree, [x.aval for x in held]]
            return [*leaves, *held]
        return flat

    def _flat_bwd(self, call, out, res, avals):
        nondiff = [call.fixed[k] for k in sorted(call.fixed)]
        rule = describe_callable(self.bwd)

        def flat(*values):
            held, cts = split_list(values, len(res[1]))
            it = iter(cts)
            cts = [next(it) if k else zero_cotangent(a) for a, k in zip(out[1], inexact(out[1]))]
            found = self.bwd(*nondiff, tree.unflatten(res[0], held), tree.unflatten(out[0], cts))
            n = len(call.treedef.children)
            if not isinstance(found, (tuple, list)) or len(found) != n:
                got = f"{len(found)}" if isinstance(found, (tuple, list)) else type(found).__name__
                raise OutputError(f"{rule} must return a tuple of {n} cotangents, one an argument, got {got}")
            return self._cotangents(found, call, values, avals, rule)
        return flat

    def _cotangents(self, found, call, values, avals, rule):
        leaves = []
        for k, (ct, child) in enumerate(zip(found, call.treedef.children)):
            if ct is None:
                leaves += [None] * child.n_leaves
            else:
                leaves += tree.flatten_as(child, ct, f"cotangent {k} that {rule} returned")
        cts = []
        for path, ct, a in zip(tree.paths(call.treedef, "argument"), leaves, avals):
            if inexact([a])[0]:
                cts.append(zero_cotangent(a) if ct is None else
                           _fitted(as_value(ct, "a cotangent"), a, rule, f"the cotangent of {path}"))
        return cts
