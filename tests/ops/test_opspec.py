"""Every primitive against its row of `opspec`: values, partials, transposes, lanes."""
import functools
import itertools

import numpy as np
import pytest
from opspec import M, Scalar, Words, all_rows

import tlgrad as tl
from tlgrad import testing
from tlgrad.core import dtypes
from tlgrad.core.aval import Zero
from tlgrad.core.jaxpr import evaluate_arrays, sub_jaxprs
from tlgrad.core.primitive import PRIMITIVES
from tlgrad.core.tensor import convert_array, tensor
from tlgrad.ops.define import instantiate
from tlgrad.transforms.batch import batch_flat
from tlgrad.transforms.jvp import jvp_flat
from tlgrad.transforms.stage import stage

ROWS = all_rows()
SCALARS = [r for r in ROWS.values() if isinstance(r, Scalar)]
EXAMPLES = [(r, k) for r in ROWS.values() if not isinstance(r, Scalar) for k in range(len(r.calls))]
FLOATS = (dtypes.float64, dtypes.float32, dtypes.bfloat16, dtypes.float16)
LINEAR = ("add", "sub", "neg", "mul", "div", "real", "imag", "conj", "complex", "select", "convert", "broadcast",
          "reshape", "transpose", "reverse", "slice", "pad", "concatenate", "reduce_sum", "dot_general", "gather",
          "scatter", "dynamic_slice", "dynamic_update_slice", "cumsum", "call", "contract", "cond", "sweeps")


def bind(name, *values, **params):
    return PRIMITIVES[name].bind(*values, **params)


def as_list(out):
    return list(out) if isinstance(out, (list, tuple)) else [out]


# ---- completeness ----

def test_every_primitive_has_a_row():
    missing = sorted(set(PRIMITIVES) - set(ROWS))
    assert not missing, f"no row in opspec for {missing}"
    assert not sorted(set(ROWS) - set(PRIMITIVES))


@pytest.mark.parametrize("name", sorted(PRIMITIVES))
def test_every_primitive_has_its_rules(name):
    prim = PRIMITIVES[name]
    assert prim.jvp or prim.nondiff is not None, "a derivative, or a sentence why there is none"
    assert not (prim.jvp and prim.nondiff == ""), "either zero derivatives or a rule"
    assert prim.lower or prim.kind == "general", "an intrinsic for the compiler"
    assert prim.__doc__ and prim.__doc__ is not type(prim).__doc__
    if name not in ("iota", "constant"):
        assert prim.batch is not None
    if name in LINEAR:
        assert prim.transpose is not None


# ---- elementwise: values ----

