"""Loops beside the Python loops that they stand for."""
import tlgrad as tl


def unrolled(step, n, state):
    """The loop as Python writes it."""
    for _ in range(int(n)):
        state = step(state)
    return state


def total(state):
    """One number of a pytree of states."""
    out = 0.0
    for leaf in tl.tree.leaves(state):
        out = out + (leaf if not leaf.shape else tl.sum(leaf))
    return out


def logistic_map(w):
    """A scalar state and a closed-over parameter that is used twice a turn."""
    return lambda h: w * h * (1.0 - h) + w


def sine(w):
    """No parameter of its own: w only starts the loop."""
    return lambda h: h * tl.sin(h)


def pair(w):
    """A pytree state; one part feeds the other."""
    return lambda s: {"x": tl.tanh(s["x"] * w + s["v"]), "v": s["v"] * 0.5 + s["x"]}


def vector(w):
    """A vector state, a matrix made of the parameter, a division."""
    m = tl.tensor([[0.2, -0.1, 0.3], [0.1, 0.4, -0.2], [-0.3, 0.1, 0.2]])
    return lambda h: tl.matmul(m * w, h) / (1.0 + h * h) + w


def branches(w):
    """A lazy branch in the body."""
    return lambda h: tl.cond(h > 0.5, lambda h: h * w * 0.5, lambda h: h * h + 0.4 * w, h)


def nested(w):
    """A loop in the body."""
    return lambda h: tl.iterate(lambda g: tl.sin(g * w), 2, h) + 0.1 * w


def start_of(name, x):
    """The state that a program starts from."""
    if name == "pair":
        return {"x": x, "v": x * 0.25}
    if name == "vector":
        return x * tl.tensor([1.0, -0.5, 2.0])
    return x


PROGRAMS = {f.__name__: f for f in (logistic_map, sine, pair, vector, branches, nested)}


def looped(name, n, **options):
    """(w, x) -> one number, by tl.iterate."""
    return lambda w, x: total(tl.iterate(PROGRAMS[name](w), n, start_of(name, x), **options))


def plain(name, n):
    """(w, x) -> one number, by the Python loop."""
    return lambda w, x: total(unrolled(PROGRAMS[name](w), n, start_of(name, x)))
