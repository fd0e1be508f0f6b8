"""The contract of statistics can fail."""

import numpy as np
import pytest

from mercer.testing import check_statistic

rng = np.random.default_rng(0)
A = rng.normal(size=(300, 4)) + 3


def test_the_contract_can_fail():
    class Wrong:
        def __init__(self, rows):
            self.total = len(rows) ** 2

        def __add__(self, o):
            new = Wrong([])
            new.total = self.total + o.total
            return new

    def equal(a, b):
        assert a.total == b.total

    with pytest.raises(AssertionError):
        check_statistic(Wrong, Wrong([]), A, equal)
