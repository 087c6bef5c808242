"""Right results, and one warning at most, whatever happens to the disk cache."""
import ctypes
import os
import resource
import signal
import subprocess
import sys
import time

import pytest

from tlgrad.kernels.cache import ABANDONED, MAGIC, TOUCH, DiskCache
from tlgrad.kernels.machine import host

PROGRAM = """
import hashlib, numpy as np, tlgrad as tl
rng = np.random.default_rng(0)
x = tl.tensor(rng.standard_normal((40, 33)).astype("float32"))
w = tl.tensor(rng.standard_normal((33, 21)).astype("float32"))
digest = hashlib.sha256()
for f, args in [(lambda x: x * 2.0 + tl.exp(x), (x,)), (tl.matmul, (x, w)), (lambda x: tl.sum(x, axis=1), (x,)),
                (lambda x: x.T + 0.0, (x,))]:
    digest.update(tl.run(f)(*args).words().tobytes())
print(digest.hexdigest(), tl.cache_info().compiles, tl.cache_info().disk_hits)
"""


def start(folder, before="", **options):
    """A process that runs the program with its cache in a folder."""
    env = {**os.environ, "TLGRAD_CACHE_DIR": str(folder)}
    return subprocess.Popen([sys.executable, "-c", before + PROGRAM], env=env, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, **options)


def finish(process):
    """(digest of the words, compilations, entries found, what it wrote to stderr) of a process."""
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    digest, compiles, hits = out.split()
    return digest, int(compiles), int(hits), errors


@pytest.fixture(scope="module")
def right():
    """The digest without a cache."""
    return finish(start(""))[0]


# ---- processes side by side ----

REMOVES_ALL = """
import sys, tlgrad
cache = sys.modules["tlgrad.kernels.cache"]
cache.disk.limit, cache.CHECK_EVERY = 0, 2
"""


@pytest.mark.parametrize("before", ["", REMOVES_ALL], ids=["plain", "each_removes_all"])
def test_processes_that_start_together_share_the_folder(tmp_path, right, before):
    processes = [start(tmp_path / "c", before) for _ in range(4)]
    for digest, compiles, hits, errors in map(finish, processes):
        assert digest == right and errors == "" and compiles + hits > 4
    if not before:
        assert finish(start(tmp_path / "c"))[1:] == (0, compiles + hits, "")
    assert not list((tmp_path / "c").glob(".writing*"))


# ---- a writer that is killed ----

KILLED = {
    "half_written": "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n"
                    "resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))\n",
    "before_the_renaming": "import os; os.replace = lambda *paths: os.kill(os.getpid(), 9)\n"}


@pytest.mark.parametrize("how", KILLED)
def test_a_killed_writer_leaves_nothing_that_is_read(tmp_path, right, how):
    killed = start(tmp_path, KILLED[how])
    killed.communicate(timeout=300)
    assert killed.returncode in (-signal.SIGXFSZ, -signal.SIGKILL)
    left, = tmp_path.iterdir()
    assert left.name.startswith(".writing")
    digest, compiles, hits, errors = finish(start(tmp_path))
    assert (digest, hits, errors) == (right, 0, "")
    assert left.exists()
    os.utime(left, (time.time() - 2 * ABANDONED,) * 2)
    DiskCache(tmp_path).prune()
    assert not left.exists()
    assert finish(start(tmp_path)) == (right, 0, compiles, "")


# ---- a folder that is full or cannot be written ----

def test_a_full_folder_is_reported_once(tmp_path, right):
    def full():
        resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
    digest, compiles, _, errors = finish(start(tmp_path, preexec_fn=full))
    assert digest == right and compiles > 4 and errors.count("RuntimeWarning") == 1
    assert "File too large" in errors and list(tmp_path.iterdir()) == []


def as_an_ordinary_user():
    """Root writes everywhere; without CAP_DAC_OVERRIDE it is held to the permissions of a folder."""
    if os.getuid() == 0 and ctypes.CDLL(None).prctl(24, 1, 0, 0, 0) != 0:
        os._exit(77)


