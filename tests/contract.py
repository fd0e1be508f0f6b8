"""scikit-learn's checks with the failures that are expected: one that passes is no longer expected."""

from sklearn.utils.estimator_checks import check_estimator


def keeps_contract(estimator, why=None):
    """Run `check_estimator`; the checks of `why` must fail, each for its reason."""
    results = check_estimator(estimator, on_skip=None, expected_failed_checks=why or {})
    stale = [r["check_name"] for r in results if r["expected_to_fail"] and r["status"] == "passed"]
    assert not stale, f"these pass and are not to be expected any more: {stale}"
    return {r["check_name"]: r["exception"] for r in results if r["status"] == "xfail"}
