"""The short way of repeated calls sees every change that the long way sees."""
import copy
import gc
import sys
import threading

import numpy as np
import pytest

import tlgrad as tl
from tlgrad.ops.orders import use_order


def warm(f, *args):
    """Call until the short way is made; gives the last result."""
    for _ in range(6):
        out = f(*args)
    assert hasattr(f, "native") or f.fast is not None
    return out


def test_captured_values_shapes_dtypes_and_orders_are_seen():
    scale = 2.0
    f = tl.run(lambda x: x * scale)
    x = tl.tensor([1.0, 2.0])
    assert warm(f, x).tolist() == [2.0, 4.0]
    scale = 3.0
    assert f(x).tolist() == [3.0, 6.0]
    assert f(tl.tensor([1.0, 2.0, 3.0])).tolist() == [3.0, 6.0, 9.0]
    assert f(tl.tensor([1, 2], "float32")).dtype is tl.float32
    assert f(5.0).item() == 15.0
    assert f(x=x).tolist() == [3.0, 6.0]


def test_other_transforms_take_over():
    f = tl.run(lambda x: tl.sum(x * x))
    x = tl.tensor([1.0, 2.0])
    assert warm(f, x).item() == 5.0
    assert tl.grad(f)(x).tolist() == [2.0, 4.0]
    assert tl.vmap(f)(tl.tensor([[1.0, 2.0], [3.0, 4.0]])).tolist() == [5.0, 25.0]


def test_trees_several_results_and_captured_arrays():
    w = tl.tensor(np.arange(4.0))
    f = tl.run(lambda x, y: {"sum": x + y * w, "parts": (x, x - y)})
    x, y = tl.tensor(np.ones(4)), tl.tensor(np.full(4, 2.0))
    out = warm(f, x, y)
    assert out["sum"].tolist() == [1.0, 3.0, 5.0, 7.0]
    assert out["parts"][1].tolist() == [-1.0] * 4


def test_results_are_new_and_nothing_leaks():
    f = tl.run(lambda x: x + 1.0)
    x = tl.tensor(np.zeros(3))
    first = warm(f, x)
    second = f(x)
    assert not np.shares_memory(first.data, second.data)
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(2000):
        f(x)
    gc.collect()
    assert len(gc.get_objects()) < before + 100


def test_wrong_counts_are_errors_of_the_function():
    f = tl.run(lambda x: x + 1.0)
    x = tl.tensor([1.0])
    warm(f, x)
    for args in ((), (x, x)):
        try:
            f(*args)
        except TypeError:
            continue
        raise AssertionError("a wrong number of arguments was accepted")


def native(f, *args):
    """Call until the native way is made."""
    out = warm(f, *args)
    assert f.native
    return out


FACTOR = 2.0


def test_the_native_call_sees_every_kind_of_capture():
    global FACTOR
    x = tl.tensor([1.0, 2.0])

    def helper(v, by=3.0, *, plus=1.0):
        return v * by + plus * FACTOR
    f = tl.run(lambda v: helper(v))
    assert native(f, x).tolist() == [5.0, 8.0]
    FACTOR = 4.0
    assert f(x).tolist() == [7.0, 10.0]
    FACTOR = 2.0
    native(f, x)
    helper.__defaults__ = (5.0,)
    assert native(f, x).tolist() == [7.0, 12.0]
    helper.__kwdefaults__ = {"plus": 0.0}
    assert native(f, x).tolist() == [5.0, 10.0]
    helper.__code__ = (lambda v, by=3.0, *, plus=1.0: v - by).__code__
    assert native(f, x).tolist() == [-4.0, -3.0]
    del FACTOR
    helper = abs
    assert f(x).tolist() == [1.0, 2.0]
    FACTOR = 2.0


def test_the_native_call_asks_where_it_cannot_look():
    class Model:
        def __init__(self):
            self.scale, self.parts = 2.0, [1.0, 2.0]
    model = Model()
    f = tl.run(lambda x: x * model.scale + model.parts[1])
    x = tl.tensor([1.0])
    assert native(f, x).item() == 4.0
    model.scale = 3.0
    assert native(f, x).item() == 5.0
    model.parts.append(7.0)
    model.parts[1] = 0.0
    assert f(x).item() == 3.0


def test_the_native_call_hands_over_other_arguments():
    x = tl.tensor([1.0, 2.0])
    f = tl.run(lambda x, y=1.0: x * y)
    assert native(f, x).tolist() == [1.0, 2.0]
    assert f(x, y=3.0).tolist() == f(x, 3.0).tolist() == f(y=3.0, x=x).tolist() == [3.0, 6.0]
    assert f(2.0).item() == 2.0
    assert f(tl.tensor(np.arange(12.0).reshape(2, 6)[:, ::3])).tolist() == [[0.0, 3.0], [6.0, 9.0]]
    assert native(f, tl.tensor(np.arange(6.0).reshape(2, 3).T)).tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    assert tl.run(lambda x: f(x) + 1.0)(x).tolist() == [2.0, 3.0]
    with pytest.raises(tl.errors.ShapeError):
        tl.run(lambda a, b: f(a, b))(x, tl.ones(3))
    dot = tl.run(lambda x: tl.sum(x * x))
    native(dot, x)
    with use_order("fused"):
        assert dot(x).item() == 5.0
    assert isinstance(f, type(dot)) and copy.copy(f)(x).tolist() == [1.0, 2.0]


def test_native_calls_from_threads_while_captures_change():
    scale = 1.0
    f = tl.run(lambda x: x * scale)
    x = tl.tensor([1.0, 2.0, 3.0])
    native(f, x)
    wrong = []

    def call():
        for _ in range(3000):
            got = f(x).tolist()
            if got not in ([1.0, 2.0, 3.0], [2.0, 4.0, 6.0]):
                wrong.append(got)
    threads = [threading.Thread(target=call) for _ in range(3)]
    for t in threads:
        t.start()
    for k in range(300):
        scale = 1.0 + k % 2
    for t in threads:
        t.join()
    assert wrong == []


def test_native_calls_keep_no_object():
    f = tl.run(lambda x: x * 2.0)
    x = tl.tensor([1.0, 2.0])
    native(f, x)
    watched = [x, x.data, x.aval, f, f.native, x.data.dtype]

    def mixed():
        for _ in range(1000):
            f(x)
        for _ in range(100):
            f(x=x)
            f(tl.tensor([1.0, 2.0, 3.0]))
            f(2.0)
        return [sys.getrefcount(o) for o in watched]
    mixed()
    assert mixed() == mixed()
