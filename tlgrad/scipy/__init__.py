"""SciPy's names: `special`, `linalg`, `stats`, `signal`, `integrate` and `fft`, differentiable."""
from tlgrad import fft, special
from tlgrad.scipy import integrate, linalg, signal, stats

__all__ = ["fft", "integrate", "linalg", "signal", "special", "stats"]
