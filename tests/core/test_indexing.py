"""``x[...]`` and ``x.at[...]`` against NumPy, on random keys."""
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import tlgrad as tl
from tlgrad import errors

SHAPES = [(), (0,), (1,), (4,), (3, 4), (2, 3, 4), (2, 0, 3), (1, 5, 1)]
MODES = ["set", "add", "mul", "min", "max"]


def entries(shape):
    return np.array(np.arange(float(np.prod(shape, dtype=int))).reshape(shape) + 0.5)


@st.composite
def keys(draw, shape, arrays=True):
    """A key that NumPy takes for `shape`."""
    items, used, dots, lead = [], 0, False, draw(st.sampled_from([(), (2,), (2, 1)]))
    while used < len(shape):
        n = shape[used]
        kinds = ["slice", "new", "stop"] + ["dots"] * (not dots) + ["int"] * (n > 0) \
            + ["array", "mask"] * (arrays and n > 0)
        kind = draw(st.sampled_from(kinds))
        if kind == "stop":
            break
        if kind == "dots":
            skip = draw(st.integers(0, len(shape) - used))
            items.append(Ellipsis)
            used, dots = used + skip, True
            if skip + 0 < len(shape) - used + skip:            # what follows counts from the right
                items += [draw(slices(shape[k])) for k in range(used, len(shape))]
            break
        if kind == "new":
            items.append(None)
            if len(items) > 6:
                break
            continue
        if kind == "slice":
            items.append(draw(slices(n)))
        elif kind == "int":
            items.append(draw(st.integers(-n, n - 1)))
        elif kind == "mask":
            if any(isinstance(i, (np.ndarray, list)) for i in items):
                items.append(slice(None))
            else:
                items.append(np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n))))
                arrays = False
        else:
            size = int(np.prod(lead, dtype=int))
            values = draw(st.lists(st.integers(-n, n - 1), min_size=size, max_size=size))
            items.append(np.array(values, dtype=np.int64).reshape(lead))
        used += 1
    return items[0] if len(items) == 1 else tuple(items)


def slices(n):
    bound = st.one_of(st.none(), st.integers(-n - 2, n + 2))
    step = st.sampled_from([None, 1, 2, 3, -1, -2])
    return st.builds(slice, bound, bound, step)


@settings(max_examples=400, deadline=None)
@given(data=st.data(), shape=st.sampled_from(SHAPES))
def test_reading_is_numpy(data, shape):
    key = data.draw(keys(shape))
    x = entries(shape)
    found, expected = tl.tensor(x)[key], x[key]
    assert found.shape == expected.shape
    np.testing.assert_array_equal(np.asarray(found), expected)


@settings(max_examples=120, deadline=None)
@given(data=st.data(), shape=st.sampled_from(SHAPES))
def test_the_gradient_of_reading_counts_the_reads(data, shape):
    key = data.draw(keys(shape))
    x = entries(shape)
    weights = np.random.default_rng(0).integers(1, 9, x[key].shape).astype(float)
    expected = np.zeros(shape)
    np.add.at(expected, key, weights)
    found = tl.grad(lambda v: tl.sum(v[key] * weights))(tl.tensor(x))
    np.testing.assert_array_equal(np.asarray(found), expected)


@settings(max_examples=200, deadline=None)
@given(data=st.data(), shape=st.sampled_from(SHAPES), mode=st.sampled_from(MODES))
def test_writing_is_numpy(data, shape, mode):
    key = data.draw(keys(shape))
    x = entries(shape)
    value = np.random.default_rng(1).integers(-5, 30, x[key].shape).astype(float)
    expected = x.copy()
    update = {"set": None, "add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}[mode]
    if mode == "set":
        places = np.arange(x.size).reshape(shape)[key]         # NumPy leaves the last writer open; ours is it
        for place, v in zip(np.ravel(places), np.ravel(value)):
            expected.reshape(-1)[place] = v
    else:
        update.at(expected, key, value)
    found = getattr(tl.tensor(x).at[key], mode)(value)
    np.testing.assert_array_equal(np.asarray(found), expected)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), shape=st.sampled_from([(4,), (3, 4), (2, 3, 4)]))
