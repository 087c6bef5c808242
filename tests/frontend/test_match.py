"""`match`, starred unpacking, and powers of integers, read by the front end, against plain Python."""
import functools

import pytest

import tlgrad as tl
from tlgrad.frontend.graph import graph

from frontend.same_as_python import ONE, differences


class Point:
    __match_args__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y


def sequences(x):
    match (x, 2.0) if x > 1 else (x, 3.0, 4.0):
        case [a, b] if a > b:
            return a - b
        case (a, *rest) if a < 0:
            return rest[0] * a
        case [_, (5.0 | 6.0)]:
            return 0.0
        case _:
            return x


def mappings(x):
    match {"k": x, "n": 2.0}:
        case {"k": _, "q": w}:
            return w
        case {"k": v} if v > 0:
            return v * 10
        case {"n": n}:
            return n


def classes(x):
    match Point(x, 3.0):
        case Point(x=0.5, y=second):
            return second
        case Point(a, b) if a > b:
            return a + b
        case Point():
            return -1.0


def kinds(x):
    match x:
        case int():
            return 5.0
        case float(v) if v > 0:
            return v * 2
        case bool() | str():
            return 0.0
        case _:
            return x


def starred(x):
    a, *b, c = (x, 2.0, 3.0, x * 2)
    first, *none = [a]
    return first * b[0] + b[1] * c if a > 1 else c + len(none)


@pytest.mark.parametrize("f", [sequences, mappings, classes, kinds, starred], ids=lambda f: f.__name__)
def test_patterns_are_read(f):
    assert not isinstance(graph(f), str), graph(f)
    assert differences(f, ONE) == []


def test_integers_to_integer_powers():
    def f(b, n):
        return b ** n if n >= 0 else 0
    assert differences(f, [(b, n) for b in (-3, 0, 1, 2, 7) for n in (-1, 0, 1, 5, 22)]) == []
    assert differences(lambda n: 2.0 ** n, [(n,) for n in (-3, 0, 5)]) == []
    assert differences(lambda b: b ** -2 if b != 0 else 0.0, [(b,) for b in (-2, 0, 4)]) == []
    with pytest.raises(ValueError, match=r"an integer to the power -2 .* write float\(base\) \*\* n"):
        tl.map(lambda b, n: b ** n)(tl.tensor([2, 3]), tl.tensor([3, -2]))


def test_a_global_named_like_a_builtin_does_not_reach_f_strings():
    scope = {"format": None, "str": None}
    exec("def f(x):\n if x < 0: raise ValueError(f'{x} {x:.1f}')\n return x", scope)
    with pytest.raises(ValueError, match="-1.5 -1.5"):
        tl.map(scope["f"])(tl.tensor([-1.5]))


def doubled(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        return f(*args, **kwargs) * 2 if args[0] > 0 else f(*args, **kwargs)
    return wrapper


@doubled
def decorated(x, k=3.0):
    return x * k if x < 5 else x


def test_decorated_functions_take_the_arguments_of_the_wrapper():
    assert differences(lambda x: decorated(x) + decorated(x, k=1.0) if x > -2 else x, ONE) == []
