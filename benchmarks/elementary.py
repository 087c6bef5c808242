"""``python3 -m benchmarks elementary``: accuracy and cost of the elementary functions."""
import argparse

from . import elementary_exhaustive, elementary_page, elementary_plain, elementary_timing, elementary_ulps
from .peers import pin, restart_single_threaded


def main(arguments):
    parser = argparse.ArgumentParser(prog="benchmarks elementary", description=__doc__)
    parser.add_argument("names", nargs="*", help="functions; all if none is given")
    parser.add_argument("--exhaustive", action="store_true", help="all 2**32 binary32 inputs")
    parser.add_argument("--pairs", action="store_true", help="the part of --exhaustive for bodies in pairs")
    parser.add_argument("--ulps", action="store_true", help="binary64 errors against MPFR")
    parser.add_argument("--time", action="store_true", help="cost, and NumPy, JAX and libm beside it")
    parser.add_argument("--plain", action="store_true", help="cost of correct rounding over 1-ulp bodies")
    parser.add_argument("--peers", action="store_true", help="accuracy of NumPy, JAX and libm")
    parser.add_argument("--page", action="store_true", help="write docs/elementary.md from the tables")
    parser.add_argument("--count", type=float, default=1e7, help="arguments per function of --ulps")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args(arguments)
    if options.exhaustive:
        elementary_exhaustive.main(options.names, options.workers)
    if options.pairs:
        elementary_exhaustive.pairs(options.names, options.workers)
    if options.ulps:
        elementary_ulps.main(options.names, int(options.count), options.workers)
    if options.time or options.plain:
        restart_single_threaded("elementary", arguments)
        pin()
    if options.time:
        elementary_timing.main(options.names)
    if options.plain:
        elementary_plain.main()
    if options.peers:
        elementary_timing.peers(options.names)
    if options.page:
        elementary_page.main()