def test_a_read_only_folder_is_read_and_reported_once(tmp_path, right):
    few = "import numpy as np, tlgrad as tl; tl.run(lambda x: x + 0.5)(tl.tensor(np.ones(3)))\n"
    folder = tmp_path / "c"
    subprocess.run([sys.executable, "-c", few], env={**os.environ, "TLGRAD_CACHE_DIR": str(folder)}, check=True)
    kept = sorted(folder.iterdir())
    folder.chmod(0o500)
    try:
        process = start(folder, preexec_fn=as_an_ordinary_user)
        process.wait(timeout=300)
        if process.returncode == 77:
            pytest.skip("root that cannot give up a capability")
        digest, compiles, hits, errors = finish(process)
    finally:
        folder.chmod(0o700)
    assert digest == right and compiles > 3 and hits > 0
    assert errors.count("RuntimeWarning") == 1 and "Permission denied" in errors
    assert sorted(folder.iterdir()) == kept


# ---- damaged entries ----

def flipped(place):
    return lambda raw: raw[:place % len(raw)] + bytes([raw[place % len(raw)] ^ 0x10]) + raw[place % len(raw) + 1:]


DAMAGE = {"empty": lambda raw: b"", "no_code": lambda raw: raw[:len(MAGIC) + 32],
          "half": lambda raw: raw[:len(raw) // 2], "one_byte_less": lambda raw: raw[:-1],
          "one_byte_more": lambda raw: raw + b"\0", "zeros": lambda raw: bytes(len(raw)),
          "bit_of_the_magic": flipped(3), "bit_of_the_digest": flipped(len(MAGIC) + 9),
          "bit_of_the_code": flipped(len(MAGIC) + 32 + 300), "last_bit": flipped(-1)}


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """Entries by name, as one run leaves them."""
    folder = tmp_path_factory.mktemp("sound")
    finish(start(folder))
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def kernels_among(sound) -> int:
    """How many entries are kernels: one describes the machine, one holds the branch of exp on AVX-512."""
    return len(sound) - 1 - host().avx512


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_entry_is_a_miss_and_is_written_anew(tmp_path, kind, sound):
    cache = DiskCache(tmp_path)
    for name, raw in sound.items():
        (tmp_path / name).write_bytes(DAMAGE[kind](raw))
        assert cache.read(name) is None and not (tmp_path / name).exists()
        cache.write(name, raw[len(MAGIC) + 32:])
        assert (tmp_path / name).read_bytes() == raw


def test_a_program_whose_entries_are_all_damaged(tmp_path, right, sound):
    for (name, raw), kind in zip(sound.items(), [*DAMAGE.values()] * 2):
        (tmp_path / name).write_bytes(kind(raw))
    kernels = kernels_among(sound)
    assert finish(start(tmp_path)) == (right, kernels, 0, "")
    assert finish(start(tmp_path)) == (right, 0, kernels, "")


def test_an_entry_under_the_name_of_another_is_a_miss(tmp_path, right, sound):
    names = list(sound)
    for name, other in zip(names, [*names[1:], names[0]]):
        (tmp_path / name).write_bytes(sound[other])
    assert finish(start(tmp_path)) == (right, kernels_among(sound), 0, "")


def test_what_is_no_file_is_a_miss(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    assert DiskCache(tmp_path).read("pipe") is None and DiskCache(tmp_path).read("folder") is None


def test_an_entry_that_is_used_stays(tmp_path):
    cache = DiskCache(tmp_path, limit=350)
    for k in range(4):
        cache.write(f"entry{k}", bytes(50))
        os.utime(tmp_path / f"entry{k}", (time.time() - 2 * TOUCH + k,) * 2)
    assert cache.read("entry0") == bytes(50)
    cache.prune()
    assert cache.read("entry0") == bytes(50) and cache.read("entry1") is None
