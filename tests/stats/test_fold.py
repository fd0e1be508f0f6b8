"""A fold does not depend on its engine."""

import numpy as np

from mercer.stats import Moments, fold
from mercer.stats.fold import threads

rng = np.random.default_rng(0)
A = rng.normal(size=(300, 4)) + 3
shift = A[:10].mean(0)


def test_a_fold_does_not_depend_on_its_engine():
    of = lambda s: Moments.of(A[s], shift=shift)
    pieces = [slice(i, i + 7) for i in range(0, 300, 7)]
    np.testing.assert_array_equal(
        fold(pieces, of, Moments.zero(shift)).S, fold(pieces, of, Moments.zero(shift), threads).S
    )
