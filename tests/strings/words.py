"""Plain references: kernels of strings by counting, and random strings."""

from collections import Counter
from itertools import combinations, product

import numpy as np


def windows(s: str, g: int) -> list[str]:
    return [s[i : i + g] for i in range(len(s) - g + 1)]


def spectrum(X, Z, k):
    a, b = ([Counter(windows(s, k)) for s in S] for S in (X, Z))
    return gram(a, b)


def gram(a, b):
    """Of features by name."""
    return np.array([[sum(v * z.get(u, 0) for u, v in x.items()) for z in b] for x in a], float)


def differ(a, b):
    return sum(p != q for p, q in zip(a, b, strict=True))


def near_words(s, k, m, letters):
    words = ["".join(w) for w in product(letters, repeat=k)]
    return {u: sum(differ(u, w) <= m for w in windows(s, k)) for u in words}


def gapped_words(s, g, m):
    found = Counter()
    for w in windows(s, g):
        found.update((at, "".join(w[i] for i in at)) for at in combinations(range(g), g - m))
    return found


def subsequences(s, p, decay):
    found = Counter()
    for at in combinations(range(len(s)), p):
        found["".join(s[i] for i in at)] += decay ** (at[-1] - at[0] + 1)
    return found


def weighted_degree(x, z, d, shift=0):
    total = 0.0
    for n in range(1, d + 1):
        last = len(x) - n
        for s in range(-shift, shift + 1):
            far = 1.0 if s == 0 else 0.5 / (abs(s) + 1)
            same = sum(
                x[i : i + n] == z[i + s : i + s + n] for i in range(last + 1) if 0 <= i + s <= last
            )
            total += far * 2 * (d - n + 1) / (d * (d + 1)) * same
    return total


def reverse_complement(s):
    return s[::-1].translate(str.maketrans("ACGT", "TGCA"))


def strings(seed: int, n: int, letters: str, longest: int, shortest: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(shortest, longest + 1, n)
    return ["".join(rng.choice(list(letters), size)) for size in lengths]
