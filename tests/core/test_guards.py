"""A captured value is always current: whatever a function can read may change between calls."""
import functools
import types

import numpy as np
import pytest

import tlgrad as tl

SCALE = 2.0
TABLE = {"a": 1.0}
MODULE = types.ModuleType("helper_of_this_test")
MODULE.factor = 3.0


def uses_global(x):
    return x * SCALE


def uses_helper(x):
    return uses_global(x) + 1


def uses_module(x):
    return x * MODULE.factor


def with_default(x, y=2.0):
    return x * y


class Thing:
    rate = 2.0

    def __init__(self):
        self.weight = 2.0

    def apply(self, x):
        return x * self.weight * self.rate

    @property
    def doubled(self):
        return self.weight * 2


def _cell():
    k = 2.0

    def f(x):
        return x * k

    def change(v):
        nonlocal k
        k = v
    return f, change


def _deep_cell():
    k = 2.0

    def inner(x):
        return x * k

    def f(x):
        return functools.partial(inner)(x)

    def change(v):
        nonlocal k
        k = v
    return f, change


def _list():
    values = [2.0, 5.0]
    return (lambda x: x * values[0]), lambda v: values.__setitem__(0, v)


def _nested_list():
    values = {"a": [2.0]}
    return (lambda x: x * values["a"][0]), lambda v: values["a"].__setitem__(0, v)


def _dict():
    values = {"k": 2.0}
    return (lambda x: x * values["k"]), lambda v: values.update(k=v)


def _array():
    values = np.array([2.0, 1.0])
    return (lambda x: x * values[0]), lambda v: values.__setitem__(0, v)


def _large_array():
    values = np.full(20000, 2.0)
    return (lambda x: x * values[0]), lambda v: values.__setitem__(0, v)


def _attribute():
    thing = Thing()
    thing.rate = 1.0
    return thing.apply, lambda v: setattr(thing, "weight", v)


def _class_attribute():
    class Local(Thing):
        rate = 2.0

        def apply(self, x):
            return x * self.rate
    return Local().apply, lambda v: setattr(Local, "rate", v)


def _property():
    thing = Thing()
    thing.weight = 1.0
    return (lambda x: x * thing.doubled), lambda v: setattr(thing, "weight", v / 2)


def _callable_object():
    class Scaled:
        k = 2.0

        def __call__(self, x):
            return x * self.k
    f = Scaled()
    return f, lambda v: setattr(f, "k", v)


def _default():
    def f(x, y=2.0):
        return x * y
    return f, lambda v: setattr(f, "__defaults__", (v,))


def _keyword_default():
    def f(x, *, y=2.0):
        return x * y
    return f, lambda v: setattr(f, "__kwdefaults__", {"y": v})


def _code():
    def f(x):
        return x * 2.0

    def change(v):
        f.__code__ = (lambda x: x * 5.0).__code__
    return f, change


def _global():
    return uses_global, lambda v: globals().__setitem__("SCALE", v)


def _global_of_a_helper():
    return (lambda x: uses_helper(x) - 1), lambda v: globals().__setitem__("SCALE", v)


def _module_attribute():
    MODULE.factor = 2.0
    return uses_module, lambda v: setattr(MODULE, "factor", v)


def _tensor_in_a_list():
    values = [tl.tensor(2.0)]
    return (lambda x: x * values[0]), lambda v: values.__setitem__(0, tl.tensor(v))


def _helper_replaced():
    helpers = types.SimpleNamespace(f=lambda x: x * 2.0)
    return (lambda x: helpers.f(x)), lambda v: setattr(helpers, "f", lambda x: x * v)


def _branch_not_taken():
    state = types.SimpleNamespace(flag=False, k=5.0)
    return (lambda x: x * (state.k if state.flag else 2.0)), lambda v: setattr(state, "flag", True)


