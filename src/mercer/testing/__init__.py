"""Contracts: what every kernel, lift and statistic must satisfy, ours and a user's own."""
from mercer.testing.kernels import check_kernel
from mercer.testing.lifts import check_lift
from mercer.testing.stats import check_statistic

__all__ = ["check_kernel", "check_lift", "check_statistic"]
