"""Reductions along rows are the loops, on every instruction set."""
import os
import pathlib
import subprocess
import sys

import pytest


@pytest.mark.parametrize("restrict", ["", "avx2", "baseline"])
def test_rows_are_bit_equal_to_the_loops(restrict):
    env = {**os.environ, "TLGRAD_CPU": restrict}
    program = pathlib.Path(__file__).with_name("row_programs.py")
    done = subprocess.run([sys.executable, program], env=env, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "1800 results are those of the loops", done.stderr[-2000:]
