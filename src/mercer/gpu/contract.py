"""How a tile's values are summed over its columns: with few right-hand sides, with many, or with
functions of the two rows' columns.

Each says which arrays it takes beside V, the shape of what a run of columns leaves, and the lines of
a program: before its loop, loads inside it, the sums themselves, and what is stored after it.
"""

from __future__ import annotations

from dataclasses import dataclass

# of cx and cz, one column of the two rows: what derivatives by inputs and parameters are sums of
SLOPES = {
    "difference": "cx - cz",
    "square": "(cx - cz) * (cx - cz)",
    "sign": "xp.where(cx > cz, 1.0, xp.where(cx < cz, -1.0, 0.0))",
    "absolute": "xp.abs(cx - cz)",
    "other": "cz",
    "sine_squared": "xp.sin(cx - cz) * xp.sin(cx - cz)",
    "sine_double": "xp.sin(2.0 * (cx - cz))",
    "difference_sine_double": "(cx - cz) * xp.sin(2.0 * (cx - cz))",
    # of sums over columns of (x - z)^2 / (x + z) and 2 x z / (x + z), for numbers >= 0
    "chisq": "xp.where(cx + cz > 0.0, 1.0 - 4.0 * RATIO * RATIO, 1.0)",
    "harmonic": "xp.where(cx + cz > 0.0, 2.0 * RATIO * RATIO, 0.0)",
}
MAGNIFIED = 2048.0  # what a piece of 11 bits leaves
LEAST = 1e-30  # of a row's largest value
RATIO = "(cz / xp.where(cx + cz > 0.0, cx + cz, 1.0))"


@dataclass(frozen=True)
class Sums:
    """Few right-hand sides, V (q, m): sums of products on CUDA cores, for each result; (results *
    q, n)."""

    results: int
    sides: int
    arrays: tuple[str, ...] = ()

    @property
    def _each(self) -> list[tuple[int, int]]:
        return [(r, i) for r in range(self.results) for i in range(self.sides)]

    def shape(self, rows: int) -> tuple[int, ...]:
        return self.results * self.sides, rows

    def before(self) -> list[str]:
        return [f"total{r}_{i} = xp.zeros((R,), xp.float64)" for r, i in self._each]

    def loads(self) -> list[str]:
        return [f"v{i}_ = xp.load(V + {i} * m + cols)" for i in range(self.sides)]

    def lines(self, results: list[str]) -> list[str]:
        return [
            f"total{r}_{i} += xp.sum({results[r]} * v{i}_[None, :], axis=1).to(xp.float64)"
            for r, i in self._each
        ]

    def after(self) -> list[str]:
        count = self.results * self.sides
        run = f"xp.program_id(1).to(xp.int64) * {count}"
        return [
            f"xp.store(OUT + ({run} + {at}) * n + rows, total{r}_{i})"
            for at, (r, i) in enumerate(self._each)
        ]


@dataclass(frozen=True)
class MatrixProducts:
    """Many right-hand sides, V (m, q): one more product on matrix units; (n, q) of the one
    result."""

    sides: int  # with padding, a power of two
    how: str  # digits of the product, in Triton's words
    arrays: tuple[str, ...] = ()

    def shape(self, rows: int) -> tuple[int, ...]:
        return rows, self.sides

    @property
    def _sides(self) -> str:
        return f"xp.arange(0, {self.sides})[None, :]"

    def before(self) -> list[str]:
        return [f"total = xp.zeros((R, {self.sides}), xp.float64)"]

    def loads(self) -> list[str]:
        return [f"v_ = xp.load(V + cols[:, None].to(xp.int64) * {self.sides} + {self._sides})"]

    def lines(self, results: list[str]) -> list[str]:
        (value,) = results
        return [f'total += xp.dot({value}, v_, input_precision="{self.how}").to(xp.float64)']

    def after(self) -> list[str]:
        at = f"(xp.program_id(1).to(xp.int64) * n + rows[:, None]) * {self.sides} + {self._sides}"
        return [f"xp.store(OUT + {at}, total)"]


@dataclass(frozen=True)
class PieceProducts:
    """The same by float16 pieces, as values lie where matrix units left them: nothing moves between
    threads. Of V, in units of at most 1, two pieces side by side, (m, 2 q); of values, in units of
    the largest of their row in the tile, two; the second ones are magnified. Errors are of the
    largest values and of the largest numbers of V, 1e-10 of their product, not of each by itself.
    """

    sides: int  # with padding, a power of two
    arrays: tuple[str, ...] = ()

    def shape(self, rows: int) -> tuple[int, ...]:
        return rows, self.sides

    @property
    def _whole(self) -> MatrixProducts:
        return MatrixProducts(self.sides, "")

    def before(self) -> list[str]:
        return self._whole.before()

    def loads(self) -> list[str]:
        at = f"cols[:, None].to(xp.int64) * {2 * self.sides} + xp.arange(0, {self.sides})[None, :]"
        return [f"v{i}_ = xp.load(V + {at} + {i * self.sides})" for i in range(2)]

    def lines(self, results: list[str]) -> list[str]:
        (value,) = results
        return [
            f"whole = {value}",
            f"top = xp.maximum(xp.max(xp.abs(whole), axis=1), {LEAST})",
            "whole = whole * (1.0 / top)[:, None]",
            "high = whole.to(xp.float16)",
            f"low = ((whole - high.to(xp.float32)) * {MAGNIFIED}).to(xp.float16)",
            "part = xp.dot(low, v0_)",
            "part = xp.dot(high, v1_, part)",
            f"part = xp.dot(high, v0_) + part * {1 / MAGNIFIED}",
            "total += (part * top[:, None]).to(xp.float64)",
        ]

    def after(self) -> list[str]:
        return self._whole.after()


