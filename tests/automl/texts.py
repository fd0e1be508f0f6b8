"""Made-up documents: words drawn from a vocabulary, some of them more often where a class is 1."""

from __future__ import annotations

import numpy as np

WORDS = [
    a + b + c
    for a in ("ba", "ko", "mi", "tu")
    for b in ("ra", "le", "so", "nu")
    for c in ("k", "n", "s", "t")
]
GOOD, BAD = WORDS[:4], WORDS[4:8]


def drawn(
    n: int, seed: int = 0, words: int = 12, telling: float = 0.15
) -> tuple[list[str], np.ndarray]:
    """Documents and their classes, which a share of the words tell."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    out = []
    for k in y:
        plain = rng.choice(WORDS[8:], words)
        told = rng.choice(GOOD if k else BAD, words)
        out.append(" ".join(np.where(rng.random(words) < telling, told, plain)))
    return out, y


def labels(y: np.ndarray) -> list[str]:
    return np.where(y > 0, "yes", "no").tolist()
