"""Samples: what rows to compare must be."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.invariants.specs import Broken, Floats, Size, Sizes, Spec, is_called, shown_sizes


class Samples(Spec):
    """Rows to compare: an array or CSR matrix (n, d) of finite floats, or items, bare in a list or
    as an estimator holds them."""

    def __init__(self, n: Size, d: Size, *, items: bool = True) -> None:
        self.dense, self.n, self.items = Floats(n, d), n, items

    def shape(self, v: Any, sizes: Sizes) -> None:
        if _are_items(v) and self.items:
            if not sizes.meet(self.n, len(v)):
                raise Broken(f"has {len(v)} items, not {sizes.value(self.n)}")
        elif sp.issparse(v):
            if v.format != "csr" or v.dtype not in (np.float32, np.float64):
                raise Broken(f"should be CSR rows of floats, but is {v.format} of {v.dtype}")
            if not all(sizes.meet(s, n) for s, n in zip(self.dense.sizes, v.shape, strict=True)):
                raise Broken(
                    f"has shape {v.shape}, which is not {shown_sizes(self.dense.sizes, sizes)}"
                )
        else:
            self.dense.shape(v, sizes)

    def range(self, v: Any, sizes: Sizes) -> None:
        if not _are_items(v):
            self.dense.range(v.data if sp.issparse(v) else v, sizes)


def _are_items(v: Any) -> bool:
    return isinstance(v, list) or (
        is_called(type(v), "inputs.Items") and isinstance(v.values, list)
    )
