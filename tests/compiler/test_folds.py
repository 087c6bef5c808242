"""Folds, their gradients, loops and branches inside kernels have the words of the reference."""
import os
import subprocess
import sys

import numpy as np
import pytest

import tlgrad as tl

from beside_reference import compiled


def step(v):
    return v * v * 0.25 + 0.5


def total(x, n):
    return tl.sum(tl.iterate(step, n, x))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [0, 1, 2, 7, 100, 1500])
@pytest.mark.parametrize("size", [0, 1, 13, 300])
def test_fold_with_its_gradient_is_one_kernel(dtype, n, size):
    x = np.linspace(-1, 1, size).astype(dtype)
    compiled(lambda x, n: tl.iterate(step, n, x), x, n)
    assert len(compiled(tl.value_and_grad(total), x, n).kernels) == 1


def test_fold_with_two_carries_constants_and_its_index():
    def turn(carry):
        a, b = carry
        return a * 0.5 + b, tl.where(a > b, a, b * w)
    w = tl.tensor(np.linspace(0.1, 2, 33))
    compiled(lambda x, n: tl.iterate(turn, n, (x, x * 2.0)), np.linspace(-3, 3, 33), 9)


def test_second_derivative_of_a_fold():
    x = np.linspace(-1, 1, 21)
    compiled(lambda x, n: tl.grad(lambda y: tl.sum(tl.grad(total)(y, n)))(x), x, 5)


def test_a_text_has_no_numbers_and_no_trip_count():
    first = compiled(lambda x, n: tl.iterate(lambda v: v * 0.25, n, x), np.ones(5), 3)
    other = compiled(lambda x, n: tl.iterate(lambda v: v * 0.75, n, x), np.ones(9), 30)
    assert first.kernels[0][1] is other.kernels[0][1]


def test_negative_trip_count_is_refused():
    with pytest.raises(tl.errors.ArgumentError, match="-2 times"):
        tl.run(lambda x, n: tl.iterate(step, n, x))(tl.tensor([1.0]), -2)


def test_scalar_loop_and_branch():
    def f(x):
        y = tl.while_loop(lambda v: v < 100, lambda v: v * 3.0 + 1.0, x)
        return tl.cond(y > 150, lambda v: tl.exp(tl.sin(v)), lambda v: v * 2, y)
    for x in (1.0, 5.0, 200.0):
        plan = compiled(f, np.float64(x))
        assert len(plan.kernels) == 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [0, 1, 3, 40])
@pytest.mark.parametrize("size", [1, 143, 145, 700])
def test_a_sum_that_runs_behind_its_folds_is_in_order(dtype, n, size):
    """One block behind: few turns leave terms for the end of the block, many have none left."""
    x = (np.random.default_rng(size).standard_normal(size) * 1e3).astype(dtype)
    compiled(tl.value_and_grad(total), x, n)
    rows, column = np.stack([x, x[::-1], x * 3]), np.ones((3, 1), dtype)
    compiled(lambda x, y, n: tl.sum(tl.iterate(lambda v: v * 0.5 + y, n, x)), rows, column, n)
    compiled(total, np.full(size, -0.0, dtype), n)


def test_the_gradient_of_many_turns_takes_little_memory():
    """A tape of whole states would be 800 MB."""
    code = """
import resource, numpy as np, tlgrad as tl
both = tl.run(tl.value_and_grad(lambda x, n: tl.sum(tl.iterate(lambda v: v * v * 0.25 + 0.5, n, x))))
x = tl.tensor(np.linspace(-1, 1, 1 << 12).astype("float32"))
both(x, 3)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
tl.block(both(x, 50_000))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    env = {**os.environ, "TLGRAD_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 2048                        # KiB


def test_a_tape_grows_with_the_counts_of_later_blocks():
    n = np.arange(1500) // 3
    x = np.linspace(0.5, 1, 1500)
    f = tl.map(lambda x, n: tl.iterate(lambda v: v * v * 0.25 + 0.5, n, x))
    compiled(lambda x, n: tl.value_and_grad(lambda x: tl.sum(f(x, n)))(x), x, n)
