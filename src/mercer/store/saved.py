"""Saved: what estimators and maps inherit to be saved."""
from __future__ import annotations

from os import PathLike


class Saved:
    """An object that can be saved; `mercer.load` gives it back."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write this object to a file, whole or not at all; see `mercer.store.save`."""
        from mercer.store.files import save

        save(self, path)
