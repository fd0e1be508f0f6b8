"""What a kernel formula may ask about pairs of rows, and the readings that answer: numbers, dual
numbers, symbols."""

from mercer.pairs.dual import Dual, DualPairs, contract
from mercer.pairs.near import squares
from mercer.pairs.side import Side, Sides, centre_of
from mercer.pairs.tile import Diagonal, Tile
from mercer.pairs.traced import KernelSource, Symbol, Trace, Traced

__all__ = [
    "Diagonal",
    "Dual",
    "DualPairs",
    "Side",
    "Sides",
    "KernelSource",
    "Symbol",
    "Tile",
    "Trace",
    "Traced",
    "centre_of",
    "contract",
    "squares",
]
