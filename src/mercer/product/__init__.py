"""From a table to a model and its evidence: the holdout, the contest of contenders, the judgement, and the model that predicts."""
from mercer.product.evidence import Contender, Evidence
from mercer.product.fit import fit_table
from mercer.product.model import TableModel

__all__ = ["Contender", "Evidence", "TableModel", "fit_table"]
