"""Statistics that merge: accumulate a batch, add, ask; a stream, a file, threads and a cluster are
one code path."""

from mercer.stats.directions import FrequentDirections
from mercer.stats.fold import batches, fold
from mercer.stats.losses import Newton, logistic, squared_hinge
from mercer.stats.moments import Moments
from mercer.stats.sample import Sample, row_hashes

__all__ = [
    "FrequentDirections",
    "Moments",
    "Newton",
    "Sample",
    "batches",
    "fold",
    "logistic",
    "row_hashes",
    "squared_hinge",
]
