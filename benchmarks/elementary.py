"""``python3 -m benchmarks elementary``: accuracy and cost of the elementary functions."""
import argparse

from . import elementary_exhaustive, elementary_page, elementary_timing, elementary_ulps


def main(arguments):
    parser = argparse.ArgumentParser(prog="benchmarks elementary", description=__doc__)
    parser.add_argument("names", nargs="*", help="functions; all if none is given")
    parser.add_argument("--exhaustive", action="store_true", help="all 2**32 binary32 inputs")
    parser.add_argument("--ulps", action="store_true", help="binary64 errors against MPFR")
    parser.add_argument("--time", action="store_true", help="cost, and NumPy and JAX beside it")
    parser.add_argument("--peers", action="store_true", help="with --time: their accuracy again")
    parser.add_argument("--page", action="store_true", help="write docs/elementary.md from the tables")
    parser.add_argument("--count", type=float, default=1e7, help="arguments per function of --ulps")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args(arguments)
    if options.exhaustive:
        elementary_exhaustive.main(options.names, options.workers)
    if options.ulps:
        elementary_ulps.main(options.names, int(options.count), options.workers)
    if options.time:
        elementary_timing.main(options.names, options.peers)
    if options.page:
        elementary_page.main()
