"""What cannot be recorded is refused with line, function, expression, reason and fix; and what the
front end cannot read is run by Python on traced values."""
import contextlib
import math
import random
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import tlgrad as tl

from frontend.same_as_python import COUNTED, ONE, differences

X = tl.tensor([1.0, 2.0])
LOG = []
REFUSALS = []


def refused(reason, *, at, inputs=1):
    """Register a function: what the message says, the expression that it shows."""
    return lambda f: REFUSALS.append((f, reason, at, inputs)) or f


@refused("`math.fsum` is not known to tlgrad", at="math.fsum([x, 1.0])")
def unknown_callee(x):
    return math.fsum([x, 1.0]) if x > 0 else x


@refused("gives another value each time", at="random.random()")
def impure(x):
    return x + random.random() if x > 0 else x


@refused("changes a list that was made outside", at="LOG.append(x)")
def mutation(x):
    LOG.append(x)
    return x if x > 0 else 1.0


@refused("the index of a dict must be a Python number", at="{0: 1.0}[x]")
def lookup(x):
    return {0: 1.0}[x]


@refused("returns different kinds of values", at="return x")
def different_kinds(x):
    if x > 1:
        return "big"
    return x


@refused("a list changes its length in the loop", at="x > 1")
def growing(x):
    s = []
    while x > 1:
        s.append(x)
        x = x / 2
    return s[0]


@refused("has no attribute `foo`", at="x.foo")
def no_attribute(x):
    return x.foo if x > 0 else x


@refused("name `undefined_name` is not defined", at="undefined_name")
def no_name(x):
    return undefined_name(x)                                # noqa: F821


@refused("the index of a list must be a Python number", at="[1.0, x][n]", inputs=2)
def mixed_list(x, n):
    return [1.0, x][n]


@pytest.mark.parametrize("f, reason, at, inputs", REFUSALS, ids=[r[0].__name__ for r in REFUSALS])
def test_refusals(f, reason, at, inputs):
    with pytest.raises(tl.errors.ScalarFunctionError) as caught:
        tl.map(f)(*[X, tl.tensor([1, 0])][:inputs])
    text = str(caught.value)
    assert reason in text and f"in `{at}`" in text and f.__name__ in text and "test_messages.py:" in text
    assert LOG == []


def test_a_function_that_returns_nothing():
    with pytest.raises(tl.errors.ScalarFunctionError, match="returns None"):
        tl.map(lambda x: None)(X)


def test_a_budget_names_the_construct():
    def f(x):
        items = [x] * 3
        for a in range(2000):
            for b in items:
                for c in items:
                    x = x + b * c if x > a else x
            items = [x, *items[:2]] if a % 2 else items[1:] + items[:1] + [] * a
        return x
    with pytest.raises(tl.errors.ScalarFunctionError, match="Fix:"):
        tl.map(f)(X)


# ---- what Python itself runs ----

def with_statement(x):
    with contextlib.suppress(ValueError):
        if x > 1:
            x = math.floor(x) if x < 5 else x * 2
    return x


def nonlocal_state(x):
    n = 0

    def count():
        nonlocal n
        n += 1
        return n
    return count() + count() * x if x > 0 else x


def late_capture(x):
    y = x
    g = lambda: y                                           # noqa: E731
    y = x + 1 if x > 0 else x
    return g()


def sequence_pattern(x):
    match (x, 2.0):
        case (0, b):
            return b
        case (a, b) if a > b:
            return a - b
        case _:
            return x


def starred(x):
    a, *b = (x, 2.0, 3.0)
    return a * b[0] if a > 1 else b[1]


def formats(x):
    if x < 0:
        raise ValueError(f"{x:.2f} is below {0!r}")
    return x


def imports(x):
    from math import sqrt, pi
    return sqrt(x) if x > 1 else pi


FALLBACKS = [with_statement, nonlocal_state, late_capture, sequence_pattern, starred, formats, imports]


@pytest.mark.parametrize("f", FALLBACKS, ids=lambda f: f.__name__)
def test_constructs_that_numba_cannot_read(f):
    assert differences(f, [xs for xs in ONE if math.isfinite(xs[0])]) == []


def test_formats_show_the_number():
    with pytest.raises(ValueError, match="^-2.50 is below 0"):
        tl.map(formats)(tl.tensor([1.0, -2.5]))


def test_an_untested_numba_falls_back_and_says_so_once():
    program = textwrap.dedent("""
        import warnings, numpy as np, tlgrad as tl
        from tlgrad.frontend import bytecode
        bytecode.TESTED = set()
        def clamp(x):
            if x < 0: return 0.0
            if x > 1: return 1.0
            return x
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            found = tl.map(clamp)(tl.tensor([-1.0, 0.5, 2.0]))
            tl.map(lambda x: -x if x > 0 else x)(tl.tensor([1.0]))
        assert np.asarray(found).tolist() == [0.0, 0.5, 1.0]
        ours = [w for w in seen if "has not been tested" in str(w.message)]
        assert len(ours) == 1, len(ours)
        """)
    subprocess.run([sys.executable, "-c", program], check=True)


# ---- the same words from the compiled program ----

def piecewise(x, n):
    total = 0.0
    for k in range(n):
        if x > k:
            total += x * k
        elif x < -k:
            break
        else:
            total = total * 0.5 - k
    return total / (n + 1) if n else x


def nested(x, n):
    while x > 0.5 and n > 0:
        for k in range(n):
            if k * k > x:
                break
            x = x - 0.25
        n -= 1
    return x, n


@pytest.mark.parametrize("f", [piecewise, nested], ids=lambda f: f.__name__)
def test_compiled_maps_give_the_words_of_python(f):
    inputs = [xs for xs in COUNTED if not math.isinf(xs[0])] * 100
    columns = [tl.tensor(list(c)) for c in zip(*inputs)]
    m = tl.map(f)
    for found in (m(*columns), tl.run(m)(*columns)):
        found = found if isinstance(found, tuple) else (found,)
        expected = [f(*xs) for xs in inputs]
        expected = list(zip(*[e if isinstance(e, tuple) else (e,) for e in expected]))
        for y, column in zip(found, expected):
            assert tl.same_bits(y, tl.tensor(np.array(column, np.asarray(y).dtype)))
