"""Pytrees: nested containers of leaves, flattened to a list and rebuilt.

    flatten   : tree -> [leaf], TreeDef
    unflatten : TreeDef, [leaf] -> tree

Containers are tuple, list, dict (leaves in sorted key order), None (no leaves),
namedtuples, dataclasses and classes given to `register`.  Everything else is a leaf.
"""
from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict
from typing import Any, Callable, Hashable, Iterable, NamedTuple

from tlgrad.errors import ArgumentError, TreeError


class Container(NamedTuple):
    """How one class is taken apart: `split(x) -> (children, keys, aux)`, `join(aux, children)`.

    `keys` are the path steps as a user would write them: ``[0]``, ``['w']``, ``.bias``.
    """
    split: Callable[[Any], tuple[list, list[str], Hashable]]
    join: Callable[[Hashable, list], Any]


def _split_sequence(x):
    return list(x), [f"[{i}]" for i in range(len(x))], None


def _sorted_keys(x: dict) -> list:
    try:
        return sorted(x)
    except TypeError:                       # keys of mixed types: any fixed order will do
        return sorted(x, key=lambda key: (type(key).__name__, repr(key)))


def _split_dict(x):
    keys = _sorted_keys(x)
    return [x[k] for k in keys], [f"[{k!r}]" for k in keys], tuple(keys)


def _split_namedtuple(x):
    return list(x), [f".{f}" for f in x._fields], type(x)


_containers: dict[type, Container] = {
    tuple: Container(_split_sequence, lambda _, xs: tuple(xs)),
    list: Container(_split_sequence, lambda _, xs: list(xs)),
    dict: Container(_split_dict, lambda keys, xs: dict(zip(keys, xs))),
    OrderedDict: Container(lambda x: (list(x.values()), [f"[{k!r}]" for k in x], tuple(x)),
                           lambda keys, xs: OrderedDict(zip(keys, xs))),
    defaultdict: Container(lambda x: (*_split_dict(x)[:2], (x.default_factory, tuple(_sorted_keys(x)))),
                           lambda aux, xs: defaultdict(aux[0], zip(aux[1], xs))),
    type(None): Container(lambda _: ([], [], None), lambda _, xs: None),
}
_namedtuple = Container(_split_namedtuple, lambda cls, xs: cls(*xs))


def register(cls: type, split: Callable, join: Callable) -> type:
    """Make `cls` a container: `split(x) -> (children, aux)`, `join(aux, children) -> x`.

    `aux` must be hashable.  Returns `cls`.  Raises ArgumentError when `cls` is known already.

    >>> class Pair:
    ...     def __init__(self, a, b): self.a, self.b = a, b
    >>> _ = register(Pair, lambda p: ((p.a, p.b), None), lambda _, ab: Pair(*ab))
    >>> leaves(Pair(1, (2, 3)))
    [1, 2, 3]
    """
    if cls in _containers:
        raise ArgumentError(f"{cls.__name__} is already a pytree container")

    def split_with_keys(x):
        children, aux = split(x)
        children = list(children)
        return children, [f".{i}" for i in range(len(children))], aux
    _containers[cls] = Container(split_with_keys, join)
    return cls


def register_dataclass(cls: type, static: Iterable[str] = ()) -> type:
    """Make a dataclass a container whose fields named in `static` are not leaves.

    Dataclasses that are not registered are containers of all their fields.
    """
    static = tuple(static)
    names = [f.name for f in dataclasses.fields(cls)]
    unknown = set(static) - set(names)
    if unknown:
        raise ArgumentError(f"{cls.__name__} has no field {sorted(unknown)[0]!r}; it has {names}")
    _containers[cls] = _dataclass_container(cls, static)
    return cls


def _dataclass_container(cls, static=()):
    dynamic = [f.name for f in dataclasses.fields(cls) if f.name not in static]

    def split(x):
        aux = tuple(getattr(x, name) for name in static)
        return [getattr(x, name) for name in dynamic], [f".{n}" for n in dynamic], aux

    def join(aux, children):
        x = object.__new__(cls)               # a traced field need not pass __post_init__
        for name, value in (*zip(dynamic, children), *zip(static, aux)):
            object.__setattr__(x, name, value)
        return x
    return Container(split, join)


def _container(cls: type) -> Container | None:
    found = _containers.get(cls)
    if found is not None:
        return found
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return _namedtuple
    if dataclasses.is_dataclass(cls):
        return _containers.setdefault(cls, _dataclass_container(cls))
    return None


