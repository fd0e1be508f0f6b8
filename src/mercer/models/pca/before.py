"""Files of before, in which the parts of a fitted kernel PCA were attributes of the estimator."""

from __future__ import annotations

from typing import Any

from mercer.models.base import bytes_of, checked, parted
from mercer.models.expansion import Expansion
from mercer.models.maps import FittedMap
from mercer.models.pca.projections import DualProjection, FeatureProjection


def with_projection(state: dict[str, Any]) -> dict[str, Any]:
    """The attributes of such a file, its parts in one projection.

    >>> with_projection({"n_components": 2, "plan_": None})
    {'n_components': 2}
    """
    names = (
        "_dual",
        "_back",
        "_found",
        "moments_",
        "X_fit_",
        "kernel_",
        "plan_",
        "lift_",
        "n_features_lifted_",
    )
    rest, old = parted(state, *names)
    if old["plan_"] is None:
        return rest
    if old["_dual"] is not None:
        over = Expansion.of_file(old["kernel_"], old["X_fit_"], rest.get("feature_names_in_"))
        return {
            **rest,
            "projection_": checked(DualProjection(old["plan_"], over, old["_dual"])),
        }
    phi, moments = (
        FittedMap.of_file(old["lift_"], bytes_of(rest["memory_limit"])),
        old["moments_"],
    )
    size, source = (
        min(rest["n_components"], phi.width),
        old["_found"] if moments is None else moments,
    )
    n = old["plan_"].settings["rows"] if moments is None else None
    return {**rest, "projection_": checked(FeatureProjection(phi, size, source, n))}
