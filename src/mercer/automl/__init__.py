"""From a table to a model and its evidence: the holdout, the contest of contenders, the judgement, and the model that predicts."""
from mercer.automl.fit import fit_table
from mercer.automl.model import TableModel
from mercer.automl.result import Contender, Evidence

__all__ = ["Contender", "Evidence", "TableModel", "fit_table"]
