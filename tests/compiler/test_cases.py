"""Behaviours that users reported as broken elsewhere (cases C053, C055, C069, C070, C072, C074, C075)."""
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import tlgrad as tl
from tlgrad.backends.numba_cpu.njit import run_lowered
from tlgrad.backends.numba_cpu.plan import Plan
from tlgrad.core.jaxpr import evaluate_arrays
from tlgrad.core.primitive import PRIMITIVES


def compilations(run) -> int:
    """Kernels made (by the compiler or from disk) while `run` runs."""
    def count():
        info = tl.cache_info()
        return info.compiles + info.disk_hits
    before = count()
    run()
    return count() - before


# ---- C053: a product and a sum are two roundings unless fma is written ----

def test_no_contraction():
    a, b, x = (tl.tensor(v, tl.float32) for v in (1e20, -1e20, 1e10))
    assert tl.run(lambda a, b, x: a * x + b * x)(a, b, x).item() == 0.0
    a, b = tl.tensor(0.1), tl.tensor(0.3)
    assert tl.run(lambda a, b: a * b - a * b)(a, b).item() == 0.0
    assert tl.run(lambda a, b: tl.fma(a, b, -(a * b)))(a, b).item() == 1.6653345369377347e-18


@pytest.mark.parametrize("f", [lambda x: x * x + 0.5, lambda x: tl.sum(x * x),
                               lambda x: tl.where(x > 0, x * x - x, x),
                               lambda x: tl.iterate(lambda v: v * v * 0.25 + 0.5, 10, x)],
                         ids=["polynomial", "sum", "select", "fold"])
def test_no_fma_instruction_without_an_fma_primitive(f):
    for kernel in tl.kernels(f)(tl.tensor(np.ones(100, "float32"))):
        assert "fmadd" not in kernel.assembly and "fmsub" not in kernel.assembly


def test_an_fma_primitive_is_one_instruction_where_the_cpu_has_it():
    kernel, = tl.kernels(lambda x: tl.fma(x, x, x))(tl.tensor(np.ones(100, "float32")))
    assert "fmadd" in kernel.assembly or "fma" in kernel.assembly


# ---- of several errors, the first of the program is raised ----

def test_the_first_error_of_the_program_is_raised():
    def f(k, x):
        quotient = 7 // k                    # one kernel with the sum, so it comes after the maximum
        return quotient + PRIMITIVES["reduce_max"].bind(x, axes=(0,))
    k, x = tl.tensor([1, 0]), tl.tensor(np.ones(0, "int64"))
    with pytest.raises(tl.errors.ZeroDivision):
        f(k, x)
    with pytest.raises(tl.errors.ZeroDivision):
        tl.run(f)(k, x)
    with pytest.raises(tl.errors.ShapeError, match="are empty"):
        tl.run(f)(k + 1, x)


# ---- C055: the order of a sum is part of the result ----

def test_sums_go_left_to_right():
    total = tl.run(lambda x: tl.sum(x))
    assert total(tl.tensor([1.0, 1e100, 1.0, -1e100])).item() == 0.0
    assert total(tl.tensor([-1e100, 1.0, 1e100, 1.0])).item() == 1.0


# ---- C069: captured arrays are hidden arguments ----

def test_a_captured_array_is_no_text_and_costs_no_compilation():
    x = tl.tensor(np.ones(50_000))

    def use(array):
        return tl.run(lambda x: tl.sum(array * x))(x).item()
    first, second = (tl.tensor(np.full(50_000, v)) for v in (2.0, 3.0))
    assert use(first) == 100_000.0
    found = []
    assert compilations(lambda: found.append(use(second))) == 0
    assert found == [150_000.0]
    shown = tl.kernels(lambda x: tl.sum(first * x))(x)
    assert len(repr(shown)) < 10_000


# ---- C070: what does not recompile ----

def called_with_scalars(f):
    return [f(tl.tensor(np.arange(5.0)), float(k)).tolist() for k in range(100)]


def test_a_hundred_scalars_lengths_lambdas_methods_and_constants_are_one_kernel_each():
    f = tl.run(lambda x, s: x * s + 7.25 * s - x / 3.0)
    assert compilations(lambda: called_with_scalars(f)) <= 1
    g = tl.run(lambda x: x * x / 5.0 - x - 0.125)
    assert compilations(lambda: [g(tl.tensor(np.ones(n))) for n in range(1, 101)]) <= 1
    assert compilations(lambda: [tl.run(lambda x: x / 7.0 + x * x * x)(tl.tensor([1.0])) for _ in range(100)]) <= 1

    class Model:
        scale = 3.0

        @tl.run
        def method(self, x):
            return x * self.scale - x * x / 9.0
    model = Model()
    assert compilations(lambda: [model.method(tl.tensor([1.0, 2.0])) for _ in range(100)]) <= 1

    def captured():
        for k in range(100):
            scale = 0.5 + k
            got = tl.run(lambda x: x / scale - x - x - x)(tl.tensor([1.0])).item()
            assert got == ((1.0 / scale - 1.0) - 1.0) - 1.0
    assert compilations(captured) <= 1


