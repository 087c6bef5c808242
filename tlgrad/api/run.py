"""`run`: trace a callable once per kind of arguments, and execute it on a device.

    run(f)(x) = unflatten . execute(device) . stage(f) . flatten

A trace is kept per (structure, avals, static values, order) and used while what the function
captured is unchanged (`core.guard`).
"""
from __future__ import annotations

import functools
from collections import OrderedDict
from typing import Any, Callable, NamedTuple

from tlgrad.api.calling import FlatFunction, flatten_values, named_in_module, signature
from tlgrad.api.donate import donated_leaves, give_up
from tlgrad.api.fast import REPEATS, NativelyCalled, fast_call, native_call
from tlgrad.api.record import Recordable, record
from tlgrad.control.call import call
from tlgrad.core import counters, execute, tree
from tlgrad.core.guard import Guard
from tlgrad.core.jaxpr import Jaxpr
from tlgrad.core.source import check_callable, describe_callable
from tlgrad.core.tensor import Tensor
from tlgrad.core.trace import EVAL, current_trace
from tlgrad.errors import ArgumentError, RecordError
from tlgrad.ops import orders
from tlgrad.ops.convert import convert
from tlgrad.passes import precision
from tlgrad.transforms.stage import StageTrace, stage

#: traces kept for one function; the least recently used is dropped
MAX_TRACES = 256


class Options(NamedTuple):
    """How a call is run: the device, the order of sums, the format floats are taken in."""
    device: str = "cpu"
    order: str | None = None
    dtype: Any = None
    donate: tuple = ()


class Plan(NamedTuple):
    """A traced call: program, captured values, structure of the result, and its guard."""
    jaxpr: Jaxpr
    consts: list
    out_tree: tree.TreeDef
    guard: Guard
    weak: list[bool]


@functools.cache
def positional(n: int) -> tree.TreeDef:
    """The structure of (args, kwargs) with n leaves in args."""
    return tree.structure(((0,) * n, {}))


