"""Every exception class of tlgrad.

Each docstring shows the smallest failing program and what to write instead.  The
classes also derive from the built-in exception that a NumPy user would catch.
"""
from numpy.linalg import LinAlgError


class TlgradError(Exception):
    """Base class of every error that tlgrad raises on purpose.

    Catch it to separate a refusal with an explanation from a defect.

    Fails:  tl.add(tl.ones((2,)), tl.ones((3,)))
    Write:  tl.add(tl.ones((3,)), tl.ones((3,)))
    """

    #: where a traced program that raised this was written, once the message says so
    source = None


class ShapeError(TlgradError, ValueError):
    """Shapes do not fit an operation.

    Fails:  tl.add(tl.ones((2, 3)), tl.ones((2,)))
    Write:  tl.add(tl.ones((2, 3)), tl.ones((2,))[:, None])
    """


class DTypeError(TlgradError, TypeError):
    """A dtype does not fit an operation, or two dtypes have no common one.

    Fails:  tl.tensor("text")
    Write:  tl.tensor([1.0, 2.0], tl.float32)
    """


class TreeError(TlgradError, TypeError):
    """Two pytrees that should have one structure differ; the message names the leaf path.

    Fails:  tl.jvp(lambda p: p["w"], ({"w": x},), ({"v": x},))
    Write:  tl.jvp(lambda p: p["w"], ({"w": x},), ({"w": x},))
    """


class ArgumentError(TlgradError, TypeError):
    """An argument is missing, unknown, unhashable where it is static, or of a wrong kind.

    Fails:  tl.grad(lambda x: x * x, "z")(1.0)      # no parameter z
    Write:  tl.grad(lambda x: x * x, "x")(1.0)
    """


class OutputError(TlgradError, TypeError):
    """A transformed function returned something that is not a tensor.

    Fails:  tl.run(lambda x: None)(1.0)
    Write:  tl.run(lambda x: x * x)(1.0)
    """


class ConcretizationError(TlgradError, TypeError):
    """A traced value was asked for its number (``if``, ``float``, ``math.sin``, ...).

    Fails:  tl.run(lambda x: x if x > 0 else -x)(1.0)
    Write:  tl.run(lambda x: tl.where(x > 0, x, -x))(1.0)     # or tl.cond, or tl.map
    """


class LeakedTracerError(TlgradError, RuntimeError):
    """A traced value outlived the transform that made it.

    Fails:  store = []; tl.grad(lambda x: store.append(x) or x)(1.0); store[0] + 1
    Write:  tl.grad(lambda x: (x, x), has_aux=True)(1.0)     # return it instead
    """


class DifferentiationError(TlgradError, TypeError):
    """A derivative was asked for that does not exist or is not defined by tlgrad.

    Fails:  tl.grad(lambda x: x ** 2)(3)      # an integer input
    Write:  tl.grad(lambda x: x ** 2)(3.0)
    """


class GradientError(TlgradError, AssertionError):
    """A derivative differs from differences of its function: what `tl.testing.check_grads` reports.

    Fails:  f = tl.custom_jvp(lambda x: x * x); f.defjvp(lambda x, t: (x[0] ** 2, t[0])); check_grads(f, (3.0,))
    Write:  f = tl.custom_jvp(lambda x: x * x); f.defjvp(lambda x, t: (f(*x), 2*x[0]*t[0])); check_grads(f, (3.,))
    """


class RecordError(TlgradError, RuntimeError):
    """A record was used after backward or close, or backward was asked of a plain run.

    Fails:  r = tl.record(tl.sum)(x); r.backward(); r.backward()
    Write:  r = tl.record(tl.sum)(x); g = r.backward()      # one record, one backward
    """


class OutOfBoundsError(TlgradError, IndexError):
    """An index lies outside its axis; the message names index, axis and size.

    Fails:  tl.tensor([1.0, 2.0])[5]
    Write:  tl.tensor([1.0, 2.0])[1]
    """


