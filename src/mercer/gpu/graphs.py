"""Steps that are run many times over the same tensors, in one launch each: CUDA graphs."""

from __future__ import annotations

import gc
from collections.abc import Callable
from threading import local
from typing import Any

from mercer.gpu.backend import torch


class _Kept(local):
    """Of each device, the stream that steps are captured on and the last graph, whose memory the
    next one takes; graphs that share memory run one after the other, so each thread has its own."""

    def __init__(self) -> None:
        self.streams: dict[int, Any] = {}
        self.graphs: dict[int, Any] = {}


_kept = _Kept()


class RepeatedStep:
    """One step without arguments, which writes to tensors that stay where they are and waits for
    nothing: run as it is at first, which compiles it and makes what it keeps; then captured, and
    replayed. The step is given in every call and not held, as whoever runs it holds this.

    Parameters
    ----------
    device : where it runs
    plain : how often it is run as it is before
    captured : whether it is worth it; where it cannot be captured, it is run as it is
    """

    def __init__(self, device: Any, *, captured: bool, plain: int = 1) -> None:
        self.device, self.plain = device, plain
        self.open = captured and device.type == "cuda"
        self.graph: Any = None
        self.runs = 0

    def __call__(self, step: Callable[[], None]) -> None:
        if self.open and self.runs == self.plain:
            self.graph = _captured(step, self.device)
        (step if self.graph is None else self.graph.replay)()
        self.runs += 1


def _captured(step: Callable[[], None], device: Any) -> Any:
    """A graph of all that a step launches; None where it cannot be captured."""
    with torch.cuda.device(device):
        at = torch.cuda.current_device()
        if at not in _kept.streams:
            _kept.streams[at] = torch.cuda.Stream()
        stream, before, graph = _kept.streams[at], _kept.graphs.get(at), torch.cuda.CUDAGraph()
        stream.wait_stream(torch.cuda.current_stream())
        try:
            with torch.cuda.stream(stream):
                _capture(step, graph, None if before is None else before.pool())
        except RuntimeError:
            with torch.cuda.stream(stream):  # one that ends well tells generators that none goes on
                ended = torch.zeros(1, device=device)
                _capture(ended.zero_, torch.cuda.CUDAGraph(), None)
            return None
        finally:
            torch.cuda.current_stream().wait_stream(stream)
    _kept.graphs[at] = graph
    return graph


def _capture(step: Callable[[], object], graph: Any, pool: Any) -> None:
    """`torch.cuda.graph` would empty what the allocator keeps, which takes longer than a step. No
    garbage is collected meanwhile: a graph among it could not be freed, and breaks this one."""
    collects = gc.isenabled()
    gc.disable()
    try:
        graph.capture_begin(pool=pool, capture_error_mode="thread_local")
        try:
            step()
        finally:
            graph.capture_end()
    finally:
        if collects:
            gc.enable()
