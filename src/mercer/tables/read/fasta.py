"""FASTA files: records of a header and a sequence on any number of lines, written out as a table
that can be read in pieces."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from mercer.tables.arrow import pa
from mercer.tables.errors import DataError
from mercer.tables.read.files import reading, unpacked
from mercer.tables.read.pipes import Spooled, spool

SEQUENCE, LABEL, NAME, REST = "sequence", "label", "id", "description"
MAX_FIELDS = 64  # of headers that become columns
MAX_LABELS = 100  # different first words of headers that may be labels
BATCH_LETTERS = 1 << 22
_BETWEEN = re.compile(r"[\s|,;]+")
_BANK = re.compile(
    r"(gi|sp|tr|ref|gb|emb|dbj|pdb|pir|prf|lcl|gnl|tp[gde])(\|[^\s|=]+)+(?=[\s|]|$)", re.I
)
_FIELD = re.compile(r"([A-Za-z_]\w*)=(\S*)")


@dataclass
class Header:
    """What stands behind the sign of a record: a first word, fields such as label=-1, and the
    rest."""

    first: str
    fields: dict[str, str]
    rest: str

    @classmethod
    def of(cls, text: str) -> Header:
        """Words are parted by blanks, commas, semicolons or |.

        >>> Header.of("seq1|label=-1 chr=chr2 of a worm")
        Header(first='seq1', fields={'label': '-1', 'chr': 'chr2'}, rest='of a worm')

        Names of data banks stay whole.

        >>> Header.of("sp|P12345|AATM_RABIT of a rabbit").first
        'sp|P12345|AATM_RABIT'
        """
        bank = _BANK.match(text)
        end = bank.end() if bank else 0
        words = [text[:end], *_BETWEEN.split(text[end:])]
        words = [word for word in words if word]
        found = [_FIELD.fullmatch(word) for word in words]
        plain = [w for w, m in zip(words, found, strict=True) if m is None]
        fields = {m.group(1): m.group(2) for m in found if m is not None}
        return cls(plain[0] if plain else "", fields, " ".join(plain[1:]))


@dataclass
class Survey:
    """What the headers of a file have, seen in one pass."""

    count: int = 0
    named: int = 0  # with a first word
    described: int = 0
    first: set[str] = field(default_factory=set)  # no more than one above MAX_LABELS
    fields: dict[str, None] = field(default_factory=dict)

    def add(self, h: Header) -> None:
        self.count += 1
        self.named += bool(h.first)
        self.described += bool(h.rest)
        if len(self.first) <= MAX_LABELS:
            self.first.add(h.first)
        for key in h.fields:
            if len(self.fields) < MAX_FIELDS:
                self.fields.setdefault(key)

    @property
    def first_is(self) -> str | None:
        """What first words are: labels where they come again, and no field is one; else names."""
        again = self.named == self.count and len(self.first) <= min(MAX_LABELS, self.count // 2)
        taken = set(self.fields)
        if again and LABEL not in taken:
            return LABEL
        return NAME if self.named and NAME not in taken else None

    @property
    def columns(self) -> tuple[str, ...]:
        """In order."""
        first = () if self.first_is is None else (self.first_is,)
        rest = (REST,) * bool(self.described and REST not in self.fields)
        known = (*first, *(f for f in self.fields if f != SEQUENCE), *rest)
        return (*known, SEQUENCE)

    def row(self, h: Header) -> list[str | None]:
        """The cells of a header in the order of columns, without the sequence."""
        cells = {**h.fields, **({REST: h.rest} if REST not in h.fields else {})}
        if self.first_is is not None:
            cells[self.first_is] = h.first
        return [cells.get(name) or None for name in self.columns[:-1]]


def table_of_fasta(path: Path) -> Spooled:
    """The records as an arrow stream: a column for the sequences, one for each field of headers, and
    labels or names where headers begin with such."""
    survey = Survey()
    for header, _ in records(path):
        survey.add(Header.of(header))
    return spool(_stream(path, survey), str(path))


def records(path: Path) -> Iterator[tuple[str, str]]:
    """Headers and sequences: lines are joined, blanks left out, and lines that begin with ; too."""
    header: str | None = None
    parts: list[str] = []
    with reading(path), unpacked(path) as stream:
        lines = io.TextIOWrapper(stream, "utf-8-sig", errors="replace", newline=None)
        for number, line in enumerate(lines, 1):
            text = line.strip()
            if text.startswith(">"):
                if header is not None:
                    yield header, "".join(parts)
                header, parts = text[1:], []
            elif header is None and text and not text.startswith(";"):
                raise DataError(
                    f"{path}, line {number:,}: a FASTA file begins with a header such as '>name label=1', not {text[:40]!r}."
                )
            elif not text.startswith(";"):
                parts.append("".join(text.split()))
    if header is None:
        raise DataError(f"{path} has no FASTA header; begin each sequence with a line '>name'.")
    yield header, "".join(parts)


def _stream(path: Path, survey: Survey) -> Iterator[bytes]:
    schema = pa.schema([(name, pa.large_string()) for name in survey.columns])
    out = io.BytesIO()
    with pa.ipc.new_stream(out, schema) as writer:
        rows: list[list[str | None]] = []
        letters = 0
        for header, sequence in records(path):
            rows.append([*survey.row(Header.of(header)), sequence or None])
            letters += len(sequence) + len(header)
            if letters > BATCH_LETTERS:
                writer.write_batch(_batch(rows, schema))
                rows, letters = [], 0
                yield _taken(out)
        if rows:
            writer.write_batch(_batch(rows, schema))
    yield _taken(out)


def _batch(rows: list[list[str | None]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(c, pa.large_string()) for c in columns], schema=schema
    )


def _taken(out: io.BytesIO) -> bytes:
    """What was written since, which is then let go."""
    found = out.getvalue()
    out.seek(0)
    out.truncate()
    return found