class MaskShapeError(ShapeError, OutOfBoundsError):
    """A boolean mask does not fit the axes that it indexes (an IndexError in NumPy).

    Fails:  tl.tensor([1.0, 2.0, 3.0])[tl.tensor([True, False])]
    Write:  tl.tensor([1.0, 2.0, 3.0])[tl.tensor([True, False, True])]
    """


class RangeError(TlgradError, ValueError):
    """A number lies outside of what a function takes; the message names the first entry.

    Fails:  tl.tensor([2, 3]) ** tl.tensor([2, -1])
    Write:  tl.convert(tl.tensor([2, 3]), tl.float64) ** tl.tensor([2, -1])
    """


class ZeroDivision(TlgradError, ZeroDivisionError):
    """An integer was divided by zero; the message names the first entry.

    Fails:  tl.tensor([1, 2]) // tl.tensor([1, 0])
    Write:  d = tl.tensor([1, 0]); tl.where(d == 0, 0, tl.tensor([1, 2]) // tl.where(d == 0, 1, d))
    """


class PatternError(TlgradError, ValueError):
    """A named-axis pattern is malformed or does not fit its tensors; a caret marks the token.

    Fails:  tl.rearrange(x, "row column -> column")
    Write:  tl.rearrange(x, "row column -> column row")
    """


class SingularMatrixError(TlgradError, LinAlgError):
    """A matrix has no inverse or no such factor; the message names it in its stack.

    Fails:  tl.linalg.solve(tl.zeros((2, 2)), tl.ones(2))
    Write:  tl.linalg.lstsq(tl.zeros((2, 2)), tl.ones(2))[0]      # or a regularised matrix
    """


class UnsupportedError(TlgradError, NotImplementedError):
    """A function, primitive or device does not offer what was asked, with the reason.

    Fails:  np.common_type(tl.ones((3,)))
    Write:  tl.numpy.result_type(tl.ones((3,)))
    """


class JaxprTypeError(TlgradError, TypeError):
    """A jaxpr failed its type check: a defect in a rule or pass, which the message names.

    Fails:  check_jaxpr(Jaxpr([], [], [v]))       # a result that nothing binds
    Write:  check_jaxpr(Jaxpr([v], [], [v]))
    """


class MutationError(TlgradError, TypeError):
    """Tensors are immutable; the message gives the functional form.

    Fails:  x[0] = 1.0
    Write:  x = x.at[0].set(1.0)
    """


class RecursionBudgetError(TlgradError, RecursionError):
    """Tracing a function recursed without end.

    Fails:  f = lambda x: f(x) + 1; tl.run(f)(1.0)
    Write:  tl.iterate(lambda x: x + 1, 5, 1.0)   # or recursion with a base case under tl.map
    """


class CarryError(TlgradError, TypeError):
    """A loop body changes the structure, a shape or a dtype of what it carries.

    Fails:  tl.iterate(lambda h: tl.concatenate([h, h]), 3, tl.ones((2,)))
    Write:  tl.iterate(lambda h: h + h, 3, tl.ones((2,)))
    """


class KernelError(TlgradError, RuntimeError):
    """A kernel failed its check: a defect of the compiler, never of a program.

    Fails:  check_kernel(Kernel("lanes", 1, [], [], [], [Output(scalar)]))    # `scalar` is bound nowhere
    Write:  check_kernel(Kernel("lanes", 1, [Input(scalar, "lanes")], [], [], [Output(scalar)]))

    Report it with the text of the kernel; tl.run(f, device="reference") still runs the program.
    """


class ConvergenceError(TlgradError, ArithmeticError):
    """A solver ended with a residual above its tolerance; the message gives both.

    Fails:  tl.fixed_point(lambda z: 2 * z + 1, 1.0)
    Write:  tl.fixed_point(lambda z: 0.5 * z + 1, 1.0)
    """


class ScalarFunctionError(TlgradError, TypeError):
    """A scalar function under tl.map, or a recurrence, is outside what can be recorded.

    The message gives line, function, expression, the reason and what to write.

    Fails:  tl.map(lambda x: open(x))(tl.ones(3))
    Write:  tl.map(lambda x: x * x)(tl.ones(3))
    """
