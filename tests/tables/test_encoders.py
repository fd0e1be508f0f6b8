"""Columns as numbers: laws of the encoders, and cells written in another way."""

import numpy as np
import pyarrow as pa
import pytest

from mercer.tables.encoders import (
    BooleanEncoder,
    CategoryEncoder,
    DateEncoder,
    NumberEncoder,
    TextEncoder,
    from_state,
)
from mercer.tables.levels import CodedNumberEncoder, LevelMeansEncoder
from mercer.tables.scale import RankNormalizer, Standardizer

NUMBER = NumberEncoder(Standardizer(2.0, 2.0), 5.0, True)
TOWNS = CategoryEncoder(
    ("Oslo", "Bergen", "Voss"), (0.6, 0.3, 0.1), 2, True, True, Standardizer(-1.0, 0.5)
)
CODES = CategoryEncoder(("7", "3"), (0.6, 0.4), 2, False, False, None, True)
ENCODERS = {
    "number": NUMBER,
    "boolean": BooleanEncoder(("no", "yes"), 1.0, True),
    "date": DateEncoder("iso", Standardizer(0.0, 1e9), 0.0, ("year", "day"), True, True),
    "category": TOWNS,
    "codes": CODES,
    "text": TextEncoder(TOWNS, Standardizer(), Standardizer()),
    "new text": TextEncoder(None, Standardizer(), Standardizer()),
    "ranks": NumberEncoder(RankNormalizer((1.0, 2.0, 9.0), 2.0), 5.0, True),
    "number and codes": CodedNumberEncoder(NUMBER, CODES),
    "positions of levels": LevelMeansEncoder(TOWNS, ("target",)),
    "means of levels": LevelMeansEncoder(TOWNS, ("a", "b"), tuple(float(i) for i in range(10))),
}
CELLS = pa.array(["Oslo", "yes", "3", "", "2021-05-06", "7.0", None, "no", "Paris"])


@pytest.mark.parametrize("encoder", ENCODERS.values(), ids=list(ENCODERS))
def test_features_are_finite_named_and_survive_their_state(encoder):
    values, unread = encoder.read(CELLS)
    features = encoder.features(values)
    assert np.isfinite(features).all()
    assert features.shape == (len(CELLS), len(encoder.names("x")))
    assert 0 <= unread <= len(CELLS)
    assert from_state(encoder.state()) == encoder
    assert encoder.features(encoder.read(pa.array([], pa.string()))[0]).shape == (
        0,
        features.shape[1],
    )


def test_two_categories_lie_as_far_apart_as_two_numbers():
    hot = CategoryEncoder(("a", "b", "c"), (0.5, 0.3, 0.2), 2, True, True)
    for encoder, cells in (
        (hot, ["a", "b", "c", None]),
        (CODES, ["7", "3"]),
        (BooleanEncoder(("no", "yes"), 0.0), ["no", "yes"]),
    ):
        F = encoder.features(encoder.read(pa.array(cells))[0])
        distances = np.linalg.norm(F[:, None] - F, axis=2)
        assert np.allclose(distances[np.triu_indices(len(cells), 1)], 2**0.5)


def test_unseen_rare_and_missing_levels():
    F = TOWNS.features(TOWNS.read(pa.array(["Oslo", "Voss", "Paris", None]))[0])
    assert TOWNS.names("town") == (
        "town = Oslo",
        "town = Bergen",
        "town = other",
        "town missing",
        "town frequency",
    )
    assert F[:, :4].tolist() == [[1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    assert (
        F[0, 4] > F[1, 4] == F[2, 4] == F[3, 4]
    )  # a new level is as rare as the rarest: less would be far from every row
    assert CODES.features(CODES.read(pa.array(["7.0", "3", "", "5", "x"]))[0]).tolist() == [
        [1, 0],
        [0, 1],
        [1, 0],
        [0, 0],
        [0, 0],
    ]


def test_numbers_that_cannot_be_read_are_counted():
    values, unread = NUMBER.read(pa.array(["1", "x", "", "y"]))
    assert unread == 2
    assert NUMBER.features(values)[1].tolist() == [1.5, 2**0.5]
    assert BooleanEncoder(("0", "1"), 0.0).read(pa.array(["0", "1", "2", "x", ""]))[1] == 2
    assert ENCODERS["date"].read(pa.array(["2021-01-01", "soon", ""]))[1] == 1


def test_the_end_of_a_year_is_near_its_beginning():
    date = DateEncoder("iso", Standardizer(), 0.0, ("year",), False)
    F = date.features(date.read(pa.array(["2020-12-31", "2021-01-01", "2021-07-01"]))[0])
    assert np.linalg.norm(F[0] - F[1]) < 0.05
    assert np.linalg.norm(F[1] - F[2]) > 1.9


WAYS = {
    "words": ["yes", "no", "no"],
    "truth": [True, False, False],
    "digits": [1, 0, 0],
    "floats": [1.0, 0.0, 0.0],
    "texts": ["1", "0", "0"],
    "letters": ["T", "F", "F"],
}


@pytest.mark.parametrize("pair", [("no", "yes"), ("0", "1"), ("false", "true")], ids="/".join)
@pytest.mark.parametrize("way", WAYS)
def test_booleans_survive_another_way_of_writing(pair, way):
    values, unread = BooleanEncoder(pair, 0.0).read(pa.array(WAYS[way]))
    assert values[:, 0].tolist() == [1.0, 0.0, 0.0]
    assert unread == 0


DAYS = ("31.01.2024", "01/31/2024", "2024-01-31", "31 Jan 2024")


@pytest.mark.parametrize("form", ["iso", "%d.%m.%Y", None])
@pytest.mark.parametrize("cell", DAYS)
def test_dates_survive_another_way_of_writing(form, cell):
    moment = np.datetime64("2024-01-31").astype("datetime64[s]").astype(float)
    encoder = DateEncoder(form, Standardizer(), 0.0)
    assert encoder.read(pa.array([cell, None, cell]))[0][:, 0].tolist()[::2] == [moment, moment]
    assert encoder.read(pa.array([cell, None]))[1] == 0
    assert encoder.read(pa.array(["soon", "12:30", None]))[1] == 2
