"""Cases of other sections that the core decides: custom rules, captured arrays, threads, size."""
import gc
import multiprocessing
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tlgrad as tl
from tlgrad.core.jaxpr import count_eqns


# ---- C035: custom rules ----

def scaled_rule():
    @tl.custom_jvp
    def f(a, m):
        return a * m

    @f.defjvp
    def rule(primals, tangents):
        (a, m), (a_dot, _) = primals, tangents
        return f(a, m), a_dot * m
    return f


def test_c035_rule_inside_scan_and_loops():
    f, m = scaled_rule(), tl.tensor([1.0, 0.0, 1.0])

    def by_scan(a):
        return tl.sum(tl.scan(lambda c, _: (f(c, m), c), a, tl.zeros(2))[0])

    def by_loop(a):
        return tl.sum(tl.iterate(lambda c: f(c, m), 2, a))
    for g in (by_scan, by_loop, tl.run(by_scan), tl.run(by_loop)):
        assert tl.grad(g)(tl.ones(3)).tolist() == [1.0, 0.0, 1.0]
    assert tl.vmap(tl.grad(by_scan))(tl.ones((2, 3))).tolist() == [[1.0, 0.0, 1.0]] * 2


def test_c035_closed_over_value_says_so():
    def outer(k):
        @tl.custom_jvp
        def f(x):
            return x * k
        f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
        return f(2.0)
    with pytest.raises(tl.errors.TlgradError, match="clos|captur"):
        tl.grad(outer)(3.0)


# ---- C069, C070: captured arrays and recompilation ----

def test_c069_captured_arrays_are_hidden_arguments():
    def make(a):
        return tl.run(lambda x: tl.sum(a * x))
    first, second = (tl.tensor(np.full(200_000, v)) for v in (1.0, 2.0))
    x = tl.ones(200_000)
    assert float(make(first)(x)) == 200_000.0
    before = tl.cache_info().compiles
    assert float(make(second)(x)) == 400_000.0
    assert tl.cache_info().compiles == before, "the same program with another array is not compiled again"


def test_c070_new_scalars_lambdas_and_lengths_do_not_compile():
    f = tl.run(lambda x, k: tl.sum(tl.tanh(x * k)))
    f(tl.ones(3), 1.0)
    before = tl.cache_info()
    for k in range(20):
        f(tl.ones(3), float(k))
    assert tl.cache_info().traces == before.traces
    for _ in range(10):
        tl.run(lambda x, k: tl.sum(tl.tanh(x * k)))(tl.ones(3), 2.0)
    for n in range(4, 40):
        f(tl.ones(n), 2.0)
    assert tl.cache_info().compiles == before.compiles


# ---- C074: threads and fork ----

def work(k):
    f = tl.run(tl.grad(lambda x: tl.sum(tl.sin(x) * x)))
    return float(tl.sum(f(tl.full((8,), 0.1 * k))))


def test_c074_threads():
    expected = [work(k) for k in range(20)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, [*range(20)] * 3)) == expected * 3


def test_c074_a_trace_belongs_to_its_thread():
    """Tracing in one thread does not record what another one does."""
    with ThreadPoolExecutor(1) as pool:
        def f(x):
            other = pool.submit(lambda: float(tl.sin(tl.tensor(2.0)))).result()
            return x * other
        jaxpr = tl.make_jaxpr(f)(1.0)
    assert [e.prim.name for e in jaxpr.eqns] == ["mul"]


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_c074_fork():
    expected = work(3)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(work, [3, 3]) == [expected, expected]


# ---- C075: time near linear in program size ----

def generated(n):
    def f(y):
        total = y[0]
        for i in range(n):
            total = total + y[i % 7] * (0.5 + i)
        return total
    return f


def test_c075_tracing_is_linear():
    y = tl.ones(7)
    times = {100: [], 1000: []}
    gc.disable()                      # its cost grows with all that other tests keep, not with the program
    try:
        for n in (100, 1000) * 4:
            start = time.process_time()
            jaxpr = tl.make_jaxpr(tl.grad(generated(n)))(y)
            times[n].append(time.process_time() - start)
    finally:
        gc.enable()
    assert count_eqns(jaxpr.jaxpr) > 1000
    ratio = min(times[1000]) / min(times[100])
    assert ratio < 15, f"ten times the program took {ratio:.1f} times as long"
    values = np.array([sum(0.5 + i for i in range(1000) if i % 7 == k) for k in range(7)])
    values[0] += 1
    np.testing.assert_allclose(np.asarray(jaxpr(y)[0]), values, rtol=1e-14)
