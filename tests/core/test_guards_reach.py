"""A captured value is always current, also behind classes, modules, functions and builtins."""
import abc
import collections
import ctypes
import dataclasses
import enum
import functools
import random
import sys
import threading
import time
import types
import typing
import uuid
from datetime import datetime
from uuid import uuid4

import numpy as np
import pytest

import tlgrad as tl

PACKAGE = types.ModuleType("package_of_this_test")
PACKAGE.part = types.ModuleType("package_of_this_test.part")
LIMIT = 2.0


class Config:
    rate = 2.0

    @classmethod
    def scaled(cls, x):
        return x * cls.rate

    @staticmethod
    def limited(x):
        return x * LIMIT

    def apply(self, x):
        return x * 2.0


class Special(Config):
    def apply(self, x):
        return super().apply(x)


class Table(dict):
    scale = 2.0


class Kind(type):
    rate = 2.0


class OfKind(metaclass=Kind):
    pass


class MadeUp:
    """Attributes that a method makes; it raises KeyError for others."""

    numbers = {"rate": 2.0}

    def __getattr__(self, name):
        return MadeUp.numbers[name]


def base(x):
    return x * base.scale


def imports_inside(x):
    import package_of_this_test as package
    return x * package.scale


def imports_a_name(x):
    from package_of_this_test import scale
    return x * scale


def late_name(x):
    try:
        return x * LATE                # noqa: F821
    except NameError:
        return x * 2.0


def _module_in_a_cell():
    module = PACKAGE
    return lambda x: x * module.scale


def _partial_with_keywords():
    f = functools.partial(lambda x, k: x * k, k=2.0)
    return f, lambda v: f.keywords.update(k=v)


def _table():
    table = Table()
    table.scale = 2.0
    return (lambda x: x * table.scale), lambda v: setattr(table, "scale", v)


def _keyword_defaults():
    def f(x, *, k=2.0):
        return x * k
    return f, lambda v: f.__kwdefaults__.update(k=v)


def _cleared_cache():
    held = [2.0]

    @functools.lru_cache
    def scale():
        return held[0]

    def change(v):
        held[0] = v
        g(1.0)                         # what is cached is still the old number
        scale.cache_clear()

    def f(x):
        return x * scale()
    g = tl.run(f)
    return f, change


def _compiled_object():
    number = ctypes.c_double(2.0)
    return (lambda x: x * number.value), lambda v: setattr(number, "value", v)


def _tensor_default():
    def f(x, k=(tl.tensor([2.0, 2.0]),)):
        return x * k[0][0]
    return f, lambda v: setattr(f, "__defaults__", ((tl.tensor([v, v]),),))


def _method_of_a_base():
    return Special().apply, lambda v: setattr(Config, "apply", lambda self, x: x * v)


def _read_rate_of(thing):
    return lambda x: x * thing.rate


def set_global(name):
    return lambda v: globals().__setitem__(name, v)


def set_scale(v):
    PACKAGE.scale = v


def set_rate(v):
    Config.rate = v


KINDS = {
    "class": lambda: ((lambda x: x * Config.rate), set_rate),
    "class_method": lambda: (Config.scaled, set_rate),
    "class_method_by_name": lambda: ((lambda x: Config.scaled(x)), set_rate),
    "static_method": lambda: ((lambda x: Config.limited(x)), set_global("LIMIT")),
    "super": _method_of_a_base,
    "function_attribute": lambda: (base, lambda v: setattr(base, "scale", v)),
    "submodule": lambda: ((lambda x: x * PACKAGE.part.k), lambda v: setattr(PACKAGE.part, "k", v)),
    "module_in_a_cell": lambda: (_module_in_a_cell(), set_scale),
    "getattr_of_a_module": lambda: ((lambda x: x * getattr(PACKAGE, "scale")), set_scale),
    "import_inside": lambda: (imports_inside, set_scale),
    "import_of_a_name": lambda: (imports_a_name, set_scale),
    "partial_keywords": _partial_with_keywords,
    "dict_subclass_attribute": _table,
    "tuple_of_tensors_as_default": _tensor_default,
    "keyword_defaults_in_place": _keyword_defaults,
    "cleared_cache": _cleared_cache,
    "compiled_object": _compiled_object,
    "metaclass": lambda: ((lambda x: x * OfKind.rate), lambda v: setattr(Kind, "rate", v)),
    "attribute_made_by_a_method": lambda: (_read_rate_of(MadeUp()), lambda v: MadeUp.numbers.update(rate=v)),
    "eval": lambda: ((lambda x: eval("x * LIMIT")), set_global("LIMIT")),
    "globals": lambda: ((lambda x: x * globals()["LIMIT"]), set_global("LIMIT")),
    "name_defined_later": lambda: (late_name, set_global("LATE")),
    "builtin_shadowed": lambda: ((lambda x: x * max(1.0, 2.0)),
                                 lambda v: globals().__setitem__("max", lambda *_: v)),
}