def sample(row, dtype, n=24):
    """Operands in the row's domain, uniform and by magnitude, rounded to `dtype`."""
    rng = np.random.default_rng(len(row.name) * 7 + dtype.bits)
    columns = []
    for low, high in row.domain:
        flat = rng.uniform(low, high, n // 2)
        size = np.exp(rng.uniform(np.log(1e-3 if low <= 0 else low), np.log(max(high, 1e-2)), n - n // 2))
        sign = rng.choice([-1.0, 1.0], size.size) if low < 0 else 1.0
        columns.append(np.clip(np.concatenate([flat, sign * size]), low, high))
    return [tensor(convert_array(c, dtype)) for c in columns]


def exact(values):
    """Exact mpmath numbers of tensors, one tuple an entry."""
    arrays = [np.asarray(v).astype(np.float64) for v in values]
    return [tuple(M.mpf(float(a[k])) for a in arrays) for k in range(arrays[0].size)]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("row", SCALARS, ids=lambda r: r.name)
def test_value_in_ulps(row, dtype):
    values = sample(row, dtype)
    found = bind(row.name, *values, **row.params)
    assert found.dtype is dtype and found.data.dtype == dtype.storage and found.data.shape == found.shape
    errors = testing.ulp_distance(found, [row.reference(*x) for x in exact(values)])
    bound = row.ulps if dtype is dtypes.float64 else row.narrow
    worst = int(np.argmax(errors))
    assert errors[worst] <= bound + 1e-9, f"{errors[worst]:.3f} ulp at {[v.tolist()[worst] for v in values]}"


@pytest.mark.parametrize("dtype", (dtypes.float64, dtypes.float32), ids=str)
@pytest.mark.parametrize("row", [r for r in SCALARS if r.special], ids=lambda r: r.name)
def test_special_values_by_words(row, dtype):
    for operands, expected in row.special:
        operands = [float(np.finfo(dtype.storage).max) if x == 1e308 else x for x in operands]
        found = bind(row.name, *[tensor(x, dtype) for x in operands], **row.params)
        assert tl.same_bits(found, tensor(expected, dtype)), f"{row.name}{tuple(operands)} is {found}"


@pytest.mark.parametrize("row", [r for r in SCALARS if r.complex_at], ids=lambda r: r.name)
def test_complex_values_and_derivatives(row):
    for dtype, eps in ((dtypes.complex128, 2.0 ** -52), (dtypes.complex64, 2.0 ** -23)):
        for k, z in enumerate(row.complex_at):
            operands = [tensor(w, dtype) for w in (z, 0.7 - 0.2j, 0.1j)[:len(row.domain)]]
            at = [M.mpc(complex(np.asarray(v))) for v in operands]
            found = bind(row.name, *operands, **row.params)
            _close(found, row.reference(*at), 16 * eps, f"value {k}")
            for i in range(len(at)):
                _close(_partial(row, operands, i), _exact_partial(row, at, i, 1), 64 * eps, f"partial {i} at {z}")


def _close(found, expected, tolerance, what):
    gap = abs(M.mpc(complex(np.asarray(found))) - expected)
    assert gap <= tolerance * max(abs(expected), 1e-3), f"{what}: {found}, expected {expected}"


# ---- elementwise: derivatives ----

def _partial(row, values, i):
    """The partial by operand i: the jvp along ones."""
    tangents = [instantiate_one(v) if k == i else Zero(v.aval) for k, v in enumerate(values)]
    _, (slope,) = jvp_flat(lambda *x: [bind(row.name, *x, **row.params)], values, tangents)
    return instantiate(slope)


def instantiate_one(v):
    return tensor(np.ones(v.shape), v.dtype)


def _second(row, values, i, j):
    def slope(*x):
        return [instantiate(t) for t in jvp_flat(
            lambda *y: [bind(row.name, *y, **row.params)], x,
            [instantiate_one(v) if k == i else Zero(v.aval) for k, v in enumerate(x)])[1]]
    along = [instantiate_one(v) if k == j else Zero(v.aval) for k, v in enumerate(values)]
    _, (curve,) = jvp_flat(slope, values, along)
    return instantiate(curve)


def _exact_partial(row, at, i, n):
    """By mpmath's differences at raised precision, with a step relative to the point."""
    x = at[i]
    scale = abs(x) or M.mpf(1)

    def along(t):
        return row.reference(*at[:i], x + t * scale, *at[i + 1:])
    return M.diff(along, 0, n) / scale ** n


@pytest.mark.parametrize("row", [r for r in SCALARS if r.slope is not None], ids=lambda r: r.name)
def test_partials_in_ulps(row):
    values = sample(row, dtypes.float64, 16)
    for i in range(len(values)):
        expected = [_exact_partial(row, x, i, 1) for x in exact(values)]
        errors = testing.ulp_distance(_partial(row, values, i), expected)
        worst = int(np.argmax(errors))
        assert errors[worst] <= row.slope + 0.5, \
            f"partial {i}: {errors[worst]:.2f} ulp at {[v.tolist()[worst] for v in values]}"


@pytest.mark.parametrize("row", [r for r in SCALARS if r.curve is not None], ids=lambda r: r.name)
def test_second_partials_in_ulps(row):
    values = sample(row, dtypes.float64, 12)
    for i in range(len(values)):
        expected = [_exact_partial(row, x, i, 2) for x in exact(values)]
        errors = testing.ulp_distance(_second(row, values, i, i), [e if abs(e) > 1e-25 else 0 for e in expected])
        worst = int(np.argmax(errors))
        assert errors[worst] <= row.curve + 0.5, \
            f"second partial {i}: {errors[worst]:.2f} ulp at {[v.tolist()[worst] for v in values]}"


@pytest.mark.parametrize("row", [r for r in SCALARS if r.singular], ids=lambda r: r.name)
def test_limits_and_conventions(row):
    for operands, partials in row.singular:
        values = [tensor(x) for x in operands]
        found = [float(_partial(row, values, i)) for i in range(len(values))]
        assert found == list(partials), f"{row.name}{operands}: {found}"
        reverse = tl.vjp(lambda *x: bind(row.name, *x, **row.params), *values)[1](1.0)
        assert [float(ct) for ct in reverse] == list(partials), f"reverse at {operands}"


@pytest.mark.parametrize("row", [r for r in SCALARS if PRIMITIVES[r.name].jvp], ids=lambda r: r.name)
def test_all_modes_agree_to_order_two(row):
    values = [v[:5] for v in sample(row, dtypes.float64, 16)]
    testing.check_grads(lambda *x: bind(row.name, *x, **row.params), tuple(values), order=2, rtol=1e-9)


# ---- every other primitive ----

def example(row, k):
    if isinstance(row, Words):
        operands, params, reference = row.calls[k]
        call = functools.partial(bind, row.name, **params)
    else:
        call, operands, reference = row.calls[k]
    values = [tensor(x) for x in operands]

    def f(*x):
        return as_list(call(*x))
    return f, values, as_list(reference(*operands))


def ids(case):
    return f"{case[0].name}-{case[1]}"


def primitives_in(jaxpr):
    """Names of the primitives of a jaxpr, nested ones included."""
    inner = [primitives_in(sub) for e in jaxpr.eqns for sub in sub_jaxprs(e.params)]
    return {e.prim.name for e in jaxpr.eqns}.union(*inner)


@pytest.mark.parametrize("case", EXAMPLES, ids=ids)
def test_words_of_the_reference(case):
    f, values, expected = example(*case)
    found = f(*values)
    assert len(found) == len(expected)
    for y, e in zip(found, expected):
        assert tl.same_bits(y, np.asarray(e)), f"{y}\nexpected\n{e}"
        assert (y.data.shape, y.data.dtype) == (y.aval.shape, y.aval.dtype.storage), "the abstract rule"


@pytest.mark.parametrize("case", EXAMPLES, ids=ids)
def test_staged_words_are_the_eager_ones(case):
    f, values, _ = example(*case)
    jaxpr, consts = stage(f, [v.aval for v in values])
    assert case[0].name in primitives_in(jaxpr)
    staged = evaluate_arrays(jaxpr, [c.data for c in consts] + [v.data for v in values])
    assert all(tl.same_bits(a, b) for a, b in zip(staged, f(*values)))


@pytest.mark.parametrize("case", [c for c in EXAMPLES if c[0].order], ids=ids)
def test_derivatives_against_differences(case):
    f, values, _ = example(*case)
    narrow = any(y.dtype in (dtypes.float32, dtypes.complex64) for y in (*values, *f(*values)))
    testing.check_grads(f, tuple(values), order=case[0].order, rtol=None if narrow else 1e-11)


BATCHED = EXAMPLES + [(r, None) for r in SCALARS]


@pytest.mark.parametrize("case", [c for c in BATCHED if c[0].name not in ("iota", "constant")], ids=ids)
def test_lanes_are_the_loop(case):
    """Every way of mapping operands, along the first and the last axis, by words."""
    row, k = case
    if k is None:
        values = [v[:3] for v in sample(row, dtypes.float64)]
        values[-1] = values[-1][0] if len(values) > 1 else values[-1]

        def f(*x):
            return [bind(row.name, *x, **row.params)]
    else:
        f, values, _ = example(row, k)
    for mapped in itertools.product((False, True), repeat=len(values)):
        if any(mapped):
            _check_lanes(f, values, mapped)


def _check_lanes(f, values, mapped, size=3):
    for where in (0, -1):
        lanes = [[_lane(v, n) if m else v for v, m in zip(values, mapped)] for n in range(size)]
        stacked = [tensor(np.stack([np.asarray(lane[i].data) for lane in lanes], where)) if m else v
                   for i, (v, m) in enumerate(zip(values, mapped))]
        axes = [(s.ndim - 1 if where else 0) if m else None for s, m in zip(stacked, mapped)]
        outs, out_axes = batch_flat(f, stacked, axes, size)
        expected = [f(*lane) for lane in lanes]
        for j, (y, axis) in enumerate(zip(outs, out_axes)):
            for n in range(size):
                lane = y.data if axis is None else np.take(y.data, n, axis)
                assert tl.same_bits(lane, expected[n][j]), f"result {j}, lane {n}, mapped {mapped}, axis {where}"


def _lane(v, n):
    """Another operand of the same kind: entries rotated, so that indices stay in range."""
    x = v.data
    if x.ndim:
        return tensor(np.roll(x, n, axis=0))
    if x.dtype.kind == "b":
        return tensor(x ^ (n % 2 == 1))
    return tensor(np.maximum(x - n, 0) if x.dtype.kind == "i" else x * (n + 1))
