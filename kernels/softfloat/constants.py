"""Fixed-point constants of elementary functions, worked out by mpmath at 420 bits."""
from mpmath import mp, mpf


def fix(value, scale):
    """``floor(value() * 2**scale)``; call it inside `constants`."""
    return int(mp.floor(value() * mpf(2) ** scale))


def constants(build):
    """What `build` returns, evaluated at 420 bits."""
    with mp.workprec(420):
        return build()
