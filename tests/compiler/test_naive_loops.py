"""Contractions, sums and reductions along rows are the loops, on every instruction set."""
import os
import pathlib
import subprocess
import sys

import pytest


@pytest.mark.parametrize("restrict", ["", "avx2", "baseline"])
@pytest.mark.parametrize("name, count", [("naive_loops", 360), ("row_programs", 1800)])
def test_results_are_bit_equal_to_the_loops(name, count, restrict):
    env = {**os.environ, "TLGRAD_CPU": restrict}
    program = pathlib.Path(__file__).with_name(f"{name}.py")
    done = subprocess.run([sys.executable, program], env=env, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == f"{count} results are those of the loops", done.stderr[-2000:]
