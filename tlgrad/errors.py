"""Every exception class of tlgrad.

Each docstring shows the smallest failing program and what to write instead.  The
classes also derive from the built-in exception that a NumPy user would catch.
"""


class TlgradError(Exception):
    """Base class of every error that tlgrad raises on purpose.

    Catch it to separate a refusal with an explanation from a defect:

        try: tl.add(tl.ones((2,)), tl.ones((3,)))
        except tl.errors.TlgradError as error: print(error)
    """


class ShapeError(TlgradError, ValueError):
    """Shapes do not fit an operation.

    Fails:  tl.add(tl.ones((2, 3)), tl.ones((2,)))
    Write:  tl.add(tl.ones((2, 3)), tl.ones((2,))[:, None])
    """


class DTypeError(TlgradError, TypeError):
    """A dtype does not fit an operation, or two dtypes have no common one.

    Fails:  tl.sqrt(tl.tensor("text"))
    Write:  tl.sqrt(tl.tensor(2.0))
    """


class TreeError(TlgradError, TypeError):
    """Two pytrees that should have one structure differ; the message names the leaf path.

    Fails:  tl.jvp(f, ({"w": x},), ({"v": x},))
    Write:  tl.jvp(f, ({"w": x},), ({"w": x},))
    """


class ArgumentError(TlgradError, TypeError):
    """An argument is missing, unknown, unhashable where it is static, or of a wrong kind.

    Fails:  tl.grad(f, argnums="z")          # f has no parameter z
    Write:  tl.grad(f, argnums="x")
    """


class OutputError(TlgradError, TypeError):
    """A transformed function returned something that is not a tensor.

    Fails:  tl.run(lambda x: print(x))(1.0)   # returns None
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
    Write:  return the value:  tl.grad(lambda x: (x, x), has_aux=True)(1.0)
    """


class DifferentiationError(TlgradError, TypeError):
    """A derivative was asked for that does not exist or is not defined by tlgrad.

    Fails:  tl.grad(lambda x: x ** 2)(3)      # an integer input
    Write:  tl.grad(lambda x: x ** 2)(3.0)
    """


class GradientError(TlgradError, AssertionError):
    """A derivative differs from differences of its function: what `tl.testing.check_grads` reports.

    Fails:  tl.testing.check_grads(f, (1.0,)) where a custom rule of f is wrong
    Write:  the rule that the message's order and mode point to, corrected
    """


class RecordError(TlgradError, RuntimeError):
    """A record was used after backward or close, or backward was asked of a plain run.

    Fails:  r = tl.record(f)(x); r.backward(); r.backward()
    Write:  r = tl.record(f)(x); g = r.backward()      # one record, one backward
    """


class OutOfBoundsError(TlgradError, IndexError):
    """An index lies outside its axis; the message names index, axis and size.

    Fails:  tl.tensor([1.0, 2.0])[5]
    Write:  tl.tensor([1.0, 2.0])[1]
    """


class ZeroDivision(TlgradError, ZeroDivisionError):
    """An integer was divided by zero; the message names the first entry.

    Fails:  tl.tensor([1, 2]) // tl.tensor([1, 0])
    Write:  tl.where(d == 0, 0, x // tl.where(d == 0, 1, d))
    """


class PatternError(TlgradError, ValueError):
    """A named-axis pattern is malformed or does not fit its tensors; a caret marks the token.

    Fails:  tl.rearrange(x, "row column -> column")
    Write:  tl.rearrange(x, "row column -> column row")
    """


class UnsupportedError(TlgradError, NotImplementedError):
    """A function, primitive or device does not offer what was asked, with the reason.

    Fails:  np.unwrap(tl.ones((3,)))
    Write:  the tlgrad function that the message names
    """


class JaxprTypeError(TlgradError, TypeError):
    """A jaxpr failed its type check: a defect in a rule or pass, which the message names.

    Fails:  check_jaxpr(jaxpr) where an equation's output has another aval than its rule says
    Write:  correct the rule named in the message
    """


class MutationError(TlgradError, TypeError):
    """Tensors are immutable; the message gives the functional form.

    Fails:  x[0] = 1.0
    Write:  x = x.at[0].set(1.0)
    """


class RecursionBudgetError(TlgradError, RecursionError):
    """Tracing a function recursed without end.

    Fails:  def f(x): return f(x) + 1
    Write:  tl.iterate(lambda x: x + 1, n, x), or recursion with a base case under tl.map
    """


class CarryError(TlgradError, TypeError):
    """A loop body changes the structure, a shape or a dtype of what it carries.

    Fails:  tl.iterate(lambda h: tl.concatenate([h, h]), 3, tl.ones((2,)))
    Write:  tl.iterate(lambda h: h + h, 3, tl.ones((2,)))
    """


class KernelError(TlgradError, RuntimeError):
    """A kernel failed its check: a defect of the compiler, never of a program.

    Fails:  check_kernel(kernel) where an operation reads a value that is bound later
    Write:  report it with the text of the kernel; tl.run(f, device="reference") still runs f
    """
