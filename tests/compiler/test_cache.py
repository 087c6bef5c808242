"""The disk cache never gives a wrong kernel and never stops a program."""
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import tlgrad as tl
from tlgrad.core import counters
from tlgrad.kernels.cache import MAGIC, DiskCache, disk

PROGRAM = """
import numpy as np, tlgrad as tl
f = tl.run(lambda x: x * 2.0 + 1.0)
print(f(tl.tensor([1.0, 2.0])).tolist(), tl.cache_info().compiles, tl.cache_info().disk_hits)
"""


def test_an_entry_is_found_again_and_a_damaged_one_is_a_miss(tmp_path):
    cache = DiskCache(tmp_path / "new")
    key = cache.key("text", "cpu")
    assert cache.read(key) is None
    cache.write(key, b"code")
    assert cache.read(key) == b"code"
    path = tmp_path / "new" / key
    path.write_bytes(path.read_bytes()[:-1])
    assert cache.read(key) is None
    assert not path.exists()


@pytest.mark.parametrize("content", [b"", MAGIC, MAGIC + b"x" * 40, b"another file"])
def test_foreign_files_are_misses(tmp_path, content):
    cache = DiskCache(tmp_path)
    (tmp_path / "entry").write_bytes(content)
    assert cache.read("entry") is None


def test_a_folder_that_cannot_be_written_is_reported_once(tmp_path):
    (tmp_path / "file").write_text("")
    cache = DiskCache(tmp_path / "file" / "sub")
    with pytest.warns(RuntimeWarning, match="cannot keep"):
        cache.write("a", b"code")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache.write("b", b"code")


def test_a_folder_open_to_others_is_not_used(tmp_path):
    tmp_path.chmod(0o777)
    cache = DiskCache(tmp_path)
    with pytest.warns(RuntimeWarning, match="somebody else"):
        cache.write("a", b"code")
    assert cache.read("a") is None


def test_the_oldest_entries_go_first(tmp_path):
    cache = DiskCache(tmp_path, limit=350)
    for k in range(4):
        cache.write(f"entry{k}", bytes(50))
        os.utime(tmp_path / f"entry{k}", (k, k))
    cache.prune()
    assert cache.read("entry0") is None and cache.read("entry3") == bytes(50)


def run(folder):
    env = {**os.environ, "TLGRAD_CACHE_DIR": str(folder)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=True)
    return done.stdout.split(), done.stderr


def test_two_processes_share_the_folder_and_damage_is_repaired(tmp_path):
    first, _ = run(tmp_path / "c")
    again, _ = run(tmp_path / "c")
    assert first[:2] == again[:2] == ["[3.0,", "5.0]"]
    assert int(first[2]) > 0 and again[2] == "0" and int(again[3]) > 0
    for path in (tmp_path / "c").iterdir():
        path.write_bytes(b"damaged")
    repaired, errors = run(tmp_path / "c")
    assert repaired == first and errors == ""


def test_without_a_folder_programs_run(tmp_path):
    (tmp_path / "file").write_text("")
    found, errors = run(tmp_path / "file" / "sub")
    assert found[:2] == ["[3.0,", "5.0]"] and errors.count("RuntimeWarning") == 1
    assert run("")[0][:2] == ["[3.0,", "5.0]"]


FIRST = """
import numpy as np, tlgrad as tl
for dtype in ("float32", "float64"):
    x, w = tl.ones((70, 90), dtype), tl.ones((90, 80), dtype)
    for order in ("ordered", "fused"):
        assert tl.run(tl.matmul, order=order)(x, w).tolist() == [[90.0] * 80] * 70
    assert tl.run(lambda x: tl.sum(x, axis=0))(x).tolist() == [70.0] * 90
    assert tl.run(lambda x: tl.transpose(x))(x).shape == (90, 70)
    f = tl.run(lambda x: x * 0.3)
    for _ in range(6):
        f(x[0, :3])
print([r for r in tl.cache_info().reasons if "library kernel" in r])
"""


def test_after_a_warmup_no_library_kernel_is_compiled_and_at_first_use_it_is_kept(tmp_path):
    def out(*arguments, folder):
        env = {**os.environ, "TLGRAD_CACHE_DIR": str(tmp_path / folder)}
        return subprocess.run([sys.executable, *arguments], env=env, stdout=subprocess.PIPE, text=True,
                              check=True).stdout
    names = out("-m", "tlgrad", "warmup", folder="warmed")
    assert "contraction f32 ordered" in names and "native call" in names and "  lgamma\n" in names
    assert out("-c", FIRST, folder="warmed").strip() == "[]"
    first = out("-c", FIRST, folder="used")
    assert all(name in first for name in ("tlgrad_launch", "contract_f64_fused", "tlgrad_call"))
    assert out("-c", FIRST, folder="used").strip() == "[]"


@pytest.fixture
def nothing_on_disk(tmp_path, monkeypatch):
    tl.run(lambda x: x + 1)(tl.tensor([1.0]))         # what all programs share is loaded
    monkeypatch.setattr(disk, "folder", tmp_path / "empty")


def test_clearing_forgets_kernels_and_on_request_their_entries(nothing_on_disk):
    x, f = tl.tensor([1.0, 2.0]), lambda x: x * 0.11 - x / 1.3
    assert tl.run(f)(x).tolist() == f(x).tolist()
    entries = list(disk.folder.iterdir())
    assert len(entries) == 1 and entries[0].stat().st_mode & 0o077 == 0 == disk.folder.stat().st_mode & 0o077
    tl.clear_caches()
    assert tl.cache_info() == (0, 0, 0, 0, 0, ()) and tl.run(f)(x).tolist() == f(x).tolist()
    assert tl.cache_info().compiles == 0          # machine code stays loaded
    tl.clear_caches(disk=True)
    assert list(disk.folder.iterdir()) == [] and tl.run(f)(x).tolist() == f(x).tolist()


def test_every_compilation_has_a_reason(nothing_on_disk):
    f = tl.run(lambda x, y: x * 0.37 - y + x / 1.7)
    x = tl.tensor(np.ones((3, 40)))
    tl.clear_caches()
    f(x, x)
    assert tl.cache_info().compiles == 1
    f(x[:2], x[:2])
    f(x, x[0])
    f(tl.tensor(x.data, tl.float32), tl.tensor(x.data, tl.float32))
    found = [r for r in tl.cache_info().reasons if "kernel 0 compiled" in r]
    assert len(found) == tl.cache_info().compiles == 3
    assert found[0].endswith("the first") and "<lambda>" in found[0]
    assert "`kernel nest=lanes rank=1` became `kernel nest=lanes rank=2`" in found[1]
    assert "`kernel nest=lanes rank=2` became `kernel nest=lanes rank=1`" in found[2]
    f(tl.tensor(x.data[0], tl.float32), tl.tensor(x.data[0], tl.float32))
    assert tl.cache_info().compiles == 3
    assert len(tl.cache_info().reasons) == tl.cache_info().compiles + tl.cache_info().traces


def test_many_compilations_of_one_function_are_reported_once(nothing_on_disk, monkeypatch):
    monkeypatch.setattr(counters, "MANY_COMPILES", 3)
    f = tl.run(lambda x, n: x ** n - x / 1.9, static="n")
    x = tl.tensor([1.0, 2.0])
    for n in (2, 3):
        f(x, n)
    with pytest.warns(RuntimeWarning, match="3 kernels were compiled for one function.*`v.* became `v"):
        f(x, 4)
    f(x, 5)
