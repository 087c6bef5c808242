"""More functions against plain Python: loops, exceptions, objects, closures, calls, fallbacks."""
import contextlib
import functools
import math

import numpy as np
import pytest

from frontend.same_as_python import COUNTED, ONE, TWO, differences

FINITE = [xs for xs in ONE if math.isfinite(xs[0])]
NO_INF = [xs for xs in ONE if not math.isinf(xs[0])]
COUNTED_NO_INF = [xs for xs in COUNTED if not math.isinf(xs[0])]


C = (1.0, -2.5, 3.0, 0.5); BIG = tuple(float(k) for k in range(100))


def poly(x):
    acc = 0.0
    for c in C: acc = acc * x + c
    return acc


def polybig(x):
    acc = 0.0
    for c in BIG: acc = acc * x + c
    return acc


def polyidx(x):
    acc = 0.0
    for k in range(len(BIG)): acc = acc * x + BIG[k]
    return acc


def sine(x): return math.sin(x) + np.exp(-x) + math.sqrt(abs(x))


def lists(x):
    L = []
    for k in range(4): L.append(x * k)
    return sum(L) + len(L) + L[-1]


def filt(x): return sum([x + k for k in range(4) if x > k])


def counters(x, n):
    c = 0
    for i in range(n):
        for j in range(i):
            if x > j: c += 1
            elif x < -j: c -= 1
    return c


def twoexits(x, y):
    k = 0
    while x < 100:
        x = x * 2 + 1
        if x > y: return -x
        k += 1
        if k == 7: break
    else: return x + 1000
    return x + k


def rangen(x, n):
    s = 0.0
    for i in range(n, 0, -2):
        s = s + x / i
    return s


def nonl(x):
    n = 0

    def g():
        nonlocal n
        n += 1
    g()
    return n + x


def late(x):
    y = x
    g = lambda: y
    y = x + 1
    return g()


def dflt(x, k=3, *, s=2.0): return x * k + s


def tryzero(x):
    try: return 1 / x
    except ZeroDivisionError: return 0.0


def tryloop(x, n):
    bad = 0
    for i in range(n):
        try: x = 1 / (x - i)
        except ZeroDivisionError: bad += 1; x = 0.5
    return x + bad


def inner_raises(x):
    def g(v):
        if v < 0: raise ValueError("neg")
        return math.sqrt(v)
    try: return g(x) + g(x - 1)
    except ValueError: return -1.0
    finally: pass


class Acc:
    def __init__(self, v): self.v, self.n = v, 0
    def add(self, d): self.v += d; self.n += 1; return self

    @property
    def mean(self): return self.v / self.n if self.n > 0 else 0.0


def objects(x):
    a = Acc(0.0)
    for k in range(5):
        if x > k: a.add(x - k)
    return a.mean


def clamp(x, lo=0.0, hi=1.0): return min(max(x, lo), hi)


def starred(x):
    a, *b = (x, 2.0, 3.0)
    return a * b[0] if a > 1 else b[1]


def matchseq(x, y):
    match (x, y):
        case (0, b): return b * 2
        case (a, 0): return a * 3
        case _: return x + y


def formatted(x):
    if x < 0: raise ValueError(f"bad {x:.2f}")
    return x


def srt(x, y): return sorted([x, y, 1.0])[1]


def gray(x):
    f = (lambda v: v * 2) if x > 0 else (lambda v: v * 3)
    return f(x) + 1


def whileelse_state(x):
    best, k = None, 0
    while k < 4:
        if x > k: best = k
        k += 1
    return -1 if best is None else best


def concrete_loop(x):
    c = 1
    for k in range(1, 11): c *= k
    return x * c if x > 0 else [1.0, 2.0, 3.0][c % 3]


def wide(x):
    s = 0
    for k in range(5): s = s + x
    return s


def big(n):
    k = 1
    for i in range(n): k = k * 3
    return k


class Pair:
    def __init__(self, r, i): self.r, self.i = r, i
    def __add__(self, o): return Pair(self.r + o.r, self.i + o.i)
    def __mul__(self, o): return Pair(self.r * o.r - self.i * o.i, self.r * o.i + self.i * o.r)
    def norm2(self): return self.r * self.r + self.i * self.i


def esc(cr, ci):
    z, c = Pair(0.0, 0.0), Pair(cr, ci)
    for k in range(200):
        z = z * z + c
        if z.norm2() > 4: return k
    return 200


def lst(x, n):
    v = [x, 1.0]
    for _ in range(n): v = [v[1], v[0] + v[1]]
    return v[0], v[1]


def fibs(x, n):
    a, b = x, 1.0
    for _ in range(n): a, b = b, a + b
    return [a, b]


def inplace(x, n):
    v = [0, 0.0]
    for i in range(n):
        v[i % 2 if False else 0] += 1
        v[1] += x
    return v[0] * v[1]


def maybe(x, n):
    for i in range(n):
        if x > i: last = i
    return last


def wtrue(x):
    k = 0
    while True:
        if x > 50: break
        x = x * 2 + 1
        k += 1
        if k > 20: return -1.0
    return x + k


