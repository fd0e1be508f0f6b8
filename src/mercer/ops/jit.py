"""The package's `njit`: compiled at the first call, without the GIL, cached on disk where a folder
can be written."""

from __future__ import annotations

import functools
import gc
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, Generic, ParamSpec, TypeVar, overload

P = ParamSpec("P")
R = TypeVar("R")

_building = threading.Lock()


class Lazy(Generic[P, R]):
    """A function that Numba compiles when it is first called, also when the caller is itself
    compiled."""

    def __init__(self, f: Callable[P, R], fastmath: bool | Collection[str]) -> None:
        functools.update_wrapper(self, f)
        self._f, self._fastmath, self._dispatcher = f, fastmath, None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.dispatcher(*args, **kwargs)

    def __reduce__(self) -> str:
        return self._f.__qualname__  # pickled by name, like any function

    @property
    def dispatcher(self) -> Any:
        """Numba's own object; Numba imports and builds it once, whichever thread comes first."""
        if self._dispatcher is None:
            with _building:
                self._dispatcher = self._dispatcher or _build(self._f, self._fastmath)
        return self._dispatcher

    @property
    def _numba_type_(self) -> Any:
        """What Numba asks of a global: so compiled functions call a lazy one as if it were a
        dispatcher."""
        return self.dispatcher._numba_type_


@overload
def njit(f: Callable[P, R], /) -> Lazy[P, R]: ...
@overload
def njit(*, fastmath: bool | Collection[str] = False) -> Callable[[Callable[P, R]], Lazy[P, R]]: ...
def njit(f: Callable[P, R] | None = None, /, *, fastmath: bool | Collection[str] = False) -> Any:
    """Compile a loop with Numba at its first call; importing the module costs nothing.

    `fastmath` is Numba's: True, or the LLVM flags allowed, such as ``{"contract", "reassoc"}``.
    Division by zero gives inf or nan, as in NumPy, so a loop agrees with its plain reference. A
    loop calls only loops of its own module, because the cache on disk is renewed when that one file
    changes.

    >>> @njit
    ... def triangular(n):
    ...     return n * (n + 1) // 2
    >>> triangular(4)
    10
    """
    return Lazy(f, fastmath) if f is not None else lambda f: Lazy(f, fastmath)


def _build(f: Callable[..., Any], fastmath: bool | Collection[str]) -> Any:
    first = "numba" not in sys.modules
    with _uncollected():
        made = _decorated(f, fastmath)
        if first and hasattr(made, "targetctx"):  # none under NUMBA_DISABLE_JIT
            made.targetctx.refresh()  # the rest of Numba, which the first loop would load
    return made


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without garbage collection: Numba makes hundreds of thousands of objects that stay, and to
    look at all of them again and again takes as long as to import it."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _decorated(f: Callable[..., Any], fastmath: bool | Collection[str]) -> Any:
    import numba  # here, because importing it takes longer than importing all the rest

    flags = fastmath if isinstance(fastmath, bool) else set(fastmath)
    compile_ = functools.partial(numba.njit, nogil=True, error_model="numpy", fastmath=flags)
    try:
        return compile_(cache=True)(f)
    except RuntimeError as error:
        if "no locator available" not in str(error):
            raise
        return compile_()(f)  # no folder to cache in: compile in every process
