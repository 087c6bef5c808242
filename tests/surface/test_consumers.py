"""SciPy, scikit-learn and array-api-extra on tensors and inside `grad`; assignment by such libraries."""
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import tlgrad as tl
import tlgrad.numpy as tn
from tlgrad.core import writing
from tlgrad.errors import MaskShapeError, MutationError

HERE = os.path.dirname(os.path.abspath(__file__))

#: what cannot run, and why: the library turns the values into NumPy arrays or Python numbers itself
WITHOUT_SLOPE = {
    "np.asarray inside": ["signal.convolve", "signal.detrend", "signal.savgol_filter", "ndimage.gaussian_filter",
                          "cluster.vq.vq", "cluster.hierarchy.linkage"],
    "float() inside": ["mean_squared_error", "r2_score", "LogisticRegression"],
    "0 / 0 in a branch that is overwritten": ["StandardScaler"],
    "a singular value is 0": ["LinearDiscriminantAnalysis"],
}


@pytest.fixture(scope="module", params=["values", "slopes"])
def said(request):
    run = subprocess.run([sys.executable, os.path.join(HERE, "consumer_programs.py"), request.param],
                         capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr
    return request.param, json.loads(run.stdout)


def test_libraries_run_on_tensors_and_inside_grad(said):
    which, said = said
    assert {name: message for name, message in said.items() if message} == {}
    assert len(said) >= {"values": 170, "slopes": 130}[which]
    if which == "slopes":
        assert not set(said) & {name for names in WITHOUT_SLOPE.values() for name in names}


# ---- assignment ----

def library(source, **names):
    """Functions of a module that counts as a library of the array API standard."""
    scope = {"__name__": "array_api_extra.made_up", "xp": tn, **names}
    exec(source, scope)
    return scope


def test_code_of_users_cannot_assign():
    x = tn.zeros(3)
    with pytest.raises(MutationError, match=r"x\.at\[0\]\.set"):
        x[0] = 1.0
    with pytest.raises(MutationError, match="immutable"):
        tl.grad(lambda v: v.__setitem__(0, 1.0))(x)
    assert x.tolist() == [0, 0, 0]


def test_a_package_that_follows_the_standard_can_be_named():
    assert "scipy" in writing.WRITERS and not writing.may_write()


LIBRARY = library("""
def fill(x):
    out = xp.empty(3)
    out[0] = x[0] * x[1]
    out[1:] = x[1:]**2
    out[2] += x[0]
    return out

def keep_first(x, v):
    y = x * x                     # holds x as a residual
    x[0] = v
    return xp.sum(y) + xp.sum(x * x)

def through_views(x):
    x = xp.asarray(x, copy=True)
    row = x[1, ...]
    xp.reshape(x, (-1,))[::4] = 7.0
    x.T[0, 2] = 5.0
    row[2] = row[2] + 1
    return x, row

def masked(x):
    x = xp.asarray(x, copy=True)
    x[x > 1.5] = 0.0
    x[xp.asarray(False)] = 9.0
    return x

def scalar(x):
    x = xp.asarray(x, copy=True)
    y = x * 3
    x[...] = 2.0
    return x, y + x

def through_a_view(x):
    x[0][1] = 4.0

def first(x, v):
    x[0] = v
""")
X = tl.tensor([1.0, 2.0, 3.0])


def test_libraries_fill_arrays_in_every_transform():
    fill = LIBRARY["fill"]
    assert fill(X).tolist() == [2, 4, 10]
    right = [[2, 1, 0], [0, 4, 0], [1, 0, 6]]
    assert tl.jacrev(fill)(X).tolist() == tl.jacfwd(fill)(X).tolist() == right
    assert tl.run(fill)(X).tolist() == [2, 4, 10] and tl.run(tl.jacrev(fill))(X).tolist() == right
    assert tl.vmap(fill)(tn.stack([X, 2 * X])).tolist() == [[2, 4, 10], [8, 16, 38]]
    assert tl.hessian(lambda x: fill(x)[0])(X).tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]


def test_what_was_computed_before_an_assignment_keeps_its_values():
    f = lambda w: LIBRARY["keep_first"](tn.asarray([1.0, 2.0]) * w, 5.0)
    value, slope = tl.value_and_grad(f)(3.0)
    assert value.item() == 9 + 36 + 25 + 36 and slope.item() == 2 * 3 * (1 + 4) + 2 * 3 * 4
    c = tl.tensor([1.0, 2.0])                                      # a captured tensor of the user
    pulled = tl.vjp(lambda w: w * c, 3.0)[1]
    g = lambda w: tn.sum(w * c) + 0 * LIBRARY["keep_first"](tn.asarray(c, copy=True), 9.0)
    assert tl.grad(g)(1.0).item() == 3 and pulled(tl.tensor([1.0, 1.0]))[0].item() == 3 and c.tolist() == [1, 2]