def nestedfor(x, n):
    for i in range(n):
        for j in range(n):
            if i * j > x: break
            if i + j > 2 * x: return i * 10 + j
        else: continue
        x = x + 0.5
    else: x = x - 1
    return x


def innerrec(x, n):
    def go(v, m):
        if m == 0: return v
        return go(v, m - 1) * 2 + 1
    return go(x, n)


def rec_in_loop(x, n):
    s = 0.0
    for i in range(n): s = s + power(x, i)
    return s


def power(x, n): return 1.0 if n == 0 else x * power(x, n - 1)


class P:
    k = 2.0
    def go(self, x, n): return x if n == 0 else self.go(x, n - 1) * self.k


OBJ = P()


def method(x, n): return OBJ.go(x, n)


def kwrec(x, n): return x if n == 0 else kwrec(x, n=n - 1) + 1


def tree64(x):
    def go(lo, hi):
        if hi - lo == 1: return float(lo)
        m = (lo + hi) // 2
        return go(lo, m) if x < m else go(m, hi)
    return go(0, 64)


def six(a, b, c, d, e, g):
    s = 0.0
    if a > 0: s = s + a
    if b > 0: s = s * b
    if c > 0: s = s - c
    if d > 0: s = s + d * d
    if e > 0: s = s / e
    if g > 0: s = s + 1
    return s


def withs(x):
    with contextlib.suppress(ValueError):
        if x > 1: x = x * 2
    return x


def raises(x):
    if x < -1: raise ValueError("low")
    if x > 5: raise KeyError("high")
    try:
        if x > 3: raise IndexError("mid")
        y = 10 / x
    except (IndexError, ZeroDivisionError): y = -1.0
    else: y = y + 1
    finally: x = x + 1
    return y + x


def asserts(x):
    for i in range(5):
        assert x > i - 2, f"too small at {i}"
        x = x - 0.25
    return x


def lang(x, n):
    match n:
        case 0: return x
        case 1 | 2: return x * n
        case k if k > 4: return x - k
    return -x


def any_short(x): return any(x > k for k in range(5)), all(x < k for k in (7, 8))


def mixed(x, n): return (n if x > 0 else x) // 2


def captured(x): return x * SCALE + len(TAB)


SCALE, TAB = 3.0, [1, 2]


def dd(x):
    d = {"a": x, "b": 2.0}
    d["a"] = d["a"] + 1
    if x > 0: d["b"] = x
    return d["a"] * d["b"]


def enum(x):
    s = 0.0
    for i, (a, b) in enumerate(zip((1.0, x, 3.0), range(3))): s += a * b - i
    return s


def comp2(x): return sum(i * j * x for i in range(3) for j in range(i) if i + j < x)


def starargs(*a, **k): return a[0] * k.get("s", 1.0) + len(a)


def callstar(x): return starargs(*(x, 2.0), **{"s": x})


def intcount(x):
    n = 0
    while x > 1: x = x / 2; n += 1
    return n


def foldtwo(x, n):
    a = 0
    for i in range(n): a = a + i if x > i else a * 0.5
    return a


CASES = [
    (poly, ONE), (polybig, ONE), (polyidx, ONE), (lists, ONE), (filt, ONE), (counters, COUNTED),
    (twoexits, TWO), (rangen, COUNTED), (nonl, ONE), (late, ONE), (dflt, ONE),
    (functools.partial(dflt, k=4.0), ONE),
    (tryzero, ONE), (tryloop, COUNTED), (inner_raises, ONE), (objects, ONE), (clamp, ONE), (starred, ONE),
    (matchseq, TWO), (formatted, ONE), (srt, TWO), (gray, ONE), (whileelse_state, ONE), (concrete_loop, ONE),
    (wide, ONE), (big, [(n,) for n in range(30)]),
    (esc, [(-.75, .1), (1., 0.), (.3, .5)]), (lst, [(2., n) for n in range(5)]),
    (fibs, [(2., n) for n in range(5)]),
    (inplace, [(2., n) for n in range(5)]),
    (maybe, [(2.5, n) for n in range(5)] + [(-1., 3)]),
    (wtrue, NO_INF), (nestedfor, COUNTED_NO_INF), (innerrec, COUNTED), (rec_in_loop, COUNTED), (method, COUNTED),
    (kwrec, COUNTED), (tree64, NO_INF), (six, [xs * 3 for xs in TWO]),
    (withs, ONE), (raises, NO_INF), (asserts, NO_INF),
    (lang, COUNTED), (any_short, ONE), (mixed, COUNTED_NO_INF), (captured, ONE), (dd, ONE), (enum, ONE),
    (comp2, ONE),
    (callstar, ONE), (intcount, NO_INF), (foldtwo, COUNTED_NO_INF)]


@pytest.mark.parametrize("f, inputs", CASES, ids=[getattr(f, "__name__", "partial") for f, _ in CASES])
def test_functions_agree_with_python(f, inputs):
    assert differences(f, inputs) == []


def test_math_functions_are_those_of_the_program():
    """Elementary functions are tlgrad's, within an ulp or two of the C library's."""
    import tlgrad as tl
    x = [v for v, in FINITE]
    np.testing.assert_allclose(np.asarray(tl.map(sine)(tl.tensor(x))), [sine(v) for v in x], rtol=4e-16)
