"""Plain NumPy code on tensors and traced values."""
import numpy as np
import pytest

import tlgrad as tl
import tlgrad.numpy as tn
import tlgrad.protocols                                                     # noqa: F401
from tlgrad.errors import ConcretizationError, MutationError, UnsupportedError

X = tl.tensor([[1.0, 2.0], [3.0, 4.0]])
W = np.array([[1.0, -1.0], [0.5, 2.0]])


@pytest.mark.parametrize("f", [
    lambda x: np.sum(np.sin(x)**2), lambda x: np.sum(np.exp(x) @ W), lambda x: np.sum(W @ x),
    lambda x: np.sum(np.where(x > 2.5, x * x, 0)), lambda x: np.mean(np.concatenate([x, 2 * x])),
    lambda x: np.max(x) * np.min(x), lambda x: np.prod(x), lambda x: np.sum(np.maximum(x, 2.5)),
    lambda x: np.trace(np.dot(x, x.T)), lambda x: np.sum(np.cumsum(x, axis=0)[1]),
    lambda x: np.tensordot(x, W, 2), lambda x: np.std(x), lambda x: x.std() + x.mean(axis=0).sum(),
    lambda x: np.add.reduce(np.multiply.outer(x[0], x[1]).ravel()), lambda x: np.sum(np.float64(2.0) * x),
    lambda x: np.sum(np.stack([x, x], axis=-1).reshape(2, -1)[0]), lambda x: np.sum(np.sort(x, axis=None)[:2]),
])
def test_numpy_code_differentiates(f):
    got, slope = tl.value_and_grad(f)(X)
    assert got.item() == pytest.approx(float(f(np.asarray(X))), rel=1e-14)
    x, h = np.asarray(X), 1e-6
    for k in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[k] = h
        assert slope[k].item() == pytest.approx((f(x + step) - f(x - step)) / (2 * h), rel=1e-7, abs=1e-7)


def test_numpy_code_runs_staged_and_batched():
    def f(x):
        return np.sum(np.tanh(x) * np.arange(2.0), axis=-1)
    assert np.array_equal(tl.run(f)(X), f(X)) and np.array_equal(tl.vmap(f)(X), f(X))


@pytest.mark.parametrize("call, names", [
    (lambda x: np.busday_count(x, x), "no function of that name"),
    (lambda x: np.subtract.reduce(x), "tl.sum"), (lambda x: np.sin(x, where=x > 1), "tl.where")])
def test_what_is_missing_names_what_to_use(call, names):
    with pytest.raises(UnsupportedError, match=names.replace(".", r"\.")):
        call(X)


@pytest.mark.parametrize("call", [
    lambda x: np.sin(x, out=np.zeros((2, 2))), lambda x: np.fill_diagonal(x, 0), lambda x: np.copyto(x, 0),
    lambda x: x.sort(), lambda x: x.fill(0), lambda x: np.add.at(x, 0, 1)],
    ids=["out", "fill_diagonal", "copyto", "sort", "fill", "at"])
def test_writing_into_a_tensor_is_refused_with_the_functional_form(call):
    with pytest.raises(MutationError, match="write|Write"):
        call(X)


def test_filling_a_numpy_array_with_traced_values_names_the_line_and_the_functional_form():
    def f(a):
        b = np.zeros((4, 4))
        b[:2, :2] = a
        return np.sum(b * b)
    with pytest.raises(ConcretizationError, match=r"b\[:2, :2\] = a.*B\.at\[i\]\.set\(x\)"):
        tl.grad(f)(X)

    def g(a):
        return np.sum(tn.zeros((4, 4)).at[:2, :2].set(a)**2)
    assert tl.grad(g)(X).tolist() == [[2, 4], [6, 8]]


def test_filling_one_entry_tells_the_reason():
    def f(b):
        c = np.zeros(2)
        c[0] = b[0] * b[0]
        return c.sum()
    with pytest.raises(ConcretizationError, match=r"B\.at\[i\]\.set\(x\)"):
        tl.grad(f)(tl.tensor([1.0, 2.0]))

    def g(b):
        return tn.zeros(2).at[0].set(b[0] * b[0]).at[1].set(b[1] * b[0] + b[2])
    assert tl.jacrev(g)(tl.tensor([1.0, 2.0, 2.0])).tolist() == [[2, 0, 0], [2, 1, 1]]


def test_in_place_addition_to_a_numpy_array():
    def f(b):
        c = np.zeros(2)
        c += b
        return c.sum()
    with pytest.raises(MutationError, match=r"c \+= b"):
        tl.grad(f)(tl.tensor([1.0, 2.0]))


def test_methods_agree_with_functions():
    for name in ("sum", "mean", "max", "min", "prod", "std", "var", "any", "all", "argmax", "cumsum"):
        assert np.array_equal(getattr(X, name)(axis=0), getattr(tn, name)(X, axis=0))
    assert X.reshape(-1).shape == X.flatten().shape == X.ravel().shape == (4,)
    assert np.array_equal(X.transpose(1, 0), X.T) and np.array_equal(X.mT, X.T)
    assert X.item(0, 1) == 2 and X[0, 0].item() == 1 and X.nbytes == 32


def test_dlpack_round_trip():
    assert np.array_equal(np.from_dlpack(X), np.asarray(X))
    assert np.array_equal(tn.from_dlpack(np.asarray(W)), W)


@pytest.mark.parametrize("call", [
    lambda x: np.einsum("ij,jk->ik", x, x), lambda x: np.einsum("ij,jk", x, x),
    lambda x: np.einsum(x, [0, 1], x, [1, 2], [0, 2]), lambda x: np.einsum(x, [0, Ellipsis], [Ellipsis])],
    ids=["arrow", "implicit", "lists", "ellipsis"])
def test_numpy_einsum_in_all_its_call_forms(call):
    x = np.arange(9.0).reshape(3, 3)
    assert np.array_equal(np.asarray(call(tl.tensor(x))), call(x))
    slope = tl.grad(lambda x: np.sum(call(x)))(tl.tensor(x))
    step = 1e-6 * np.ones((3, 3))
    assert np.sum(np.asarray(slope)) * 2e-6 == pytest.approx(np.sum(call(x + step)) - np.sum(call(x - step)))