class Run(NativelyCalled, Recordable):
    """A callable that traces, compiles and executes `f`.  Made by `tl.run`."""

    def __init__(self, f: Callable, options: Options, static: tuple = ()):
        check_callable(f, "run")
        _check_names(f, "static", static)
        _check_names(f, "donate", options.donate)
        self.options, self.static = options, static
        self.plans: OrderedDict[Any, Plan] = OrderedDict()
        functools.update_wrapper(self, f, updated=())
        self.f = f
        self.origin = counters.Origin(describe_callable(f))
        #: the short way for calls like the last ones, and (plan, how often in a row) on the long way
        self.fast: Callable | None = None
        self.recent: tuple[Plan | None, int] = (None, 0)
        execute.backend(options.device)            # an unknown device is an error here, not later

    def __call__(self, *args, **kwargs):
        if self.fast is not None and not kwargs and (out := self.fast(*args)) is not NotImplemented:
            return out
        if not kwargs and not self.static and not self.options.donate and current_trace() is EVAL:
            avals = [x.aval for x in args if type(x) is Tensor]
            if len(avals) == len(args):                 # plain tensors: the structure is the count
                plan = self._plan(args, positional(len(args)), avals, (), ())
                out = self._execute(plan, args)
                self._remember(plan, avals)
                return out
        kwargs, static = self._take_static(args, kwargs)
        args, static_args = self._static_args(args)
        leaves, in_tree, _ = flatten_values((args, kwargs), ["the arguments", "the keyword arguments"])
        if current_trace() is not EVAL or not all(type(x) is Tensor for x in leaves):
            return self._inside(leaves, in_tree, static, static_args)
        avals = [x.aval for x in leaves]
        plan = self._plan(leaves, in_tree, avals, static, static_args)
        return self._execute(plan, leaves, self._donated(plan, in_tree, static_args))

    def _donated(self, plan, in_tree, static_args) -> tuple[int, ...]:
        """Numbers of the donated leaves; the compiled program is told of them."""
        if not self.options.donate or self.options.device != "cpu" or self.options.dtype is not None:
            return ()
        sig = signature(self.f)
        numbers = donated_leaves(self.options.donate, list(sig.parameters) if sig else [], in_tree,
                                 [place for place, _ in static_args])
        plan.jaxpr.memo["donated"] = {k + len(plan.consts) for k in numbers}
        return numbers

    def _execute(self, plan, leaves, donated=()):
        if self.options.dtype is not None:
            leaves = [precision.tensor_in(x, self.options.dtype) for x in leaves]
        arrays = [*[x.data for x in plan.consts], *give_up(leaves, donated)]
        outs = execute.execute(plan.jaxpr, arrays, self.options.device)
        values = [Tensor.own(y, weak) for y, weak in zip(outs, plan.weak)]
        return values[0] if plan.out_tree is tree.LEAF else tree.unflatten(plan.out_tree, values)

    def _remember(self, plan, avals):
        """After some calls in a row with one plan, make the short way for it."""
        last, count = self.recent
        self.recent = plan, count + 1 if plan is last else 1
        if self.recent[1] == REPEATS and self.options.device == "cpu" and self.options.dtype is None:
            found = native_call(Run, plan, avals, self.options.order)
            if found is not None:
                self.native = found
            else:
                self.fast = fast_call(plan, avals, self.options.order)

    # -- static arguments --

    def _take_static(self, args, kwargs):
        """Static arguments given by keyword or default are taken out and joined to the cache key."""
        if not self.static:
            return kwargs, ()
        kwargs = dict(kwargs)
        names = [s for s in self.static if isinstance(s, str)]
        static = tuple((n, _hashable(n, kwargs.pop(n), self.f)) for n in names if n in kwargs)
        return kwargs, static

    def _static_args(self, args):
        if not self.static:
            return args, ()
        sig = signature(self.f)
        names = list(sig.parameters) if sig else []
        places = {s if isinstance(s, int) else names.index(s) for s in self.static
                  if isinstance(s, int) or s in names}
        static = tuple((k, _hashable(names[k] if k < len(names) else k, x, self.f))
                       for k, x in enumerate(args) if k in places)
        return tuple(x for k, x in enumerate(args) if k not in places), static

    def _bound(self, static, static_args):
        """f with its static arguments put back."""
        if not static and not static_args:
            return lambda args, kwargs: self.f(*args, **kwargs)

        def bound(args, kwargs):
            args = list(args)
            for place, value in static_args:
                args.insert(place, value)
            return self.f(*args, **kwargs, **dict(static))
        return bound

    # -- tracing --

    def _plan(self, leaves, in_tree, avals, static, static_args) -> Plan:
        order = self.options.order or orders.current_order()
        kinds = tuple([type(value) for _, value in (*static, *static_args)])      # 1, 1.0 and True are equal
        key = (in_tree, *avals, static, static_args, kinds, order)
        plan = self.plans.get(key)
        if plan is not None and plan.guard.holds():
            try:
                self.plans.move_to_end(key)
            except KeyError:                       # another thread has dropped it
                pass
            return plan
        plan = self._trace(leaves, in_tree, static, static_args, order, known=plan)
        self.plans[key] = plan
        if len(self.plans) > MAX_TRACES:
            self.plans.popitem(last=False)
        return plan

    def _trace(self, leaves, in_tree, static, static_args, order, known) -> Plan:
        what = describe_callable(self.f)
        counters.count_trace(self.f, known is not None, [x.aval for x in leaves])
        flat = FlatFunction(self._bound(static, static_args), in_tree, what)
        guard = Guard(self.f)
        with orders.use_order(order):
            jaxpr, consts = stage(flat, [x.aval for x in leaves], self._names(in_tree), what)
        if self.options.dtype is not None:
            jaxpr, consts = self._in_dtype(jaxpr, consts)
        jaxpr.memo["origin"] = self.origin
        return Plan(jaxpr, consts, flat.out_tree, guard, [a.weak for a in jaxpr.out_avals])

    def _in_dtype(self, jaxpr, consts):
        """The program and what it captured with every float in the dtype of the run."""
        dtype = self.options.dtype
        return precision.in_dtype(jaxpr, dtype), [_value_in(x, dtype) for x in consts]

    def _names(self, in_tree) -> list[str]:
        """Variable names for plain positional arguments."""
        sig = signature(self.f)
        args_tree = in_tree.children[0]
        if sig is None or self.static or any(c.n_leaves != 1 or c.cls for c in args_tree.children):
            return []
        names = [p.name for p in sig.parameters.values() if p.kind is not p.VAR_POSITIONAL]
        return names[:len(args_tree.children)]

    def _inside(self, leaves, in_tree, static, static_args):
        """A run inside another transform: written out while staging, one `call` equation elsewhere."""
        flat = FlatFunction(self._bound(static, static_args), in_tree, describe_callable(self.f))
        order = self.options.order or orders.current_order()
        with orders.use_order(order):
            if type(current_trace()) is StageTrace and self.options.dtype is None:
                outs = flat(*leaves)
                return tree.unflatten(flat.out_tree, outs)
            jaxpr, consts = stage(flat, [x.aval for x in leaves])
        if self.options.dtype is not None:
            jaxpr, consts = self._in_dtype(jaxpr, consts)
            leaves = [_value_in(x, self.options.dtype) for x in leaves]
        outs = call.bind(*consts, *leaves, jaxpr=jaxpr, name=getattr(self, "__name__", "run"),
                         order=order, device=self.options.device)
        return tree.unflatten(flat.out_tree, outs)

    # -- variants --

    def on(self, device: str) -> "Run":
        """The same function on another device."""
        return self.using(device=device)

    def using(self, **options) -> "Run":
        """The same function with other options: device=, order=, dtype=."""
        if options.get("dtype") is not None:
            options["dtype"] = precision.check_float(options["dtype"])
        return Run(self.f, self.options._replace(**options), self.static)

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        bound = Run(self.f.__get__(instance, owner), self.options, self.static)
        bound.plans, bound.origin = _plans_of_instance(self.plans, instance), self.origin
        return bound

    def __repr__(self):
        return f"<run of {describe_callable(self.f)} on {self.options.device}>"

    def __reduce__(self):
        return named_in_module(self) or (_remake, (self.f, self.options, self.static))

    def backward(self, *_):
        """Only records have gradients."""
        raise RecordError("run does not record: use tl.record(f)(x).backward(), or tl.grad(f)(x)")


