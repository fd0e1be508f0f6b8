"""Time and memory of a fit, as they are granted."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.memory import peak_of_command
from mercer.automl import budget, refit
from mercer.automl.search import rungs

linux = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="resident anonymous memory is Linux's to tell"
)


@linux
def test_the_memory_that_a_child_shares_with_its_parent_counts_once():
    code = "import os, time; held = b'x' * 10**8; child = os.fork(); time.sleep(0.2); child and os.waitpid(child, 0)"
    peak, ended = peak_of_command([sys.executable, "-c", code])
    assert ended.returncode == 0
    assert 1e8 < peak < 1.8e8


# sizes
@given(st.floats(6e7, 1e11), st.integers(1, 5_000), st.integers(0, 1_000))
def test_what_the_ledger_grants_fits_together(memory, columns, n_classes):
    held = budget.holdout_rows(memory, columns, 3, n_classes)
    core = budget.training_rows(memory, columns, 3)
    assert 4 * columns * held <= memory / 5 or held == 1_000
    assert 3 * 4 * columns * core <= memory / 4 or core == 2_000
    assert 8.0 * budget.max_features(memory) ** 2 * 20 <= memory / 2
    trees = budget.tree_rows(memory, columns, n_classes)
    assert trees == 0 or 22 * columns * trees <= memory / 2


def test_the_default_limit_bounds_no_usual_table():
    memory = budget.working_memory(4e9)
    assert budget.training_rows(memory, 100, 3) > 500_000
    assert budget.holdout_rows(memory, 100, 3, 2) > 500_000
    assert budget.max_features(memory) > max(size for _, size in rungs(10**6))
    assert budget.max_features(memory, refit.SQUARE_ARRAYS) >= refit.MAX_FEATURES
    assert budget.batch_rows(memory, 500) >= 65_536
