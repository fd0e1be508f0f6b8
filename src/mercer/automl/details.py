"""What fitted models are, in words."""

from __future__ import annotations

import numpy as np

from mercer.automl.candidates import ModelCandidate
from mercer.automl.machines import MachinePlan
from mercer.automl.predictors import LogTarget, Predictor, Regressor
from mercer.automl.recipes import LEARNING_RATE, N_ROUNDS
from mercer.automl.trees import GrownEnsemble


def machine_detail(plan: MachinePlan, predictor: Predictor) -> str:
    """What it is: its loss, kernel, penalty and cells."""
    cells = len(getattr(getattr(predictor, "estimator", None), "models", ()))
    how = plan.how(getattr(predictor, "n_classes", 0))
    return f"{plan.detail}: {how}{_target(predictor)}" + (
        f"; in {cells:,} cells that overlap" if cells > 1 else ""
    )


def _target(predictor: Predictor) -> str:
    return (
        f"; fits the {predictor.target}"
        if isinstance(predictor, Regressor) and isinstance(predictor.target, LogTarget)
        else ""
    )


def candidate_detail(f: ModelCandidate, size: int, predictor: Predictor) -> str:
    if f.plan is not None:
        return machine_detail(f.plan, predictor)
    if f.recipe is None:
        return "the mean of the target, or the share of each class"
    target = _target(predictor)
    penalty = getattr(getattr(predictor, "estimator", None), "alpha", f.alpha)
    return f"{f.recipe.detail(size)}; penalty {float(np.max(penalty)):.3g}{target}"


def trees_detail(grown: GrownEnsemble) -> str:
    """Whose trees they are, and how they were grown."""
    n_classes = grown.predictor.n_classes
    kind = "Classifier" if n_classes else "Regressor"
    return f"scikit-learn's HistGradientBoosting{kind}, {grown.growth.settings(n_classes)}"


def trees_shortage(grown: GrownEnsemble) -> str:
    """That rounds lack, where they do."""
    if not grown.growth.starved:
        return ""
    return f"stopped after {grown.growth.rounds} of {N_ROUNDS} rounds, to keep to time"


def trees_shortened(grown: GrownEnsemble) -> str:
    """That rounds lack, or are fewer and larger than usual."""
    growth = grown.growth
    if growth.starved or growth.rounds >= N_ROUNDS:
        return trees_shortage(grown)
    usual = f"{N_ROUNDS} at {LEARNING_RATE:g}"
    return f"{growth.rounds} rounds at a learning rate of {growth.rate:.2g} instead of {usual}, to keep to time"
