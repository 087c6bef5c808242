"""Work that waits for another package: done at once where it is loaded, otherwise right after its import."""
from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from importlib.util import find_spec
from typing import Callable


class _WhenLoaded(MetaPathFinder):
    """Calls `act` on a module right after its import, then steps aside."""

    def __init__(self, name: str, act: Callable):
        self.name, self.act = name, act

    def find_spec(self, name, path, target=None):
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            run_module = spec.loader.exec_module

            def exec_module(module):
                run_module(module)
                self.act(module)
            spec.loader.exec_module = exec_module
        return spec


def when_loaded(name: str, act: Callable) -> None:
    """Call `act(module)` with the module `name`, now or when somebody imports it."""
    if name in sys.modules:
        act(sys.modules[name])
    else:
        sys.meta_path.insert(0, _WhenLoaded(name, act))