def test_inside_a_transform_constants_keep_what_was_read_from_them():
    def f(w):
        c = tn.asarray([2.0, 3.0])
        y = w * c                                                  # c is a residual
        LIBRARY["first"](c, 100.0)
        return tn.sum(y * y) + tn.sum(c)
    assert tl.grad(f)(1.0).item() == tl.grad(tl.run(f))(1.0).item() == 26
    assert tl.run(f)(1.0).item() == f(1.0).item() == 116

    def g(w):
        c = tn.asarray(2.0)
        y = w * c                                                  # c is a literal
        LIBRARY["scalar"](c)
        return y
    assert tl.run(g)(1.0).item() == 2 and tl.grad(g)(1.0).item() == 2


def test_a_compiled_function_sees_a_captured_value_that_was_assigned_to():
    c = tn.asarray([1.0, 2.0])
    f = tl.run(lambda x: x * c)
    for _ in range(6):
        assert f(2.0).tolist() == [2, 4]
    LIBRARY["first"](c, 7.0)
    assert f(2.0).tolist() == [14, 4]


def test_views_reach_their_base_and_bases_their_views():
    start = np.arange(12.0).reshape(4, 3)
    for f in (lambda x: LIBRARY["through_views"](x), tl.run(LIBRARY["through_views"])):
        x, row = f(tl.tensor(start))
        right = start.copy()
        right.ravel()[::4] = 7
        right.T[0, 2] = 5
        right[1, 2] += 1
        assert np.array_equal(x, right) and np.array_equal(row, right[1])
    slope = tl.grad(lambda x: LIBRARY["through_views"](x)[0].sum())(tl.tensor(start))
    gone = np.ones((4, 3))
    gone.ravel()[::4] = gone[2, 0] = 0
    assert np.array_equal(slope, gone) and not writing._views and not writing._views_of


def test_masks_and_values_of_shape_0():
    assert LIBRARY["masked"](X).tolist() == [1, 0, 0]
    assert tl.grad(lambda x: LIBRARY["masked"](x).sum())(X).tolist() == [1, 0, 0]
    assert [v.item() for v in LIBRARY["scalar"](tl.tensor(1.0))] == [2, 5]
    assert X[True].shape == (1, 3) and X[tl.tensor(False)].shape == (0, 3) and X[True, 1].tolist() == [2]
    assert X.at[True].set(9.0).tolist() == [9, 9, 9] and X.at[False].set(9.0).tolist() == X.tolist()
    with pytest.raises(MaskShapeError) as caught:
        X[tl.tensor([True, False])]
    assert isinstance(caught.value, IndexError)


@pytest.mark.parametrize("mode, right", [("set", [1, 4, 4]), ("add", [1, 6, 7]), ("mul", [1, 8, 12]),
                                         ("min", [1, 2, 3]), ("max", [1, 4, 4])])
def test_one_value_at_a_traced_mask(mode, right):
    f = tl.run(lambda x: getattr(x.at[x > 1.5], mode)(4.0))
    assert f(X).tolist() == right
    with pytest.raises(MaskShapeError):
        tl.run(lambda x: x.at[(x > 1.5)[:2]].set(1.0))(X)


def test_a_value_of_an_inner_transform_cannot_reach_an_outer_array():
    c = tn.asarray([1.0, 2.0])
    with pytest.raises(MutationError, match="from outside that transform"):
        tl.grad(lambda w: LIBRARY["first"](c, w))(1.0)
    base = tn.asarray([[1.0, 2.0]])
    with pytest.raises(MutationError, match="from outside that transform"):
        tl.run(lambda w: LIBRARY["through_a_view"](base))(1.0)
    assert c.tolist() == [1, 2] and base.tolist() == [[1, 2]]


def test_functions_that_write_in_numpy_write_for_libraries():
    names = library("def put(x): xp.put_along_axis(x, xp.asarray([1]), xp.asarray([9.0]), axis=0)\n"
                    "def diagonal(x): xp.fill_diagonal(x, 0.0)\n")
    x, a = tn.asarray([1.0, 2.0]), tn.ones((2, 2))
    names["put"](x), names["diagonal"](a)
    assert x.tolist() == [1, 9] and a.tolist() == [[0, 1], [1, 0]]
