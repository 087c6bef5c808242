"""What holds for every test: nothing global changes, and no trace is left running."""
import gc
import os

import mpmath
import numpy as np
import pytest

from tlgrad import fft, linalg, special          # noqa: F401: their primitives are loaded late
from tlgrad.core.primitive import PRIMITIVES
from tlgrad.core.trace import EVAL, Tracer, current_trace
from tlgrad.ops.orders import current_order


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", default=False,
                     help="write the golden texts of tests/golden instead of comparing with them")


def _is_ours(prim):
    return getattr(prim.abstract, "__module__", "tlgrad").split(".")[0] == "tlgrad"


def global_state():
    """What a call must leave as it found it; primitives of tlgrad itself may be loaded late."""
    return {"trace": current_trace(), "order": current_order(), "errstate": np.geterr(),
            "mpmath precision": mpmath.mp.prec, "folder": os.getcwd(),
            "primitives of others": sorted(n for n, p in PRIMITIVES.items() if not _is_ours(p)),
            "environment": hash(frozenset(os.environ.items()) - {
                item for item in os.environ.items() if item[0] == "PYTEST_CURRENT_TEST"})}


@pytest.fixture(autouse=True)
def seal():
    """Global state is what it was, also after a test that fails inside a transform."""
    before = global_state()
    assert before["trace"] is EVAL, "an earlier test left a trace running"
    assert before["order"] == "ordered"
    yield
    after = global_state()
    changed = [name for name in before if before[name] != after[name]]
    assert not changed, f"the test changed {changed}: {[after[n] for n in changed]}"


def live_tracers():
    """Tracers of any trace that are still reachable."""
    gc.collect()
    return [x for x in gc.get_objects() if issubclass(type(x), Tracer)]


@pytest.fixture
def no_leaks():
    """No tracer that the test made outlives it."""
    before = len(live_tracers())
    yield
    left = live_tracers()[before:]
    assert not left, f"{len(left)} tracers are still alive, e.g. {left[-1]!r}"


@pytest.fixture
def golden(request):
    """golden(name, text): compares with tests/golden/name.txt, or writes it with --update-golden."""
    folder = os.path.join(os.path.dirname(__file__), "golden")

    def check(name, text):
        path = os.path.join(folder, name + ".txt")
        if request.config.getoption("--update-golden"):
            os.makedirs(folder, exist_ok=True)
            with open(path, "w") as file:
                file.write(text + "\n")
        with open(path) as file:
            assert text + "\n" == file.read(), f"{name} differs; if that is wanted, run pytest --update-golden"
    return check


@pytest.fixture(autouse=True)
def documented_names(doctest_namespace):
    """Names that docstrings use without importing them."""
    import tlgrad
    doctest_namespace.update(tl=tlgrad, np=np)
