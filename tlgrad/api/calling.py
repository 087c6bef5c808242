"""From a user's callable with arguments of any form to a flat function of values, and back."""
from __future__ import annotations

import functools
import inspect
import types
import weakref
from typing import Any, Callable, Sequence

import numpy as np

from tlgrad.core import tree
from tlgrad.core.source import check_callable, describe_callable
from tlgrad.core.tensor import Tensor, as_value
from tlgrad.core.trace import Value
from tlgrad.errors import ArgumentError, OutputError, TlgradError
from tlgrad.transforms.stage import endless


#: signatures by callable; weak, because a callable can hold large arrays or traced values
_signatures: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def signature(f) -> inspect.Signature | None:
    """The signature of a callable, or None when it has none that Python knows."""
    try:
        return _signatures[f]
    except (KeyError, TypeError):             # new, unhashable, or without weak references
        pass
    try:
        found = inspect.signature(f)
    except (TypeError, ValueError):
        found = None
    try:
        _signatures[f] = found
    except TypeError:
        pass
    return found


def _is_positional(p: inspect.Parameter) -> bool:
    return p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)


class Selected:
    """The arguments that a transform acts on, taken out of a call.

    `values`: the selected arguments; `call(*values)`: the function with them put back; `names`:
    how messages name them.
    """

    __slots__ = ("f", "values", "names", "args", "kwargs", "where")

    def __init__(self, f, argnums, args, kwargs):
        self.f, self.args, self.kwargs = f, list(args), dict(kwargs)
        self.where: list[Any] = [self._locate(a) for a in argnums]
        if len(set(self.where)) < len(self.where):
            raise ArgumentError(f"argnums of {describe_callable(f)} name an argument twice: {tuple(argnums)}")
        self.names = [self._name(w) for w in self.where]
        self.values = [self.args[w] if isinstance(w, int) else self.kwargs[w] for w in self.where]

    def _locate(self, a):
        """A position in args, or a key of kwargs."""
        sig = signature(self.f)
        if isinstance(a, str):
            return self._locate_name(a, sig)
        index = a + len(self.args) if a < 0 else a
        if 0 <= index < len(self.args):
            return index
        if sig is not None:
            names = [p.name for p in sig.parameters.values() if _is_positional(p)]
            if 0 <= index < len(names):
                return self._locate_name(names[index], sig)
        raise ArgumentError(f"argnums={a}: {describe_callable(self.f)} was called with {len(self.args)} "
                            f"positional arguments{self._known(sig)}")

    def _locate_name(self, name, sig):
        if name in self.kwargs:
            return name
        parameter = sig.parameters.get(name) if sig else None
        if parameter is not None and _is_positional(parameter):
            index = list(sig.parameters).index(name)
            if index < len(self.args):
                return index
        if parameter is not None and parameter.default is not inspect.Parameter.empty:
            self.kwargs[name] = parameter.default
            return name
        if parameter is not None:
            raise ArgumentError(f"{describe_callable(self.f)} was called without its argument {name!r}")
        raise ArgumentError(f"{describe_callable(self.f)} has no argument {name!r}{self._known(sig)}")

    def _known(self, sig) -> str:
        return f"; its parameters are {', '.join(sig.parameters)}" if sig and sig.parameters else ""

    def _name(self, where) -> str:
        if isinstance(where, str):
            return f"argument {where!r}"
        sig = signature(self.f)
        names = list(sig.parameters) if sig else []
        label = f" ({names[where]!r})" if where < len(names) else ""
        return f"argument {where}{label}"

    def call(self, *values):
        """The function applied with the selected arguments replaced."""
        args, kwargs = list(self.args), dict(self.kwargs)
        for where, value in zip(self.where, values, strict=True):
            if isinstance(where, int):
                args[where] = value
            else:
                kwargs[where] = value
        return self.f(*args, **kwargs)


def as_argnums(argnums, f) -> tuple[tuple, bool]:
    """argnums as a tuple, and whether a single one was given."""
    single = isinstance(argnums, (int, str, np.integer))
    many = tuple(argnums) if isinstance(argnums, (tuple, list)) else (argnums,)
    for a in many:
        if isinstance(a, bool) or not isinstance(a, (int, str, np.integer)):
            raise ArgumentError(f"argnums of {describe_callable(f)} are positions or names, got {a!r}")
    return many, single


