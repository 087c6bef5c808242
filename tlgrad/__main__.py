"""Commands: ``python3 -m tlgrad tour``, ``info``, ``warmup``."""
from __future__ import annotations

import argparse
import functools
import importlib.metadata
import platform
import sys

import tlgrad as tl
from tlgrad.api.fast import native_calls
from tlgrad.api.run import Run
from tlgrad.core import execute
from tlgrad.errors import UnsupportedError
from tlgrad.tour import run_tour


def info() -> int:
    """Print versions, devices and caches."""
    print(f"tlgrad {tl.__version__}, Python {platform.python_version()}, {platform.machine()}")
    for name in ("numpy", "numba", "llvmlite", "mpmath", "tqdm", "pycuda"):
        try:
            print(f"  {name:9} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            print(f"  {name:9} not installed")
    print("devices")
    for device in ("cpu", "gpu"):
        try:
            print(f"  {device:9} {execute.backend(device).name}")
        except UnsupportedError as error:
            print(f"  {device:9} {error}")
    print("caches")
    for name, value in tl.cache_info()._asdict().items():
        if name != "reasons":
            print(f"  {name:13} {value}")
    return 0


def tour() -> int:
    """Run the worked examples; 1 if one differs."""
    return 1 if run_tour() else 0


def warmup() -> int:
    """Compile the library kernels into the disk cache."""
    engine = execute.backend("cpu")
    if engine.name != "cpu":
        print("nothing to compile: the compiler needs llvmlite, which comes with numba")
        return 1
    for name in engine.warmup():
        print(f"  {name}")
    native_calls(Run)
    print("  native call")
    for dtype in (tl.float32, tl.float64):
        for axis in (0, 1):
            tl.run(functools.partial(tl.sum, axis=axis))(tl.ones((64, 128), dtype))
            print(f"  sum along axis {axis} {dtype}")
    return 0


def main(argv=None) -> int:
    """Parse the command line and run a command."""
    parser = argparse.ArgumentParser(prog="python3 -m tlgrad", description=tl.__doc__)
    commands = {"tour": tour, "info": info, "warmup": warmup}
    parser.add_argument("command", choices=commands,
                        help="tour: the worked examples; info: versions, devices, caches; "
                        "warmup: compile the library kernels into the disk cache")
    return commands[parser.parse_args(argv).command]()


if __name__ == "__main__":
    sys.exit(main())
