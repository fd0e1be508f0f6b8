"""Kernels of strings, as rows of any learner that takes a kernel: lists of str or bytes.

A new kernel of strings derives from `StringKernel` (its alphabet, case, unknown letters, strands),
writes its parameters as fields and `engine(letters)`: a value with `side(sequences)`, what is
computed of some encoded strings once, `values(x, z)` between two sides and `own(x)`. Sides are of a
few hundred strings and are read in threads, so an engine never looks beyond the two it is given. A
kernel of other items (trees, bags) derives from `Kernel` with `items = True` and has the methods of
`mercer.pairs.items.OfItems`; its formula is `p.between(self)`. What must be learnt from rows before
the kernel is fixed is a method `settle(*rows)`. Its proof is a line of `mercer.kernels.proof.register`.
"""

from mercer.strings.alphabet import Alphabet
from mercer.strings.base import StringKernel
from mercer.strings.sequences import Sequences
from mercer.strings.subsequence import Subsequence
from mercer.strings.subtree import SubTree
from mercer.strings.weighted_degree import WeightedDegree
from mercer.strings.windows import Gapped, Mismatch, Spectrum

__all__ = [
    "Alphabet",
    "Gapped",
    "Mismatch",
    "Sequences",
    "Spectrum",
    "StringKernel",
    "SubTree",
    "Subsequence",
    "WeightedDegree",
]