def _plans_of_instance(plans, instance):
    """The traces of a method for one object, kept with the method (the guard keeps the object)."""
    key = ("instance", id(instance))
    if key not in plans:
        plans[key] = OrderedDict()
        if len(plans) > MAX_TRACES:
            plans.popitem(last=False)
    return plans[key]


def _check_names(f, option, static):
    """ArgumentError for a static or donated name or position that `f` does not have."""
    sig = signature(f) if static else None
    if sig is None or any(p.kind is p.VAR_KEYWORD for p in sig.parameters.values()):
        return
    many = any(p.kind is p.VAR_POSITIONAL for p in sig.parameters.values())
    for name in static:
        missing = name not in sig.parameters if isinstance(name, str) else \
            name < 0 or name >= len(sig.parameters) and not many
        if missing:
            raise ArgumentError(f"{option}={name!r}: {describe_callable(f)} has no such argument; its arguments "
                                f"are {', '.join(sig.parameters)}")


def _hashable(name, value, f):
    try:
        hash(value)
    except TypeError:
        raise ArgumentError(f"{describe_callable(f)}: the static argument {name!r} must be hashable, got "
                            f"{type(value).__name__}: {value!r:.60}; pass a tuple, or make it an ordinary "
                            "argument") from None
    return value


def _value_in(x, dtype):
    """A value, traced or not, with its floats in `dtype`."""
    if type(x) is Tensor:
        return precision.tensor_in(x, dtype)
    return convert(x, precision.target_of(x.aval.dtype, dtype))


def _remake(f, options, static):
    return Run(f, options, static)


def run(f: Callable | None = None, *, device: str = "cpu", order: str | None = None, grad: bool = False,
        static: Any = (), dtype: Any = None, donate: Any = ()):
    """Run a whole-tensor function: traced once per kind of arguments, then executed on `device`.

    Arguments and results are tensors, numbers, or trees of them; the shapes may change.  order: the
    order of sums and contractions ("ordered", "fused", "tree", "free"), that of the caller if not
    given.  static: names or positions of arguments that are no tensors (hashable; a new value
    traces again).  grad=True records: see `record`.  dtype: run the same program with every float,
    also captured ones, in this format, each converted once; the results are of that format.
    donate: names or positions of arguments whose memory is given up: results may be written into it,
    and a tensor that was donated cannot be used any more (ArgumentError).  On the CPU, and outside of
    other transforms; elsewhere nothing is taken.

    Raises OutputError when the function returns something else, UnsupportedError for a device that is
    not there.

    >>> energy = tl.run(lambda x: tl.sum(x * x))
    >>> energy(tl.tensor([1.0, 2.0, 3.0]))
    tensor(14.0, float64, shape (), cpu)
    """
    if f is None:
        return functools.partial(run, device=device, order=order, grad=grad, static=static,
                                 dtype=dtype, donate=donate)
    static, donate = ((x,) if isinstance(x, (str, int)) else tuple(x) for x in (static, donate))
    made = Run(f, Options(device, orders.check_order(order) if order else None,
                          None if dtype is None else precision.check_float(dtype), donate), static)
    return record(made) if grad else made
