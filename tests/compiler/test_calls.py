"""The short way of repeated calls sees every change that the long way sees."""
import gc

import numpy as np

import tlgrad as tl


def warm(f, *args):
    """Call until the short way is made; gives the last result."""
    for _ in range(6):
        out = f(*args)
    assert f.fast is not None
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
