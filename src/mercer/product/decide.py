"""Which class a probability stands for: the likeliest, or a rare one from a threshold on."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.inputs import Array
from mercer.invariants import Number, Whole
from mercer.store import register


@register("automl.Decision")
@dataclass(frozen=True)
class Decision:
    """The likeliest class; where `code` >= 0, of two classes that one from `threshold` on.

    >>> Decision().at(0.2, 2)
    Decision(code=1, threshold=0.2)
    """

    code: int = -1
    threshold: float = 0.5

    must = dict(code=Whole(-1, 2), threshold=Number(finite=False))

    def at(self, threshold: float, n_classes: int) -> Decision:
        """With another threshold on the probability of the same class; of the second where the likelier one was decided for."""
        if n_classes != 2:
            what = f"{n_classes:,} classes" if n_classes else "numbers"
            raise ValueError(f"threshold needs a model of two classes, and this one predicts {what}; leave threshold out.")
        if not (isinstance(threshold, int | float) and not isinstance(threshold, bool) and 0 <= threshold <= 1):
            raise ValueError(f"threshold must be a probability from 0 to 1, got {threshold!r}.")
        return Decision(1 if self.code < 0 else self.code, float(threshold))

    def __call__(self, P: Array) -> Array:
        if self.code < 0:
            return np.asarray(P.argmax(1))
        return np.where(P[:, self.code] >= self.threshold, self.code, 1 - self.code)


def for_rare(y: Array, P: Array) -> Decision:
    """The threshold on the rarer of two classes that makes F1, the harmonic mean of precision and recall, largest.

    >>> for_rare(np.array([0, 0, 0, 1]), np.array([[0.9, 0.1], [0.8, 0.2], [0.9, 0.1], [0.6, 0.4]])).threshold
    0.4
    """
    known = np.isfinite(P).all(1)
    y, P = y[known], P[known]
    code = int(np.argmin(np.bincount(y, minlength=2)))
    p, true = P[:, code], (y == code).astype(np.float64)
    order = np.argsort(-p, kind="stable")
    hits, taken = np.cumsum(true[order]), np.arange(1, len(p) + 1)
    f1 = 2 * hits / (taken + true.sum())
    last = np.append(np.diff(p[order]) != 0, True)  # equal probabilities are taken together
    return Decision(code, float(p[order][int(np.argmax(np.where(last, f1, -1)))]))
