"""Columns of sequences in a fit: told, raced, scored and named."""

import json
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from mercer import fit_table, load
from mercer.automl.sequence_kinds import sequence_kinds
from mercer.automl.sequence_places import telling_place
from mercer.report import page
from mercer.report.texts import spoken
from tests.automl.test_text_scores import prepared, scores_of

LETTERS = np.array(list("ACGT"))


def dna(n=300, length=30, seed=0, motif="TTGACA", at=None):
    """Half of the sequences with a motif, anywhere or at a place."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    out = []
    for has in y:
        text = "".join(rng.choice(LETTERS, length))
        place = rng.integers(0, length - len(motif)) if at is None else at
        out.append(text[:place] + motif + text[place + len(motif) :] if has else text)
    return pa.table({"seq": out, "y": np.where(y, "yes", "no")})


def test_words_are_raced_scored_and_named():
    data, texts = prepared(dna(), time=600.0)
    train, held, _ = scores_of(data, "seq")
    assert np.corrcoef(train, data.train.y)[0, 1] > 0.7
    assert np.corrcoef(held, data.held.y)[0, 1] > 0.7
    (found,) = texts.found
    assert found["alphabet"] == "dna"
    assert len(found["tried"]) == 5
    words = {gram for gram, output, gain, _ in found["ngrams"] if gain > 0 and output == "yes"}
    assert words & {"TTG", "TGAC", "GACA", "TTGAC", "TGACA", "TTGACA"}
    told = next(t for t in data.columns.treatments_ if t.name == "seq")
    assert told.action.startswith(
        "DNA sequence: scores of a linear model over its words of letters"
    )
    json.dumps(found)


def test_places_win_where_they_tell():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    cells = ["".join(rng.choice(LETTERS, 20)) for _ in y]
    cells = [c[:9] + "GT"[v] + c[10:] for c, v in zip(cells, y, strict=True)]
    _, texts = prepared(pa.table({"seq": cells, "y": np.where(y, "yes", "no")}))
    (found,) = texts.found
    assert "at their places" in found["kind"]
    assert [found["ngrams"][0][0], found["ngrams"][0][1]] == ["T at 10", "yes"]


def test_kinds_follow_the_column():
    def names(cells, scores=1):
        return [k.name for k in sequence_kinds(pa.array(cells), scores)]

    rng = np.random.default_rng(0)
    equal = ["".join(rng.choice(LETTERS, 40)) for _ in range(9)]
    assert any("places" in n for n in names(equal))
    ragged = [s[: 20 + 2 * i] for i, s in enumerate(equal)]
    assert not any("places" in n for n in names(ragged))
    assert any("any" in n for n in names(ragged))
    assert names(equal, scores=10_000_000) == ["words of 3 to 6 letters"]
    assert names(["a text of words"] * 9) == []
    protein = ["".join(rng.choice(list("ACDEFGHIKLMNPQRSTVWY"), 40 + i)) for i in range(9)]
    assert names(protein) == ["words of 1 to 3 letters", "words of 5 letters, 2 of them any"]


def sited(n, length=200, site=120, seed=0):
    """A motif at a place among decoys elsewhere, and one class richer in T before that place."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    out = rng.choice(LETTERS, (n, length))
    for row, has in zip(out, y, strict=True):
        if has:
            row[site : site + 3] = list("CAG")
            row[site - 33 : site] = rng.choice(LETTERS, 33, p=[0.2, 0.15, 0.15, 0.5])
    return pa.array(map("".join, out)), np.where(y, 1.0, -1.0)[:, None]


@pytest.mark.parametrize("site", [33, 80, 120, 196])
def test_the_place_that_tells_is_found(site):
    cells, Y = sited(400, site=site)
    found = telling_place(cells, Y, None, "dna", 200)
    assert abs(found - (site + 1)) <= 4
    rng = np.random.default_rng(1)
    assert telling_place(cells, Y[rng.permutation(400)], None, "dna", 200) is None
    assert telling_place(cells, Y, np.zeros(400), "dna", 200) is None
    assert telling_place(cells, np.ones((400, 1)), None, "dna", 200) is None


def test_regions_about_a_place_are_raced_and_named():
    cells, Y = sited(600)
    kinds = sequence_kinds(cells, 1, partial(telling_place, cells, Y, None))
    assert sum("regions" in k.name for k in kinds) == 1
    short = pa.array([c[:100] for c in cells.to_pylist()])
    assert not any("regions" in k.name for k in sequence_kinds(short, 1, lambda *_: 50))
    table = pa.table({"seq": cells, "y": np.where(Y[:, 0] > 0, "yes", "no")})
    data, texts = prepared(table, time=600.0)
    (found,) = texts.found
    assert any("regions" in kind for kind, _ in found["tried"])
    assert len(data.train.y) + len(data.held.y) == 600


@pytest.mark.parametrize("length", [12, 45])
def test_short_sequences_are_no_identifiers(length):
    data, texts = prepared(dna(length=length))
    assert [t["column"] for t in texts.found] == ["seq"]
    assert {t.name: t.kind for t in data.columns.treatments_}["seq"] == "text"


def test_groups_stay_whole():
    table = dna().append_column("chr", pa.array([f"chr{i % 6}" for i in range(300)]))
    data, _ = prepared(table, group="chr")
    chromosome = np.arange(300) % 6
    train, held = (set(chromosome[rows.row_id]) for rows in (data.train, data.held))
    assert not train & held


def test_a_fasta_file_is_fitted_saved_and_predicted(tmp_path):
    table = dna(240)
    path = tmp_path / "a.fa"
    records = zip(table["seq"].to_pylist(), table["y"].to_pylist(), strict=True)
    path.write_text("".join(f">{y}\n{s[:20]}\n{s[20:]}\n" for s, y in records))
    model = fit_table(str(path), "label", metric="auc", time=3)
    assert model.result.chosen.holdout > 0.85
    assert "for yes" in spoken(model.result)[0]
    html = page.html(model.result)
    assert "Strongest words" in html
    assert "words raced on rows left out" in html
    model.save(tmp_path / "m.mercer")
    back = load(tmp_path / "m.mercer")
    odd = pa.table({"sequence": ["", None, "N" * 50, "é", "ACGT" * 10_000, "AC GT", "1 2"]})
    one, other = (
        pa.Table.from_batches(m.predict_batches(odd)).column("p_yes").to_numpy()
        for m in (model, back)
    )
    assert np.array_equal(one, other)
    assert np.isfinite(one).all()
    assert back.score(str(path)) > 0.9