class TreeDef:
    """The structure of a pytree, without its leaves; hashable and comparable."""

    __slots__ = ("cls", "aux", "keys", "children", "n_leaves", "_hash")

    def __init__(self, cls, aux, keys, children):
        self.cls, self.aux, self.keys, self.children = cls, aux, keys, children
        self.n_leaves = 1 if cls is None else sum(c.n_leaves for c in children)
        self._hash = hash((cls, aux, children))

    def __hash__(self):
        return self._hash

    def __eq__(self, other):
        return self is other or (
            isinstance(other, TreeDef) and self._hash == other._hash and self.cls is other.cls
            and self.aux == other.aux and self.children == other.children)

    def __repr__(self):
        return f"TreeDef({unflatten(self, ['*'] * self.n_leaves)})"


LEAF = TreeDef(None, None, (), ())


def flatten(tree) -> tuple[list, TreeDef]:
    """Leaves of `tree`, left to right, and its structure.

    >>> flatten({"b": 1, "a": (2, None)})[0]
    [2, 1]
    """
    out: list = []
    return out, _flatten_into(tree, out)


def _flatten_into(x, out: list) -> TreeDef:
    container = _container(type(x))
    if container is None:
        out.append(x)
        return LEAF
    children, keys, aux = container.split(x)
    return TreeDef(type(x), aux, tuple(keys), tuple([_flatten_into(c, out) for c in children]))


def unflatten(treedef: TreeDef, leaves_in: Iterable) -> Any:
    """The tree of structure `treedef` with the given leaves; TreeError if the count differs."""
    leaves_in = list(leaves_in)
    if len(leaves_in) != treedef.n_leaves:
        raise TreeError(f"expected {treedef.n_leaves} leaves, got {len(leaves_in)}")
    return _unflatten_from(treedef, iter(leaves_in))


def _unflatten_from(treedef, it):
    if treedef.cls is None:
        return next(it)
    children = [_unflatten_from(c, it) for c in treedef.children]
    return _container(treedef.cls).join(treedef.aux, children)


def leaves(tree) -> list:
    """The leaves of `tree`, left to right."""
    return flatten(tree)[0]


def structure(tree) -> TreeDef:
    """The structure of `tree`."""
    return flatten(tree)[1]


def paths(treedef: TreeDef, prefix: str = "") -> list[str]:
    """The path of each leaf, as a user writes it.

    >>> paths(structure({"w": (1, 2)}))
    ["['w'][0]", "['w'][1]"]
    """
    if treedef.cls is None:
        return [prefix]
    return [p for key, child in zip(treedef.keys, treedef.children)
            for p in paths(child, prefix + key)]


def map(f: Callable, tree, *rest):
    """Apply `f` to corresponding leaves of trees of one structure.

    Raises TreeError with the differing path when the structures differ.

    >>> map(lambda a, b: a + b, {"x": 1}, {"x": 2})
    {'x': 3}
    """
    first, treedef = flatten(tree)
    others = [flatten_as(treedef, t, f"argument {k} of tree.map") for k, t in enumerate(rest, 2)]
    return unflatten(treedef, [f(*xs) for xs in zip(first, *others)])


def flatten_as(treedef: TreeDef, tree, what: str) -> list:
    """The leaves of `tree`, which must have structure `treedef`; `what` opens the message."""
    out, found = flatten(tree)
    if found != treedef:
        raise TreeError(f"{what}: {difference(treedef, found)}")
    return out


def fill_none(tree, treedef: TreeDef, value):
    """`tree` with `value` in place of None wherever `treedef` has a leaf."""
    if treedef.cls is None:
        return value if tree is None else tree
    if type(tree) is not treedef.cls:
        return tree
    container = _container(treedef.cls)
    children, _, aux = container.split(tree)
    if len(children) != len(treedef.children):
        return tree
    return container.join(aux, [fill_none(c, d, value) for c, d in zip(children, treedef.children)])


def difference(expected: TreeDef, got: TreeDef, path: str = "") -> str:
    """One sentence on where two structures first differ."""
    where = f"at {path}" if path else "at the top"
    if expected.cls is not got.cls:
        return f"{where}, expected {_name(expected)}, got {_name(got)}"
    if expected.keys != got.keys:
        listed = [", ".join(t.keys) or "none" for t in (expected, got)]
        return f"{where}, expected entries {listed[0]}, got {listed[1]}"
    if expected.aux != got.aux:
        return f"{where}, expected static part {expected.aux!r}, got {got.aux!r}"
    for key, e, g in zip(expected.keys, expected.children, got.children):
        if e != g:
            return difference(e, g, path + key)
    return "the structures are equal"


def _name(treedef: TreeDef) -> str:
    return "a leaf" if treedef.cls is None else f"a {treedef.cls.__name__}"
