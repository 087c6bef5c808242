"""Loops that end lane by lane: packed lanes give each lane what it would get alone."""
import os
import subprocess
import sys

import numpy as np
import pytest

import tlgrad as tl
from tlgrad.backends.numba_cpu.kernels import llvm_text
from tlgrad.control.while_loop import while_loop
from tlgrad.kernels.machine import host
from beside_reference import compiled
from tile_programs import CAUGHT, PROGRAMS, halvings, lanes


def packs(plan) -> bool:
    """True when the only kernel packs lanes."""
    lowered, = [lowered for lowered, _ in plan.kernels]
    return "vector.compress" in llvm_text(lowered.kernel, "k", host())[0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [0, 1, 15, 64, 65, 3000])
@pytest.mark.parametrize("name", PROGRAMS)
def test_packed_lanes_have_the_words_of_the_reference(name, size, dtype):
    plan = compiled(tl.map(PROGRAMS[name]), lanes(size, dtype))
    assert not size or packs(plan)


def test_shuffled_lanes_are_shuffled_results():
    x, order = lanes(20_000, "float64"), np.random.default_rng(1).permutation(20_000)
    f = tl.run(tl.map(PROGRAMS["escape"]))
    assert tl.same_bits(f(tl.tensor(x[order])), f(tl.tensor(x)).data[order])


def test_lanes_read_captured_arrays_and_rows():
    compiled(lambda x: tl.map(CAUGHT)(x), lanes(500, "float64"))
    x = tl.tensor(lanes(300, "float64").reshape(20, 15))
    b = tl.tensor(np.linspace(0.5, 2, 20)[:, None])
    compiled(lambda x, b: tl.map(halvings)(x + b), x, b)


def test_sums_over_packed_lanes_are_in_order():
    compiled(lambda x: tl.sum(tl.map(halvings)(x)), lanes(5000, "float32"))


def test_counts_by_lane_are_packed():
    n = np.random.default_rng(2).integers(0, 90, 700)
    x = lanes(700, "float64")
    f = tl.vmap(lambda x, n: tl.iterate(lambda v: v * v * 0.25 + 0.5, n, x))
    compiled(f, x, n)
    g = tl.map(lambda x, n: tl.iterate(lambda k, v: v * 0.5 + k, n, x))
    assert packs(compiled(g, x, n))


@pytest.mark.parametrize("turns, memory", [(5, None), (3000, None), (40, 3)])
def test_the_reverse_of_a_fold_before_a_loop_makes_its_states_again(turns, memory):
    options = {} if memory is None else {"memory": memory}

    def f(x):
        y = tl.iterate(lambda v: v - v * v * 0.0001, turns, x, **options)
        return while_loop(lambda s: s[1] < 4, lambda s: (s[0] * 0.75 + s[0] * s[0] * 0.01, s[1] + 1), (y, 0))[0]
    compiled(tl.grad(f), np.float64(0.3))
    compiled(tl.vmap(tl.grad(f)), lanes(70, "float64"))


def test_one_lane_of_a_million_turns_among_short_ones():
    n = np.full(300, 3)
    n[117] = 1_000_000
    got = tl.run(tl.map(lambda x, n: tl.iterate(lambda v: v * 0.5 + 1.0, n, x)))(
        tl.tensor(np.arange(300.0)), tl.tensor(n))
    assert got.data[117] == 2.0 and got.data[4] == 4 / 8 + 1.75


def test_gradient_through_a_loop_that_ends_by_lane():
    x = lanes(200, "float64")
    plan = compiled(lambda x: tl.value_and_grad(lambda x: tl.sum(tl.map(halvings)(x)))(x), x)
    assert len(plan.kernels) == 1


def test_an_error_in_a_packed_lane_is_that_of_its_entry():
    def f(k):
        total = 0
        while k != 5:
            total = total + 100 // (k - 7)
            k = k - 1
        return total
    good = tl.tensor(np.array([5, 6, 5, 6]))
    assert tl.run(tl.map(f))(good).tolist() == [0, -100, 0, -100]
    with pytest.raises(tl.errors.ZeroDivision, match="division by zero"):
        tl.run(tl.map(f))(tl.tensor(np.array([5, 6, 9, 6])))


def test_a_lane_that_has_ended_keeps_no_inner_loop_going():
    def f(x):
        turns = 0
        while x > 0:
            y = x
            while y != 0.5:                  # never ends for the x with which the outer loop ends
                y = y - 1.0
                turns += 1
            x = x - 1.0
        return turns
    x = np.array([4.5, 0.5, -3.25, 1.5] * 20)
    assert packs(compiled(tl.map(f), x))


def test_a_loop_carries_neither_its_count_nor_computes_a_square_twice():
    """Two squares and 2 * zr * zi; n is the number of the turn, c * 0.5 is computed before."""
    kernel, = tl.kernels(tl.map(PROGRAMS["escape"]))(tl.tensor(lanes(9, "float32")))
    loop, = [op for op in kernel.lowered.kernel.ops if op.name == "loop"]
    assert [op.name for op in loop.regions[1].ops].count("mul") == 4
    assert sorted(v.type for v in loop.regions[1].params) == ["b1", "f32", "f32", "f32", "f32", "i64"]


PROGRAM = """
import hashlib, sys, numpy as np, tlgrad as tl
sys.path.insert(0, {folder!r})
from tile_programs import PROGRAMS, lanes
digest = hashlib.sha256()
for dtype in ("float32", "float64"):
    for name, f in PROGRAMS.items():
        out = tl.run(tl.map(f))(tl.tensor(lanes(700, dtype)))
        for y in out if isinstance(out, tuple) else (out,):
            digest.update(np.ascontiguousarray(y.words()).tobytes())
print(digest.hexdigest())
"""


def words(restrict):
    env = {**os.environ, "TLGRAD_CPU": restrict, "TLGRAD_CACHE_DIR": ""}
    program = PROGRAM.format(folder=os.path.dirname(__file__))
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_narrower_instruction_sets_give_the_same_words():
    assert words("") == words("avx2") == words("baseline")
