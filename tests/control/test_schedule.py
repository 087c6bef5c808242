"""Reverse mode of loops under a memory limit: the same words, fewer states."""
import tracemalloc

import pytest

import tlgrad as tl
from tlgrad.control import native, schedule
from loop_programs import looped, plain

LIMITS = [1, 2, 3, 7, 100, "1KB", None]


@pytest.mark.parametrize("memory", LIMITS)
@pytest.mark.parametrize("name", ["logistic_map", "pair", "branches"])
def test_words_do_not_depend_on_the_limit(name, memory):
    w, x = tl.tensor(0.7), tl.tensor(0.3)
    for derive in (tl.grad, lambda f: lambda w, x: tl.jvp(tl.grad(f), (w, x), (x, w))[1]):
        ours = derive(looped(name, 23, memory=memory))(w, x)
        assert tl.same_bits(ours, derive(plain(name, 23))(w, x))


@pytest.mark.parametrize("memory", [1, 4, 9])
def test_reverse_over_reverse_under_limits(memory):
    w, x = tl.tensor(0.7), tl.tensor(0.3)
    twice = lambda m: tl.grad(tl.grad(looped("logistic_map", 17, memory=m)))(w, x)
    assert tl.same_bits(twice(memory), twice(None))


@pytest.mark.parametrize("memory", [1, 3, 50])
def test_scan_and_while_under_limits(memory):
    xs = tl.sin(tl.arange(17.0))
    f = lambda w, xs: tl.scan(lambda c, x: (tl.tanh(c * w + x), c), w, xs, memory=memory)[0]
    g = lambda w, xs: tl.scan(lambda c, x: (tl.tanh(c * w + x), c), w, xs)[0]
    assert tl.same_bits(tl.grad(f, 1)(tl.tensor(0.9), xs), tl.grad(g, 1)(tl.tensor(0.9), xs))
    h = lambda m: lambda a: tl.while_loop(lambda y: y < 1000.0, lambda y: y * a, a, memory=m)
    assert tl.same_bits(tl.grad(h(memory))(tl.tensor(1.25)), tl.grad(h(None))(tl.tensor(1.25)))


def most_kept(length, slots):
    """States held at once, and turns run, by the schedule for a tower of two sweeps."""
    kept, most, turns = [(0, length)], 0, 0
    while kept:
        lo, hi = kept.pop()
        while hi - lo > (free := max(1, slots - len(kept))):
            passed = schedule.first_piece(hi - lo, free)
            turns += passed
            kept.append((lo, lo + passed))
            lo += passed
        most = max(most, len(kept) + hi - lo)
        turns += hi - lo
    return most, turns


@pytest.mark.parametrize("length", [1, 2, 10, 101, 5000, 100_000])
@pytest.mark.parametrize("slots", [1, 2, 3, 10, 100, 100_000])
def test_the_schedule_keeps_the_limit_and_repeats_as_little_as_binomial_cuts_do(length, slots):
    if length / slots > 5000:
        length = 500
    most, turns = most_kept(length, slots)
    passes = next(p for p in range(1, length + 1) if schedule.capacity(slots, p) >= length)
    assert most <= slots + 1                            # and the state at hand
    assert turns <= passes * length


def test_capacity_is_the_binomial_recursion():
    for s in range(2, 9):
        for r in range(2, 9):
            assert schedule.capacity(s, r) == schedule.capacity(s, r - 1) + schedule.capacity(s - 1, r)
        assert schedule.capacity(s, 1) == s and schedule.capacity(1, s) == s


@pytest.mark.parametrize("memory, states", [(10, 10), (100, 100), ("800KB", 93), (None, 300)])
def test_peak_memory_is_proportional_to_the_limit(memory, states):
    """States of 8.8 KB; a run keeps them, and a few arrays of the turn at hand."""
    x = tl.sin(tl.arange(1100.0))
    f = lambda x: tl.sum(tl.iterate(lambda h: tl.sin(h) * x, 300, x, memory=memory))
    tl.grad(lambda x: tl.sum(tl.iterate(lambda h: tl.sin(h) * x, 2, x)))(x)
    tracemalloc.start()
    tl.grad(f)(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.6 * states * 8800 < peak < (states + 60) * 8800


@pytest.mark.parametrize("memory", [0, -3, 2.5, "12", "3 parsecs", True])
def test_limits_that_are_none(memory):
    with pytest.raises(tl.errors.ArgumentError, match="memory must be a number of states"):
        tl.iterate(lambda x: x, 3, 1.0, memory=memory)


def tanh_loop(w, b, n, memory):
    return tl.iterate(lambda h: tl.tanh(w * h + b), n, w * 0, memory=memory)


@pytest.mark.parametrize("way", [lambda f: f, tl.run], ids=["eager", "run"])
def test_a_hundred_thousand_turns(way):
    """Case C076: the same words under limits of 10, 100 and all states."""
    w, b, n = tl.tensor(0.5), tl.tensor(0.1), tl.tensor(100_000)
    found = []
    for memory in (10, 100, 100_000):
        f = way(tl.value_and_grad(lambda w, b, n: tanh_loop(w, b, n, memory), argnums=(0, 1)))
        value, (gw, gb) = f(w, b, n)
        found.append([value, gw, gb])
        exact = (0.19494514815824412, 0.36134080204084174, 1.85355114222964964)
        assert all(abs(float(x) - e) <= 4 * 2.0 ** -52 * e for x, e in zip(found[-1], exact))
    assert all(tl.same_bits(x, y) for row in found[1:] for x, y in zip(row, found[0]))


def test_compiled_eager_loops_have_the_words_of_the_interpreter(monkeypatch):
    def everything():
        w = tl.tensor([0.5, 0.25])
        ours = tl.grad(lambda w: tl.sum(tanh_loop(w, 0.1, 2000, 7)))(w)
        slow = lambda a: tl.while_loop(lambda y: y < 100.0, lambda y: y * a + 1e-5, a - 1.0)
        return [ours, slow(tl.tensor(1.001)), tl.grad(slow)(tl.tensor(1.001))]
    monkeypatch.setattr(native, "WORTH_COMPILING", 500)
    compiled = everything()
    monkeypatch.setattr(native, "WORTH_COMPILING", 10**12)
    assert all(tl.same_bits(a, b) for a, b in zip(compiled, everything()))


def network(w, u, xs):
    """A recurrent network: contractions in the body, compiled turn by turn."""
    def turn(h, x):
        new = tl.tanh(tl.matmul(w, h) + tl.matmul(u, x))
        return new, tl.cond(tl.sum(new) > 0, lambda: new, lambda: -new)
    return tl.sum(tl.scan(turn, tl.zeros(w.shape[:1]), xs)[1])


def test_bodies_with_contractions_have_the_words_of_the_reference():
    w, u = tl.reshape(tl.sin(tl.arange(36.0)), (6, 6)), tl.reshape(tl.cos(tl.arange(18.0)), (6, 3))
    xs = tl.reshape(tl.sin(tl.arange(21.0) * 2), (7, 3))
    for f in (network, tl.grad(network)):
        reference = tl.run(f, device="reference")(w, u, xs)
        assert tl.same_bits(f(w, u, xs), reference) and tl.same_bits(tl.run(f)(w, u, xs), reference)
