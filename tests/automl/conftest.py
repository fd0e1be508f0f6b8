"""Fixtures of the tests of tables."""

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture
def one_thread():
    """Threads would wait for each other longer than they work."""
    with threadpool_limits(1, user_api="openmp"):
        yield
