"""Transforms on flat functions of tensors, for the tests of control flow."""
import numpy as np

from tlgrad.core.aval import Zero
from tlgrad.core.primitive import Linear
from tlgrad.core.tensor import Tensor, as_value, tensor
from tlgrad.core.jaxpr import evaluate_arrays
from tlgrad.transforms.batch import batch_flat
from tlgrad.transforms.jvp import jvp_flat
from tlgrad.transforms.partial_eval import linearize_flat
from tlgrad.transforms.stage import stage
from tlgrad.transforms.transpose import backward
from tlgrad.ops.define import instantiate


def grad(f, k=0):
    """Gradient of a scalar function with respect to argument k."""
    def run(*xs):
        xs = [as_value(x) for x in xs]
        (y,), lin = linearize_flat(lambda x: [f(*xs[:k], x, *xs[k + 1:])], [xs[k]])
        if lin.out_zero[0] is not None:
            return instantiate(Zero(xs[k].aval))
        args = [*lin.residuals, Linear(xs[k].aval)]
        return instantiate(backward(lin.jaxpr, args, [as_value(np.ones((), y.dtype.storage))])[0])
    return run


def derivative(f):
    """Forward-mode derivative of a function of one scalar."""
    def run(x):
        x = as_value(x)
        return instantiate(jvp_flat(lambda a: [f(a)], [x], [as_value(np.ones((), x.dtype.storage))])[1][0])
    return run


def vmap(f, *axes):
    """f over axis `axes[k]` (None: whole) of each argument; results have the lanes in front."""
    def run(*xs):
        xs = [as_value(x) for x in xs]
        ks = axes or (0,) * len(xs)
        size = next(x.shape[k] for x, k in zip(xs, ks) if k is not None)
        (y,), (axis,) = batch_flat(lambda *a: [f(*a)], xs, ks, size)
        y = np.asarray(y)
        return np.broadcast_to(y, (size, *y.shape)) if axis is None else np.moveaxis(y, axis, 0)
    return run


def staged(f):
    """f written down as a jaxpr, and the jaxpr evaluated."""
    def run(*xs):
        xs = [as_value(x) for x in xs]
        jaxpr, consts = stage(lambda *a: [f(*a)], [x.aval for x in xs])
        return Tensor.own(evaluate_arrays(jaxpr, [v.data for v in (*consts, *xs)])[0])
    return run


def words(x):
    """The raw words of a tensor or number."""
    return tensor(x).words().tolist()