class FlatFunction:
    """A function of trees as a function of flat values; remembers the structure of its result.

    With has_aux the values among the auxiliary results follow those of the result proper, so that
    the transform that traces the function also unboxes them: see `split`.
    """

    def __init__(self, f: Callable, in_tree: tree.TreeDef, what: str, has_aux: bool = False):
        check_callable(f, "a transform")
        self.f, self.in_tree, self.what, self.has_aux = f, in_tree, what, has_aux
        self.out_tree: tree.TreeDef | None = None
        self._n_out, self._aux_leaves, self._aux_tree = 0, (), None

    def __call__(self, *leaves):
        try:
            out = self.f(*tree.unflatten(self.in_tree, leaves))
        except RecursionError as error:
            raise endless(error, self.what) from None
        except ValueError as error:            # NumPy wraps what a tracer says in an array assignment
            if isinstance(error.__cause__, TlgradError):
                raise error.__cause__ from None
            raise
        if not self.has_aux:
            flat, self.out_tree = flatten_output(out, self.what)
            return flat
        if not isinstance(out, tuple) or len(out) != 2:
            raise OutputError(f"{self.what}: with has_aux=True the function returns (result, aux), "
                              f"got {type(out).__name__}")
        flat, self.out_tree = flatten_output(out[0], self.what)
        self._aux_leaves, self._aux_tree = tree.flatten(out[1])
        self._n_out = len(flat)
        return [*flat, *[x for x in self._aux_leaves if isinstance(x, Value)]]

    def split(self, values: Sequence) -> tuple[list, Any]:
        """(the results proper, aux) of what the flat function gave."""
        if not self.has_aux:
            return list(values), None
        given = iter(values[self._n_out:])
        aux = [next(given) if isinstance(x, Value) else x for x in self._aux_leaves]
        self._aux_leaves = ()
        return list(values[:self._n_out]), tree.unflatten(self._aux_tree, aux)


def flatten_output(out, what: str) -> tuple[list[Value], tree.TreeDef]:
    """The values of a result; OutputError names the function and the path of what is no value."""
    if out is None:
        raise OutputError(f"{what} returned None: it has probably lost its return statement")
    leaves, treedef = tree.flatten(out)
    values = []
    for k, leaf in enumerate(leaves):
        if isinstance(leaf, Value):
            values.append(leaf)
            continue
        where = tree.paths(treedef)[k]
        values.append(as_value(leaf, f"the result of {what}" + (f" at {where}" if where else ""),
                               OutputError))
    return values, treedef


def flatten_values(args: Sequence, names: Sequence[str]) -> tuple[list[Value], tree.TreeDef, list[str]]:
    """Values of argument trees, their structure, and a name for each leaf."""
    leaves, treedef = tree.flatten(tuple(args))
    if all(isinstance(x, Value) for x in leaves):
        return leaves, treedef, LeafNames(treedef, names)
    labels = LeafNames(treedef, names)
    values = [x if isinstance(x, Value) else as_value(x, labels[k]) for k, x in enumerate(leaves)]
    return values, treedef, labels


class LeafNames:
    """Names of leaves for messages, worked out when one is asked for."""

    def __init__(self, treedef, names):
        self.treedef, self.names = treedef, names

    def __getitem__(self, k: int) -> str:
        labels = [name + (f" at {path}" if path else "")
                  for name, child in zip(self.names, self.treedef.children) for path in tree.paths(child)]
        return labels[k]


class Transformed:
    """A callable that a transform made of `f`: signature, name and docstring are those of `f`.

    It pickles and copies by being made again: `again()` is the transform applied to `f`.
    """

    def __init__(self, f: Callable, call: Callable, prefix: str, again: Callable):
        check_callable(f, again.func.__name__)
        functools.update_wrapper(self, f, updated=())
        self._call, self._again = call, again
        name = getattr(f, "__name__", type(f).__name__)
        doc = getattr(f, "__doc__", None) or ""
        self.__doc__ = f"{prefix} of {name}." + (f"\n\n{inspect.cleandoc(doc)}" if doc else "")

    def __call__(self, *args, **kwargs):
        return self._call(*args, **kwargs)

    def __get__(self, instance, owner=None):
        """A method: of a container it takes the object too; of other objects, what comes after it."""
        if instance is None:
            return self
        (_, *options), named = self._again.args, self._again.keywords
        counts_self = "argnums" in signature(self._again.func).parameters and options and options[0] != 0
        if counts_self or tree.structure(instance) is not tree.LEAF:
            return types.MethodType(self, instance)
        return self._again.func(self.__wrapped__.__get__(instance, owner), *options, **named)

    def __reduce__(self):
        return named_in_module(self) or (_made_again, (self._again,))

    def __repr__(self):
        return f"<{self.__doc__.splitlines()[0].rstrip('.')}>"


def named_in_module(made) -> str | None:
    """The name under which a decorated function is found in its module, for pickling."""
    name = getattr(made, "__qualname__", "")
    return name if getattr(inspect.getmodule(made.__wrapped__), name, None) is made else None


def _made_again(again):
    return again()


def wrap(f: Callable, call: Callable, prefix: str, again: Callable) -> Callable:
    """`call` with the name, signature and docstring of `f`; `again` makes it from scratch."""
    return Transformed(f, call, prefix, again)


def is_concrete(values) -> bool:
    """True when all values are tensors."""
    return all(type(v) is Tensor for v in values)