@pytest.mark.parametrize("f", [
    lambda x, s: x * s + 1.25 + s * s, lambda x, s: (x * s, s * s + 0.75), lambda x, s: tl.sum(x * s) + s,
    tl.value_and_grad(lambda x, s: tl.sum(tl.exp(x * s))), lambda x, s: tl.where(x > s, x, s - 3.5),
    lambda x, s: tl.iterate(lambda v: v * v * s + 0.5, 10, x), lambda x, s: x[::-1] + x * s,
    lambda x, s: tl.scan(lambda c, v: (c * s + v, c), 0.0, x), lambda x, s: tl.dot(x, x) * s,
    lambda x, s: tl.vmap(lambda v: tl.while_loop(lambda v: v < 50.0, lambda v: v * v + 1.0, v))(x) + s],
    ids=["scalar", "scalar_result", "sum", "gradient", "select", "fold", "reversed", "scan", "dot", "while"])
def test_one_entry_is_the_kernel_of_several(f):
    run = tl.run(f)

    def call(n):
        got = tl.tree.flatten(run(tl.tensor(np.linspace(0.1, 0.9, n)), 0.625))[0]
        want = tl.tree.flatten(tl.run(f, device="reference")(tl.tensor(np.linspace(0.1, 0.9, n)), 0.625))[0]
        assert all(map(tl.same_bits, got, want))
    call(5)
    assert compilations(lambda: [call(n) for n in (1, 2, 64, 1)]) == 0


# ---- C072: an edit is seen, also by the next process ----

def test_an_edited_module_is_not_answered_from_the_disk_cache(tmp_path):
    (tmp_path / "program.py").write_text(
        "import tlgrad as tl, steps\n"
        "print(tl.run(lambda x: x + steps.step())(tl.tensor([0.0, 1.0])).tolist())\n")
    env = {**os.environ, "TLGRAD_CACHE_DIR": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    for step, expected in ((1, "[1.0, 2.0]"), (2, "[2.0, 3.0]")):
        (tmp_path / "steps.py").write_text(f"def step(): return {step}.0\n")
        done = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, env=env, capture_output=True,
                              text=True, check=True)
        assert done.stdout.strip() == expected


# ---- C074: threads and fork ----

def test_calls_from_many_threads_are_right():
    f = tl.run(lambda x, s: tl.sum(x * s) + tl.sum(tl.exp(x * 0.0)))
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(50):
            n, s = int(rng.integers(1, 60)), float(rng.integers(1, 9))
            if f(tl.tensor(np.ones(n)), s).item() != n * s + n:
                wrong.append((n, s))
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_compiles_and_runs():
    program = """
import os, numpy as np, tlgrad as tl
f = tl.run(lambda x: x * 2.0 + 1.0)
assert f(tl.tensor([1.0])).item() == 3.0
child = os.fork()
if child == 0:
    ok = f(tl.tensor([2.0])).item() == 5.0
    ok = ok and tl.run(lambda x: tl.sum(x * x - 0.5))(tl.tensor(np.ones(2_000_000))).item() == 1e6
    os._exit(0 if ok else 1)
assert os.waitpid(child, 0)[1] == 0
assert f(tl.tensor([3.0])).item() == 7.0
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


# ---- C075: compilation is near linear in the size of the program ----

def test_ten_times_the_operations_take_less_than_fifteen_times_the_time():
    def chain(size):
        def f(y, k):
            for i in range(size // 2):
                y = y * k + y if i % 3 else y - k
            return y
        return f
    x = tl.tensor(np.full(3, 0.5))
    times = []
    for size in (400, 4000):
        program = tl.make_jaxpr(chain(size))(x, x)
        arrays = [x.data, x.data]
        start = time.process_time()
        plan = Plan(program.jaxpr)
        times.append(time.process_time() - start)
        assert tl.same_bits(plan.run(*arrays)[0], evaluate_arrays(program.jaxpr, arrays)[0])
    assert times[1] < 15 * max(times[0], 0.05)


# ---- remainders and floor division of floats have the words of NumPy in both engines ----

def divided(x, y):
    return x % y, x // y


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_floor_division_of_floats_is_a_kernel_with_numpys_words(dtype):
    special = [0.0, -0.0, 1.0, -1.0, 3.0, -2.5, 0.1, np.inf, -np.inf, np.nan, 1e-7, 6e4, -7.0, 5e-324, 1e300]
    rng = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        left = np.concatenate([np.repeat(special, len(special)), rng.standard_normal(999) * 100]).astype(dtype)
        right = np.concatenate([np.tile(special, len(special)), rng.standard_normal(999)]).astype(dtype)
        want = np.remainder(left, right), np.floor_divide(left, right)
    program = tl.make_jaxpr(divided)(tl.tensor(left), tl.tensor(right))
    plan = Plan(program.jaxpr)
    (lowered, _), = plan.kernels
    inputs = dict(zip(plan.jaxpr.in_binders, (left, right)))
    for got in (plan.run(left, right), run_lowered(lowered, inputs)):
        for a, b in zip(got, want, strict=True):
            assert tl.same_bits(np.where(np.isnan(a), 0, a), np.where(np.isnan(b), 0, b))
            assert (np.isnan(a) == np.isnan(b)).all()


# ---- what changes nothing costs nothing ----

def test_identities_and_arrays_without_operands_are_no_steps():
    def f(k, x):
        y = tl.stop_gradient(x) + tl.real(tl.conj(x))
        return PRIMITIVES["floor"].bind(PRIMITIVES["round"].bind(k)) + tl.arange(5), y * tl.arange(5.0)
    k, x = tl.tensor(np.arange(5)), tl.tensor(np.linspace(0, 1, 5))
    shown = tl.kernels(f)(k, x)
    assert "**" not in shown.steps and "except" not in shown.steps
    assert all("floor" not in kernel.text for kernel in shown)
    for got, want in zip(tl.run(f)(k, x), f(k, x), strict=True):
        assert tl.same_bits(got, want)
