"""Donated arguments: results in their memory, the same words, and no way to read what is gone."""
import numpy as np
import pytest

import tlgrad as tl
from tlgrad.backends.numba_cpu import buffers, plan as plans
from tlgrad.backends.numba_cpu.buffers import only_owner


def fresh(*shape, dtype="float32", seed=0):
    return tl.tensor(np.random.default_rng(seed).standard_normal(shape), dtype)


def address(t):
    return t.data.ctypes.data


@pytest.mark.parametrize("shape", [(7,), (3, 50), (300, 500)], ids=str)
def test_a_result_takes_the_memory_and_keeps_the_words(shape):
    f = tl.run(lambda x, y: x * y + 1.0, donate="x")
    x, y = fresh(*shape), fresh(*shape, seed=1)
    want, where = tl.run(lambda x, y: x * y + 1.0)(x, y), address(x)
    got = f(x, y)
    assert address(got) == where and tl.same_bits(got, want)
    again = f(got, y)                                        # results can be donated in turn
    assert address(again) == where
    assert tl.same_bits(again, want * y + 1.0)


def test_a_donated_tensor_cannot_be_used():
    f = tl.run(lambda x: x + 1.0, donate=0)
    x = fresh(5)
    f(x)
    assert x.shape == (5,) and repr(x) == "<donated float32[5]>"
    for use in (lambda: x + 1.0, lambda: f(x), lambda: np.asarray(x), x.tolist, lambda: tl.run(tl.sum)(x)):
        with pytest.raises(tl.errors.ArgumentError, match=r"float32\[5\], was donated"):
            use()


def test_memory_that_others_see_is_left_alone():
    f = tl.run(lambda x: x * 2.0, donate="x")
    x = fresh(400, 300)
    data, view = x.data.copy(), np.asarray(x)[3:]
    assert f(x).tolist() == (data * 2).tolist() and (view == data[3:]).all()
    x = fresh(400, 300)
    turned = x.T
    f(x)
    assert (turned.data == data.T).all()
    g = tl.run(lambda x, y: x - y, donate="x")
    x = fresh(9)
    assert g(x, x).tolist() == [0.0] * 9


def test_inputs_that_are_read_elsewhere_or_later_keep_their_memory():
    x = fresh(6, 6)
    where, want = address(x), x.data + x.data.T
    out = tl.run(lambda x: x + x.T, donate="x")(x)
    assert address(out) != where and (out.data == want).all()
    x = fresh(64)
    data = x.data.copy()
    out = tl.run(lambda x: (x * 2.0, tl.sort(x)), donate="x")(x)
    assert (out[0].data == data * 2).all() and (out[1].data == np.sort(data)).all()
    x = fresh(64)
    data = x.data.copy()
    both = tl.run(lambda x: (x * 2.0, x[::-1] + 1.0), donate="x")(x)
    assert (both[0].data == data * 2).all() and (both[1].data == data[::-1] + 1).all()
    k = tl.tensor([4, 0, 2])
    with pytest.raises(tl.errors.ZeroDivision):
        tl.run(lambda k: (k + 1, 7 // k), donate="k")(k)


def test_a_training_step_in_place(monkeypatch):
    def allocate(shape, dtype):
        assert shape != (20, 30) or len(made) < 1, "only the gradient of w needs memory"
        made.extend([shape] if shape == (20, 30) else [])
        return buffers.allocate(shape, dtype)

    def step(params, rate, x):
        grads = tl.grad(lambda p: tl.sum(tl.tanh(x @ p["w"] + p["b"]) ** 2))(params)
        return {k: params[k] - rate * grads[k] for k in params}
    params = {"w": fresh(20, 30), "b": fresh(30, seed=2)}
    x = fresh(8, 20, seed=3)
    plain, donating = tl.run(step), tl.run(step, donate="params")
    want, where, made = plain(params, 0.1, x), address(params["w"]), []
    monkeypatch.setattr(plans, "allocate", allocate)
    got = donating(params, 0.1, x)
    assert all(tl.same_bits(got[k], want[k]) for k in want)
    assert address(got["w"]) == where


def test_static_arguments_names_and_transforms():
    f = tl.run(lambda n, x: x * n, static="n", donate="x")
    x = fresh(5)
    where = address(x)
    assert address(f(3, x)) == where
    x = fresh(5)
    assert tl.grad(lambda v: tl.sum(f(3, v)))(x).tolist() == [3.0] * 5 and x.tolist()
    with pytest.raises(tl.errors.ArgumentError, match="donate='z'"):
        tl.run(lambda x: x, donate="z")
    for place in (1, -1):
        with pytest.raises(tl.errors.ArgumentError, match=f"donate={place}: .* its arguments are x"):
            tl.run(lambda x: x, donate=place)


def test_who_owns_memory():
    plain = np.ones(1000)
    assert only_owner(plain)
    view = plain[2:]
    assert not only_owner(plain) and not only_owner(view)
    pooled = tl.run(lambda x: x + 1.0)(fresh(400, 400)).data
    assert only_owner(pooled)
    part = pooled[1:]
    assert not only_owner(pooled) and part.size
