"""Batches of host arrays on a device: the next is copied while the last is computed with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mercer.gpu.backend import Tensor, torch
from mercer.inputs import Array

AHEAD = 2  # batches that are on the device at a time


def batches(arrays: Sequence[Array], cuts: Sequence[slice], device: str) -> Iterator[list[Tensor]]:
    """The rows of each cut of every array, as tensors there.

    Rows go through memory that the device reads by itself, on a stream of their own; what a batch
    is used for must be queued on the current stream before the next is asked for.
    """
    if device == "cpu":
        for at in cuts:
            yield [torch.from_numpy(np.ascontiguousarray(A[at])) for A in arrays]
        return
    line = _Line(arrays, max((at.stop - at.start for at in cuts), default=0), device)
    sent = line.put(cuts[0], 0) if cuts else None
    for i, following in enumerate([*cuts[1:], None]):
        assert sent is not None
        yield line.taken(*sent)
        line.finished(i)
        sent = None if following is None else line.put(following, i + 1)


class _Line:
    """Pinned places that batches take turns in."""

    def __init__(self, arrays: Sequence[Array], rows: int, device: str) -> None:
        self.arrays, self.device = arrays, device
        self.side = torch.cuda.Stream(device)
        self.copied: list[Any] = [None] * AHEAD
        self.used: list[Any] = [None] * AHEAD
        self.places = [[self._place(A, rows) for A in arrays] for _ in range(AHEAD)]

    @staticmethod
    def _place(A: Array, rows: int) -> Tensor:
        like = torch.from_numpy(np.empty((0, *A.shape[1:]), A.dtype))
        return torch.empty((rows, *A.shape[1:]), dtype=like.dtype, pin_memory=True)

    def put(self, at: slice, i: int) -> tuple[list[Tensor], Any]:
        """Rows on their way, and what says that they are there."""
        slot = i % AHEAD
        for event in (self.copied[slot], self.used[slot]):
            if event is not None:
                event.synchronize()
        out = []
        for A, place in zip(self.arrays, self.places[slot], strict=True):
            part = place[: at.stop - at.start]
            part.copy_(torch.from_numpy(np.ascontiguousarray(A[at])))
            with torch.cuda.stream(self.side):
                out.append(part.to(self.device, non_blocking=True))
        event = torch.cuda.Event()
        event.record(self.side)
        self.copied[slot] = event
        return out, event

    def taken(self, tensors: list[Tensor], event: Any) -> list[Tensor]:
        """The rows, once the current stream may read them."""
        here = torch.cuda.current_stream(self.device)
        here.wait_event(event)
        for T in tensors:
            T.record_stream(here)
        return tensors

    def finished(self, i: int) -> None:
        """All that was queued for a batch ends here."""
        event = torch.cuda.Event()
        event.record(torch.cuda.current_stream(self.device))
        self.used[i % AHEAD] = event
