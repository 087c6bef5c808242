"""Modules that are loaded when they are first used, so that a small program starts fast.

The layer rules hold for them as for imports: the tests read the names given to `Later`.
"""
import importlib


class Later:
    """Stands for a module, which is imported when an attribute is first read."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, attribute):
        if "_module" not in vars(self):
            self._module = importlib.import_module(self._name)
        return getattr(self._module, attribute)

    def __repr__(self):
        return f"<module {self._name!r}, loaded when it is used>"