def test_traced_reading_is_eager_reading(data, shape):
    key = data.draw(keys(shape))
    x = tl.tensor(entries(shape))
    assert tl.same_bits(tl.run(lambda v: v[key])(x), x[key])
    lanes = tl.vmap(lambda v: v[key])(tl.stack([x, x + 1]))
    assert tl.same_bits(lanes[1], (x + 1)[key])


def test_integer_tensors_and_traced_integers_are_indices():
    x = tl.tensor(entries((3, 4)))
    for k in (-3, 0, 2):
        assert tl.same_bits(x[tl.tensor(k)], x[k])
        assert tl.same_bits(tl.run(lambda i: x[i])(k), x[k])
        assert tl.same_bits(tl.run(lambda i: x[i, 1:])(k), x[k, 1:])
    assert tl.same_bits(tl.vmap(lambda i: x[i])(tl.tensor([2, -1, 0])), x[np.array([2, -1, 0])])


def test_arrays_apart_come_first():
    x = entries((2, 3, 4))
    key = (np.array([0, 1]), slice(None), np.array([3, 0]))
    assert tl.tensor(x)[key].shape == x[key].shape == (2, 3)
    key = (0, slice(None), np.array([3, 0]))
    assert tl.tensor(x)[key].shape == x[key].shape == (2, 3)


@pytest.mark.parametrize("key, error, said", [
    (5, errors.OutOfBoundsError, "index 5 is out of bounds for axis 0 of size 3"),
    ((0, -5), errors.OutOfBoundsError, "index -5 is out of bounds for axis 1 of size 4"),
    ((0, 0, 0), errors.OutOfBoundsError, "too many indices: 3 for a value of shape"),
    (np.array([0, 3]), errors.OutOfBoundsError, "index 3 is out of bounds for axis 0 of size 3"),
    (1.5, errors.DTypeError, "an index is an integer, slice"), ("a", errors.DTypeError, "got str"),
    (np.array([True, False]), errors.ShapeError, r"mask has shape \(2,\), the indexed axes have shape \(3,\)"),
    ((Ellipsis, Ellipsis), errors.OutOfBoundsError, "at most one"),
    (slice(0, 2, 0), errors.OutOfBoundsError, "step"),
], ids=str)
def test_a_wrong_index_is_explained(key, error, said):
    with pytest.raises(error, match=said):
        tl.tensor(entries((3, 4)))[key]


def test_a_traced_mask_or_bound_is_explained():
    x = tl.tensor(entries((4,)))
    with pytest.raises(errors.ConcretizationError, match=r"tl\.where\(mask, x, 0\)"):
        tl.run(lambda v: v[v > 1])(x)
    with pytest.raises(errors.ConcretizationError, match="tl.dynamic_slice"):
        tl.run(lambda v, n: v[:n])(x, 2)


def test_a_read_out_of_bounds_inside_a_run_is_an_error():
    x = tl.tensor(entries((3,)))
    with pytest.raises(errors.OutOfBoundsError, match="index 7 is out of bounds for axis 0 of size 3"):
        tl.run(lambda v, i: v[i])(x, 7)


def test_at_keeps_the_dtype_and_refuses_loss():
    x = tl.tensor([1, 2, 3])
    assert x.at[0].set(5).dtype is tl.int64
    with pytest.raises(errors.DTypeError, match=r"does not fit int64 without loss"):
        x.at[0].set(tl.tensor(1.5))
    with pytest.raises(errors.ShapeError, match="does not broadcast"):
        x.at[:2].set(tl.tensor([1, 2, 3]))


@pytest.mark.parametrize("mode", MODES)
def test_derivatives_of_at(mode):
    x, v = tl.tensor(entries((3, 4))), tl.tensor([4.0, 5.0])
    tl.testing.check_grads(lambda x, v: getattr(x.at[np.array([0, 2]), np.array([1, 3])], mode)(v), (x, v))
    tl.testing.check_grads(lambda x, v: getattr(x.at[1:, ::2], mode)(v), (x, v))
