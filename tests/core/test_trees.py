"""Pytrees: every kind of container through flatten, messages and transforms."""
import collections
import dataclasses
import typing

import pytest

import tlgrad as tl
from tlgrad import errors
from tlgrad.core import tree


class Point(typing.NamedTuple):
    x: object
    y: object


@dataclasses.dataclass(frozen=True)
class Layer:
    weight: object
    bias: object = None


@dataclasses.dataclass
class Net:
    layers: list
    name: str = "net"


tree.register_dataclass(Net, static=["name"])


class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b


tree.register(Pair, lambda p: ((p.a, p.b), None), lambda _, ab: Pair(*ab))

TREES = {
    "leaf": 1.0, "tuple": (1.0, (2.0,)), "list": [1.0, [2.0]], "dict": {"b": 1.0, "a": 2.0},
    "mixed keys": {1: 1.0, "a": 2.0}, "none": (None, 1.0), "namedtuple": Point(1.0, {"z": 2.0}),
    "dataclass": Layer(1.0, 2.0), "static field": Net([1.0, 2.0], "other"), "registered": Pair(1.0, [2.0]),
    "ordered": collections.OrderedDict(b=1.0, a=2.0), "default": collections.defaultdict(list, {"a": 1.0}),
    "empty": (), "empty inside": ({}, [], 1.0)}


@pytest.mark.parametrize("name", TREES)
def test_flatten_and_back(name):
    original = TREES[name]
    leaves, treedef = tree.flatten(original)
    rebuilt = tree.unflatten(treedef, leaves)
    assert type(rebuilt) is type(original)
    assert tree.flatten(rebuilt) == (leaves, treedef)
    assert len(tree.paths(treedef)) == len(leaves) == treedef.n_leaves
    assert hash(treedef) == hash(tree.structure(rebuilt))


@pytest.mark.parametrize("name", [n for n in TREES if n not in ("empty",)])
def test_every_tree_goes_through_the_transforms(name):
    def f(t):
        return tree.map(lambda x: x * x, t)

    def total(t):
        return sum(tree.leaves(f(t)))
    x = TREES[name]
    leaves = tree.leaves(x)
    assert [float(y) for y in tree.leaves(tl.run(f)(x))] == [v * v for v in leaves]
    for grad in (tl.grad(total), tl.run(tl.grad(total)), lambda t: tl.vjp(total, t)[1](1.0)[0]):
        found = grad(x)
        assert tree.structure(found) == tree.structure(x)
        assert [float(g) for g in tree.leaves(found)] == [2 * v for v in leaves]
    y, y_dot = tl.jvp(f, (x,), (x,))
    assert [float(d) for d in tree.leaves(y_dot)] == [2 * v * v for v in leaves]
    stacked = tree.map(lambda v: tl.tensor([v, v + 1]), x)
    assert [v.tolist() for v in tree.leaves(tl.vmap(f)(stacked))] == [[v * v, (v + 1) ** 2] for v in leaves]


def test_static_fields_survive_and_decide_the_structure():
    out = tl.run(lambda net: net)(Net([1.0], "b"))
    assert out.name == "b"
    assert tree.structure(Net([1.0], "a")) != tree.structure(Net([1.0], "b"))


def test_paths_are_what_a_user_writes():
    found = tree.paths(tree.structure({"w": (1, Point(2, Layer(3, [4])))}))
    assert found == ["['w'][0]", "['w'][1].x", "['w'][1].y.weight", "['w'][1].y.bias[0]"]


@pytest.mark.parametrize("given, said", [
    ({"w": 1.0}, r"at \[0\]\['w'\], expected a tuple, got a leaf"),
    ({"v": (1.0, 2.0)}, r"expected entries \['w'\], got \['v'\]"),
    ({"w": (1.0,)}, r"at \[0\]\['w'\], expected entries \[0\], \[1\], got \[0\]"),
    ((1.0, 2.0), "expected a dict, got a tuple")])
def test_the_difference_is_named(given, said):
    with pytest.raises(errors.TreeError, match=said):
        tl.jvp(lambda t: t, ({"w": (1.0, 2.0)},), (given,))


def test_registering_twice_is_refused():
    with pytest.raises(errors.ArgumentError, match="Pair is already"):
        tree.register(Pair, None, None)
    with pytest.raises(errors.ArgumentError, match="no field 'nmae'"):
        tree.register_dataclass(Net, static=["nmae"])