@pytest.fixture(autouse=True)
def restore(monkeypatch):
    monkeypatch.setitem(sys.modules, PACKAGE.__name__, PACKAGE)
    monkeypatch.setattr(Config, "rate", 2.0)
    monkeypatch.setattr(Config, "apply", Config.apply)
    monkeypatch.setitem(globals(), "LIMIT", 2.0)
    PACKAGE.scale = PACKAGE.part.k = base.scale = 2.0
    monkeypatch.setattr(Kind, "rate", 2.0)
    monkeypatch.setattr(MadeUp, "numbers", {"rate": 2.0})
    yield
    globals().pop("LATE", None)
    globals().pop("max", None)


@pytest.mark.parametrize("kind", KINDS)
def test_the_next_call_sees_the_change(kind):
    f, change = KINDS[kind]()
    g = tl.run(f)
    assert float(g(1.0)) == float(g(1.0)) == 2.0
    change(5.0)
    assert float(g(1.0)) == float(g(1.0)) == 5.0


def test_an_open_file_is_read_anew(tmp_path):
    path = tmp_path / "number"
    path.write_text("2.0")
    with open(path) as file:
        g = tl.run(lambda x: x * (file.seek(0) + float(file.read())))
        assert float(g(1.0)) == 2.0
        path.write_text("5.0")
        assert float(g(1.0)) == 5.0


@pytest.mark.parametrize("draw", [random.random, np.random.rand, np.random.default_rng(0).random,
                                  random.Random(0).gauss, lambda: random.random(), lambda: np.random.rand()],
                         ids=["random", "np.random", "generator", "gauss", "in_a_function", "np_in_a_function"])
def test_random_numbers_of_python_are_drawn_anew(draw):
    g = tl.run(lambda x: x * draw())
    assert len({float(g(1.0)) for _ in range(5)}) > 1


@pytest.mark.parametrize("draw", [lambda: datetime.now().microsecond, lambda: time.perf_counter_ns() % 1000,
                                  lambda: uuid.uuid4().int % 1000, lambda: uuid4().int % 1000],
                         ids=["datetime", "time", "uuid", "uuid_by_name"])
def test_clocks_are_read_anew(draw):
    g = tl.run(lambda x: x * draw())
    assert len({float(g(1.0)) for _ in range(9)}) > 1


def test_what_belongs_to_a_thread_is_read_in_that_thread():
    local = threading.local()
    local.scale = 2.0
    g = tl.run(lambda x: x * local.scale)
    found = []

    def other():
        local.scale = 5.0
        found.append(float(g(1.0)))
    assert float(g(1.0)) == float(g(1.0)) == 2.0
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert found == [5.0] and float(g(1.0)) == 2.0


DATE = datetime(2026, 1, 2)
Pair = collections.namedtuple("Pair", "left right")


class Typed(typing.NamedTuple):
    left: object
    right: list[int] | None = None


@dataclasses.dataclass
class Record:
    left: object
    right: typing.Optional[list[int]] = dataclasses.field(default_factory=list)


class Colour(enum.Enum):
    RED = 2.0


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self):
        """The area."""


class Square(Shape):
    def area(self):
        return 2.0


@pytest.mark.parametrize("f", [
    lambda x: Pair(x, x).left, lambda x: Typed(x).left, lambda x: Record(x).left,
    lambda x: x * Colour.RED.value, lambda x: x * DATE.day, lambda x: x * Square().area(),
    lambda x: x if isinstance(x, tl.Tensor) else np.sin(x) * getattr(np, "pi")],
    ids=["namedtuple", "typed_namedtuple", "dataclass", "enum", "date", "abstract_class", "numpy"])
def test_everyday_classes_are_traced_once(f):
    g = tl.run(f)
    g(1.0)
    before = tl.cache_info().traces
    g(2.0)
    assert tl.cache_info().traces == before
