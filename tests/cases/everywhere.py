"""One derivative by every route, required to give the same words."""
import numpy as np

import tlgrad as tl


def slope(f, x):
    """f'(x) of a function of one float: forward, reverse, mapped, compiled, recorded; one result."""
    x = tl.tensor(x)
    found = {
        "jvp": tl.jvp(f, (x,), (tl.tensor(np.ones(()), x.dtype),))[1],
        "grad": tl.grad(f)(x),
        "vjp": tl.vjp(f, x)[1](1.0)[0],
        "linearize": tl.linearize(f, x)[1](1.0),
        "vmap(grad)": tl.vmap(tl.grad(f))(tl.stack([x, x]))[1],
        "grad(run)": tl.grad(tl.run(f))(x),
        "run(grad)": tl.run(tl.grad(f))(x),
        "run(vmap(grad))": tl.run(tl.vmap(tl.grad(f)))(tl.stack([x, x]))[0],
        "record": tl.record(f)(x).backward(),
    }
    first = found["jvp"]
    for route, value in found.items():
        same = tl.same_bits(value, first) or float(value) == float(first) == 0
        assert same, f"{route} gives {value}, jvp {first}"
    return float(first)


def gradient(f, x):
    """The gradient of a scalar function of a tensor: reverse, forward by columns, compiled; one result."""
    x = tl.tensor(x)
    found = {"grad": tl.grad(f)(x), "jacfwd": tl.jacfwd(f)(x), "run(grad)": tl.run(tl.grad(f))(x),
             "grad(run)": tl.grad(tl.run(f))(x), "vmap": tl.vmap(tl.grad(f))(tl.stack([x, x]))[1],
             "record": tl.record(f)(x).backward()}
    first = np.asarray(found["grad"])
    for route, value in found.items():
        np.testing.assert_array_equal(np.asarray(value), first, err_msg=route)
    return first.tolist()
