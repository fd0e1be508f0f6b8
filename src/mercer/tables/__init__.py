"""Tables: files as record batches, and their columns as numbers; needs pyarrow (pip install
mercer[cli])."""

from mercer.tables.columns import Columns
from mercer.tables.drift import DriftReport, Watch
from mercer.tables.errors import DataError
from mercer.tables.read.sniff import CsvOptions
from mercer.tables.read.source import Source, open_source
from mercer.tables.schema import SchemaReport
from mercer.tables.target import Target
from mercer.tables.treatment import Rows, Treatment

__all__ = [
    "open_source",
    "Source",
    "CsvOptions",
    "Columns",
    "Rows",
    "Target",
    "Treatment",
    "SchemaReport",
    "Watch",
    "DriftReport",
    "DataError",
]
