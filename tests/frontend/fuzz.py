"""Random programs against plain Python: values and exceptions, and gradients.

    PYTHONPATH=tests python3 -m frontend.fuzz 2000             # as many programs, half of them hard
    PYTHONPATH=tests python3 -m frontend.fuzz gradients 2000   # derivatives, by dual numbers in plain Python
"""
import collections
import signal
import sys

from tlgrad.errors import ScalarFunctionError

from frontend.dual_numbers import derivative_differences
from frontend.programs import program
from frontend.same_as_python import differences

#: seconds of processor time for one program
LIMIT = 3.0


class TooSlow(BaseException):
    """A program ran over the limit."""


def _stop(*_):
    raise TooSlow


def python_hangs(f, inputs):
    """True when plain Python does not finish either."""
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT, 1.0)
    try:
        for xs in inputs:
            try:
                f(*xs)
            except Exception:       # noqa: BLE001
                pass
        return False
    except TooSlow:
        return True
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def check(seed, hard, differences=differences):
    """("equal", ""), or what went otherwise and how."""
    f, inputs = program(seed, hard)
    if python_hangs(f, inputs):
        return "plain Python hangs", ""
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT, 1.0)
    try:
        wrong = differences(f, inputs)
        return ("wrong", str(wrong[:2])) if wrong else ("equal", "")
    except TooSlow:
        return "slow", ""
    except ScalarFunctionError as error:
        budget = any(w in str(error) for w in ("unroll", "too complicated", "too many paths", "too often"))
        return ("budget" if budget else "refused"), str(error)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def run(seeds, hard, differences=differences):
    """Counts by outcome, and what was not equal."""
    old = signal.signal(signal.SIGVTALRM, _stop)
    try:
        counts, others = collections.Counter(), []
        for seed in seeds:
            what, detail = check(seed, hard, differences)
            counts[what] += 1
            if what not in ("equal", "plain Python hangs"):
                others.append((seed, what, detail))
        return counts, others
    finally:
        signal.signal(signal.SIGVTALRM, old)


if __name__ == "__main__":
    compared = derivative_differences if "gradients" in sys.argv else differences
    given = [int(a) for a in sys.argv[1:] if a.isdigit()]
    number, first = (*given, *(200, 0)[len(given):])
    for kind in (False, True):
        found, rest = run(range(first, first + number // 2), kind, compared)
        print("hard" if kind else "easy", dict(found))
        for seed, what, detail in rest:
            print("  ", seed, what, detail[:250], flush=True)