@dataclass(frozen=True)
class ColumnSums:
    """sum_j K_ij v_j f(x_ik, z_jk) for every column k, by groups of columns that programs share
    out; V (q, m), one side a program; (q * columns, n)."""

    slope: str  # of `SLOPES`
    columns: int
    sides: int
    group: int
    arrays: tuple[str, ...] = ("SA", "SB")  # columns of both sides, (columns, n) and (columns, m)

    @property
    def groups(self) -> int:
        return self.columns // self.group

    def shape(self, rows: int) -> tuple[int, ...]:
        return self.sides * self.columns, rows

    def before(self) -> list[str]:
        return [
            f"side = xp.program_id(2) // {self.groups}",
            f"first = (xp.program_id(2) % {self.groups}).to(xp.int64) * {self.group}",
            f"total = xp.zeros((R, {self.group}), xp.float64)",
        ]

    def loads(self) -> list[str]:
        return ["v_ = xp.load(V + side * m + cols)"]

    def lines(self, results: list[str]) -> list[str]:
        (value,) = results
        text = SLOPES[self.slope].replace("RATIO", RATIO)
        inner = [
            "cx = xp.load(SA + (first + k) * n + rows)[:, None]",
            "cz = xp.load(SB + (first + k) * m + cols)[None, :]",
            f"part = xp.sum(weight * ({text}), axis=1).to(xp.float64)",
            f"total += xp.where(xp.arange(0, {self.group})[None, :] == k, part[:, None], 0.0)",
        ]
        head = [f"weight = {value} * v_[None, :]", f"for k in range(0, {self.group}):"]
        return head + ["    " + line for line in inner]

    def after(self) -> list[str]:
        run = f"xp.program_id(1).to(xp.int64) * {self.sides * self.columns}"
        at = f"side * {self.columns} + first + xp.arange(0, {self.group})[None, :]"
        return [f"xp.store(OUT + ({run} + {at}) * n + rows[:, None], total)"]


@dataclass(frozen=True)
class Values:
    """No sum: the values themselves, (n, m)."""

    arrays: tuple[str, ...] = ()

    def shape(self, rows: int) -> tuple[int, ...]:
        raise NotImplementedError(
            "values are stored by `mercer.gpu.values`, whose shape is its own."
        )

    def before(self) -> list[str]:
        return []

    def loads(self) -> list[str]:
        return []

    def lines(self, results: list[str]) -> list[str]:
        (value,) = results
        return [f"xp.store(OUT + rows[:, None] * m + cols[None, :], {value})"]

    def after(self) -> list[str]:
        return []


@dataclass(frozen=True)
class Largest:
    """The `count` largest values of each row of a run of columns and their columns, in no order,
    (n, count) each; of equal values those of the first columns. `count` is a power of two, of which
    `asked` are wanted."""

    count: int
    asked: int
    dtype: str
    arrays: tuple[str, ...] = ("NAMES", "MOST")  # columns that were found, columns that there are

    def shape(self, rows: int) -> tuple[int, ...]:
        return rows, self.count

    @property
    def _slots(self) -> str:
        return f"xp.arange(0, {self.count})[None, :]"

    def before(self) -> list[str]:
        """Slots that are not wanted hold what nothing is larger than."""
        zeros = f"xp.zeros((R, {self.count}), xp.{self.dtype})"
        return [
            f'best = {zeros} + xp.where({self._slots} < {self.asked}, -float("inf"), float("inf"))',
            f"named = xp.zeros((R, {self.count}), xp.int32) - 1 - {self._slots}",
            "most = xp.load(MOST)",
        ]

    def loads(self) -> list[str]:
        return []

    def lines(self, results: list[str]) -> list[str]:
        (value,) = results
        more = "xp.max((xp.max(left, axis=1) > xp.min(best, axis=1)).to(xp.int32), axis=0)"
        inner = [
            "top, low = xp.max(left, axis=1), xp.min(best, axis=1)",
            "first = xp.argmax(left, axis=1)",
            "last = xp.max(xp.where(best == low[:, None], named, -2147483648), axis=1)",
            "out = (best == low[:, None]) & (named == last[:, None]) & (top > low)[:, None]",
            "best = xp.where(out, top[:, None], best)",
            "named = xp.where(out, (start + at + first)[:, None], named)",
            'left = xp.where(xp.arange(0, C)[None, :] == first[:, None], -float("inf"), left)',
            f"more = {more}",
        ]
        head = [
            f'left = xp.where((cols < most)[None, :], {value}, -float("inf"))',
            f"more = {more}",
        ]
        return [*head, "while more > 0:", *("    " + line for line in inner)]

    def after(self) -> list[str]:
        to = f"(xp.program_id(1).to(xp.int64) * n + rows[:, None]) * {self.count} + {self._slots}"
        return [f"xp.store(OUT + {to}, best)", f"xp.store(NAMES + {to}, named)"]


Contraction = Sums | MatrixProducts | PieceProducts | ColumnSums | Values | Largest