KINDS = [_cell, _deep_cell, _list, _nested_list, _dict, _array, _large_array, _attribute, _class_attribute,
         _property, _callable_object, _default, _keyword_default, _code, _global, _global_of_a_helper,
         _module_attribute, _tensor_in_a_list, _helper_replaced, _branch_not_taken]


@pytest.fixture(autouse=True)
def restore():
    yield
    globals()["SCALE"] = 2.0
    MODULE.factor = 3.0


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.__name__[1:])
@pytest.mark.parametrize("wrap", [tl.run, lambda f: tl.run(tl.grad(lambda x: f(x) * 1.0)),
                                  lambda f: tl.run(lambda x: tl.run(f)(x) + 0.0), lambda f: tl.run(tl.vmap(f)),
                                  lambda f: tl.grad(tl.run(f))],
                         ids=["run", "run(grad)", "run(run)", "run(vmap)", "grad(run)"])
def test_the_next_call_sees_the_change(kind, wrap):
    f, change = kind()
    g = wrap(f)
    maps = "vmap" in wrap.__code__.co_names

    def call():
        return float(g(tl.ones(2))[0]) if maps else float(g(1.0))
    assert call() == 2.0
    assert call() == 2.0
    change(5.0)
    assert call() == 5.0
    assert call() == 5.0


def test_an_unchanged_function_is_traced_once():
    f, _ = _attribute()
    g = tl.run(f)
    g(1.0)
    before = tl.cache_info().traces
    for _ in range(5):
        g(1.0)
        g(3.5)
    assert tl.cache_info().traces == before
    g(tl.ones(3))
    assert tl.cache_info().traces == before + 1


@pytest.mark.parametrize("make", [lambda: np.ones((300, 100)), lambda: np.ones((300, 100), order="F"),
                                  lambda: np.ones((300, 200))[:, ::2], lambda: np.ones(70_001, bool)],
                         ids=["rows", "columns", "gaps", "bytes"])
def test_a_large_array_is_traced_again_when_it_changes_only(make):
    values = make()
    g = tl.run(lambda x: tl.sum(values * x))
    assert g(2.0) == 2 * values.size
    before = tl.cache_info().traces
    g(2.0)
    assert tl.cache_info().traces == before
    values[-1] = 0
    assert g(2.0) == 2 * np.sum(values, dtype=float)
    values.shape = (1, *values.shape)
    assert tl.run(lambda x: values * x)(2.0).shape == values.shape
    assert g(2.0) == 2 * np.sum(values, dtype=float)
    assert tl.cache_info().traces == before + 3


def test_the_words_of_a_large_array_count():
    values = np.zeros(10_000)
    g = tl.run(lambda x: tl.copysign(x, values))
    g(1.0)
    values[5] = -0.0
    assert g(1.0)[5] == -1.0


def test_the_reason_of_a_trace_is_told():
    f, change = _cell()
    g = tl.run(f)
    g(1.0)
    change(7.0)
    g(1.0)
    assert "a captured value changed" in tl.cache_info().reasons[-1]
    g(tl.tensor(1.0, tl.float32))
    assert any("float64[]* to float32[]" in r for r in tl.cache_info().reasons[-2:])     # then what it compiled


def test_a_captured_nan_is_not_a_change():
    k = float("nan")
    g = tl.run(lambda x: tl.where(x > 0, x, k))
    g(1.0)
    before = tl.cache_info().traces
    g(1.0)
    assert tl.cache_info().traces == before


def test_zero_and_minus_zero_are_different_captures():
    values = [0.0]
    g = tl.run(lambda x: x / values[0])
    assert float(g(1.0)) == float("inf")
    values[0] = -0.0
    assert float(g(1.0)) == -float("inf")


def test_c070_a_hundred_scalars_and_methods_are_one_trace():
    thing = Thing()
    g = tl.run(thing.apply)
    before = tl.cache_info().traces
    for k in range(100):
        g(float(k))
    assert tl.cache_info().traces == before + 1
