"""Object code on disk: private to the user, written atomically, checked by digest, bounded.

An entry is named by the hash of the kernel's text, the compiler and the CPU features.  A missing,
damaged, misplaced or foreign entry is a miss.  An entry appears whole, by renaming; a writer that is
killed leaves a file that no one reads and that goes after an hour.  A folder that cannot be written or is
full is reported once.  The folder is $TLGRAD_CACHE_DIR, else tlgrad in $XDG_CACHE_HOME or ~/.cache; an empty
TLGRAD_CACHE_DIR switches the cache off.
"""
from __future__ import annotations

import hashlib
import os
import pathlib
import stat
import threading
import time
import warnings

MAGIC = b"tlgrad object 1\n"
#: bytes kept on disk; older entries go first
LIMIT = 256 << 20
#: a write in this many looks at the size of the folder
CHECK_EVERY = 64
#: how the files that are being written are called, and seconds after which their writer is not there any more
WRITING, ABANDONED = ".writing-", 3600
#: seconds after which a read of an entry is noted, so that what is used stays
TOUCH = 86400


class DiskCache:
    """Blobs by key in one folder."""

    def __init__(self, folder: pathlib.Path | None, limit: int = LIMIT):
        self.folder, self.limit = folder, limit
        self.writes, self.warned = 0, False

    def key(self, *parts: str) -> str:
        """The name of an entry."""
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def read(self, key: str) -> bytes | None:
        """The blob, or None when there is no sound one."""
        if self.folder is None:
            return None
        path = self.folder / key
        try:
            found = path.stat()
            if found.st_uid != _user() or not stat.S_ISREG(found.st_mode):
                return None
            raw = path.read_bytes()
        except OSError:
            return None
        head = len(MAGIC) + 32
        blob = raw[head:]
        if raw[:len(MAGIC)] == MAGIC and raw[len(MAGIC):head] == _digest(key, blob):
            if found.st_mtime < time.time() - TOUCH:
                _touch(path)
            return blob
        _remove(path)
        return None

    def write(self, key: str, blob: bytes):
        """Keep a blob.  Never raises: a folder that cannot be written is reported once."""
        if self.folder is None:
            return
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self.folder.stat().st_uid != _user() or self.folder.stat().st_mode & 0o022:
                raise PermissionError(f"{self.folder} belongs to or is writable by somebody else")
            temporary = self.folder / f"{WRITING}{os.getpid()}-{threading.get_ident()}-{time.time_ns()}"
            try:
                with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                    file.write(MAGIC + _digest(key, blob) + blob)
                os.replace(temporary, self.folder / key)
            except OSError:
                _remove(temporary)
                raise
            self.writes += 1
            if self.writes % CHECK_EVERY == 1:
                self.prune()
        except OSError as error:
            if not self.warned:
                self.warned = True
                warnings.warn(f"tlgrad cannot keep compiled kernels on disk: {error}", RuntimeWarning,
                              stacklevel=2)

    def prune(self):
        """Remove the entries that were not used for longest until the folder fits its limit."""
        entries = self._entries()
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total <= self.limit:
                break
            _remove(path)
            total -= size

    def clear(self):
        """Remove every entry."""
        if self.folder is not None and self.folder.is_dir():
            for *_, path in self._entries():
                _remove(path)

    def _entries(self) -> list[tuple]:
        """(time of the last use, bytes, path) of the entries.  Abandoned files are removed; those that other
        processes are writing are left alone."""
        entries = []
        for path in self.folder.iterdir():
            try:
                found = path.stat()
            except OSError:
                continue
            if not path.name.startswith(WRITING):
                entries.append((found.st_mtime, found.st_size, path))
            elif found.st_mtime < time.time() - ABANDONED:
                _remove(path)
        return entries


def _digest(key: str, blob: bytes) -> bytes:
    """Of an entry and its name: under another name it is not sound."""
    return hashlib.sha256(key.encode() + blob).digest()


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0


def _touch(path):
    try:
        os.utime(path)
    except OSError:
        return


def _remove(path):
    try:
        path.unlink()
    except OSError:
        return


def folder() -> pathlib.Path | None:
    """Where entries lie; None when the cache is switched off or there is no home."""
    asked = os.environ.get("TLGRAD_CACHE_DIR")
    if asked is not None:
        return pathlib.Path(asked).absolute() if asked else None
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (pathlib.Path(base) if base else pathlib.Path.home() / ".cache") / "tlgrad"
    except RuntimeError:
        return None


disk = DiskCache(folder())
