"""From a table to a model and its result: the holdout, the selection among candidates, the
evaluation, and the model that predicts."""

from mercer.automl.fit import fit_table
from mercer.automl.model import TableModel
from mercer.automl.result import Contender, FitResult

__all__ = ["Contender", "FitResult", "TableModel", "fit_table"]
