"""The package installs without the checkout, and its commands run from another folder."""
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with a non-editable install of the package."""
    target = tmp_path_factory.mktemp("site")
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target),
                    str(ROOT)], check=True, cwd=target)
    return target


def command(installed, tmp_path, *arguments):
    """Run ``python3 -m tlgrad`` with only the installed copy in sight."""
    return subprocess.run([sys.executable, "-m", "tlgrad", *arguments], cwd=tmp_path, text=True,
                          capture_output=True, env={**os.environ, "PYTHONPATH": str(installed)})


def test_tour_runs_from_another_folder(installed, tmp_path):
    done = command(installed, tmp_path, "tour")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "DIFFERENT" not in done.stdout
    assert done.stdout.rstrip().endswith("examples as expected.")


def test_info_lists_versions_devices_caches(installed, tmp_path):
    done = command(installed, tmp_path, "info")
    assert done.returncode == 0, done.stderr
    assert [word in done.stdout for word in ("numpy", "devices", "cpu", "caches")] == [True] * 4


def test_kernels_are_installed_with_the_package(installed):
    assert (installed / "tlgrad" / "kernels" / "expr" / "__init__.py").exists()


def test_import_is_light(tmp_path):
    heavy = "numba", "llvmlite", "scipy", "mpmath", "matplotlib", "pycuda", "opt_einsum"
    program = f"import sys, tlgrad; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, text=True, capture_output=True, check=True)
    assert done.stdout.strip() == "[]"
