"""Records: one backward, then nothing is kept."""
import gc
import tracemalloc
import weakref

import numpy as np
import pytest

import tlgrad as tl
from tlgrad import errors


def energy(x):
    return tl.sum(tl.sin(x) ** 2 * x)


X = tl.tensor([1.0, 2.0, 3.0])


def test_value_and_backward():
    r = tl.record(lambda x: tl.sum(x * x))(X)
    assert (float(r.value), r.device, r.backward().tolist()) == (14.0, "cpu", [2.0, 4.0, 6.0])
    assert float(r.value) == 14.0


def test_run_with_grad_is_record():
    assert tl.run(energy, grad=True)(X).backward().tolist() == tl.grad(energy)(X).tolist()
    assert tl.record(tl.run(energy))(X).backward().tolist() == tl.grad(energy)(X).tolist()


def test_a_seed_of_the_shape_of_the_value():
    r = tl.record(lambda x: x * x)(X)
    assert r.backward(tl.tensor([1.0, 0.0, 2.0])).tolist() == [2.0, 0.0, 12.0]
    assert tl.record(lambda x: x * x)(X).backward().tolist() == [2.0, 4.0, 6.0]
    assert tl.record(lambda x: x * x)(X).backward(1.0).tolist() == [2.0, 4.0, 6.0]


def test_several_arguments_and_trees():
    gx, gy = tl.record(lambda x, y: tl.sum(x * y["a"]))(X, {"a": 2.0}).backward()
    assert gx.tolist() == [2.0, 2.0, 2.0] and float(gy["a"]) == 6.0
    gx, gk = tl.record(lambda x, k=1.0: tl.sum(x * k))(X, k=3.0).backward()
    assert gx.tolist() == [3.0, 3.0, 3.0] and float(gk) == 6.0


def test_a_second_backward_and_one_after_close_say_so():
    for finish in (lambda r: r.backward(), lambda r: r.close(), lambda r: r.__exit__(None, None, None)):
        r = tl.record(energy)(X)
        finish(r)
        with pytest.raises(errors.RecordError, match="record of energy.* is consumed or closed.*tl.vjp"):
            r.backward()
        assert float(r.value) == float(energy(X))
        r.close()
        r.close()


def test_backward_consumes_also_when_it_fails():
    r = tl.record(energy)(X)
    with pytest.raises(errors.ShapeError, match=r"cotangent of the result must have shape \(\), got \(2,\)"):
        r.backward(tl.ones(2))
    with pytest.raises(errors.RecordError):
        r.backward()


def test_the_context_manager_closes():
    with tl.record(energy)(X) as r:
        assert r.backward().shape == (3,)
    with tl.record(energy)(X) as r:
        pass
    with pytest.raises(errors.RecordError):
        r.backward()


def test_a_plain_run_has_no_backward():
    with pytest.raises(errors.RecordError, match=r"tl\.record\(f\)\(x\)\.backward\(\)"):
        tl.run(energy).backward()
    with pytest.raises((errors.RecordError, AttributeError), match="record|backward"):
        tl.run(energy)(X).backward()


def test_integers_alone_are_refused():
    with pytest.raises(errors.DifferentiationError, match="no argument is a float"):
        tl.record(lambda n: n + 1)(3)


def test_a_conditional_records_the_branch_taken():
    def f(x):
        return tl.cond(x > 0, lambda v: v * v, lambda v: 1 / (v - v), x)
    assert float(tl.record(f)(3.0).backward()) == 6.0


@pytest.mark.parametrize("finish", [lambda r: r.backward(), lambda r: r.close()], ids=["backward", "close"])
def test_memory_is_released(finish):
    big = tl.tensor(np.ones(200_000))

    def f(x):
        for _ in range(10):
            x = tl.sin(x)
        return tl.sum(x)
    float(tl.record(f)(big).value)
    gc.collect()
    tracemalloc.start()
    try:
        r = tl.record(f)(big)
        held = tracemalloc.get_traced_memory()[0]
        assert held > 5 * big.data.nbytes, "the saved values are counted"
        gradient = finish(r)
        del gradient
        gc.collect()
        left = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert left < 0.1 * big.data.nbytes, f"{left} bytes of {held} are still held"
    assert float(r.value) != 0


def test_what_a_record_saved_is_collected():
    saved = []

    def f(x):
        y = tl.exp(x)
        saved.append(weakref.ref(y if isinstance(y, tl.Tensor) else y.primal))
        return tl.sum(y * y)
    r = tl.record(f)(X)
    gc.collect()
    assert saved[0]() is not None
    r.close()
    gc.collect()
    assert saved[0]() is None


def test_transforms_leave_no_tracers(no_leaks):
    for g in (tl.grad(energy), tl.run(energy), tl.run(tl.grad(energy)), tl.hessian(energy), tl.vmap(tl.sin),
              lambda x: tl.record(energy)(x).backward(), lambda x: tl.make_jaxpr(energy)(x)):
        g(X)


def test_a_failing_function_leaves_nothing_behind(no_leaks):
    class Failed(Exception):
        pass

    def f(x):
        tl.grad(lambda y: y * x)(x)
        raise Failed

    def over(x):
        return lambda g: tl.vmap(g)(tl.stack([x, x]))
    x = tl.tensor(1.0)
    for g in (tl.grad(f), tl.run(f), lambda x: tl.jvp(f, (x,), (x,)), tl.make_jaxpr(f), tl.record(f),
              lambda x: over(x)(f), tl.run(lambda x: over(x)(tl.grad(f)))):
        try:
            g(x)
        except Failed:
            continue
        raise AssertionError("the error of the function is lost")


@pytest.mark.parametrize("order", ["tree", "fused", "ordered"])
def test_a_record_keeps_the_order_of_its_run(order):
    x = tl.tensor(np.random.default_rng(0).uniform(size=1000) * 10.0 ** np.arange(1000) ** 0.5)
    y = x[::-1] * 3

    def f(a, b):
        return tl.sum(a * b) * tl.sum(a)
    expected = tl.run(f, order=order)(x, y)
    for r in (tl.record(tl.run(f, order=order))(x, y), tl.run(f, order=order, grad=True)(x, y),
              tl.record(f, order=order)(x, y)):
        assert tl.same_bits(r.value, expected)
