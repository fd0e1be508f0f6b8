"""Peers of scikit-learn whose settings changed between its versions."""

from inspect import signature

from sklearn.linear_model import LogisticRegression

# up to 1.7 the penalty is named; from 1.8 on that warns, and l1_ratio says it alone
NAMED = signature(LogisticRegression).parameters["penalty"].default == "l2"


def sparse_logistic(**options):
    """Logistic regression with the 1-norm of its coefficients as penalty, precisely."""
    kind = {"penalty": "l1"} if NAMED else {"l1_ratio": 1.0}
    return LogisticRegression(solver="saga", max_iter=100_000, **kind, **options)
