"""Where tasks run: on the current client, or by dask's own scheduler; and what goes wrong there, in
one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

CLOSED = (
    "the client was closed, or what it held is gone; open a client, and make the collections anew."
)
RUN = re.compile(r"^mercer-.*-(\d+)-(\d+)$")


class WorkerError(RuntimeError):
    """Workers that ended, or a client that is gone, while a model was fitted."""


def current_client() -> Any:
    """The client that dask would use; None where there is none."""
    try:
        from distributed import default_client
    except ImportError:
        return None
    try:
        return default_client()
    except ValueError:
        return None


def compute(values: Sequence[Any], places: Sequence[Any] = ()) -> list[Any]:
    """The delayed values, all at once."""
    import dask

    with told(places):
        return list(dask.compute(*values))


def completed(values: Sequence[Any], places: Sequence[Any] = ()) -> Iterator[tuple[int, Any]]:
    """(position, value) as they are done: on a client all are under way, else one after another."""
    client = current_client()
    if client is None:
        for i, value in enumerate(values):
            yield i, compute([value], places)[0]
        return
    from distributed import as_completed

    with told(places):
        futures = client.compute(list(values))
        index = {future.key: i for i, future in enumerate(futures)}
        for future in as_completed(futures):
            result = future.result()
            future.release()
            yield index[future.key], result
            del result


@contextmanager
def told(places: Sequence[Any]) -> Iterator[None]:
    """Errors of workers and clients as one sentence with its remedy."""
    try:
        yield
    except Exception as error:
        if (text := sentence(error, places)) is None:
            raise
        raise WorkerError(text) from error


def sentence(error: Exception, places: Sequence[Any]) -> str | None:
    """What an error of the scheduler means; None for any other."""
    kind = type(error).__name__
    if kind == "KilledWorker":
        where = _place(str(getattr(error, "task", "")), places)
        return (
            f"{where} ended every worker that took it, most likely for want of memory (or one that waited beside it "
            f"did); make partitions smaller, give workers more memory, or use fewer features."
        )
    if kind in ("CancelledError", "FutureCancelledError", "FuturesCancelledError"):
        return CLOSED
    if kind == "CommClosedError":
        return "the scheduler does not answer any more; start it again, and fit with a new client."
    if "deserialization of the task graph" in str(error):
        return "scheduler or workers cannot read what is sent; install the same mercer, dask and Python on all, and start them again."
    return None


def _place(key: str, places: Sequence[Any]) -> str:
    found = RUN.match(key)
    if not found or int(found[2]) >= len(places):
        return "what every task needs"
    first, last = (str(places[int(i)]) for i in found.groups())
    return first if first == last else f"one of {first} to {last}"


class named:
    """Whatever fails in here is of this partition, and says so."""

    def __init__(self, place: object) -> None:
        self.place = place

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, ValueError):
            raise ValueError(f"{self.place}: {_line(error)}") from error
        if isinstance(error, MemoryError):
            raise ValueError(
                f"{self.place} does not fit in memory; make partitions smaller."
            ) from error
        if isinstance(error, Exception):
            raise ValueError(
                f"{self.place} could not be read: {type(error).__name__}: {_line(error)}"
            ) from error


def _line(error: Exception) -> str:
    """What an error says, in one line."""
    return " ".join(str(error).split())
