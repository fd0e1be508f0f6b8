"""Contracts: what every kernel, lift, statistic and transformer of text must satisfy, ours and a
user's own; `mercer.testing.twins` holds ours beside scikit-learn's estimators."""

from mercer.testing.contracts import (
    check_kernel,
    check_lift,
    check_statistic,
    check_text_transformer,
)

__all__ = ["check_kernel", "check_lift", "check_statistic", "check_text_transformer"]
