"""Columns as numbers: laws of the scaling and of the categories."""
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.tables.encoders import BooleanEncoder, CategoryEncoder, DateEncoder, NumberEncoder, TextEncoder, from_state
from mercer.tables.finish import acts_as_codes, copies, distinct_rows, leaks
from mercer.tables.scale import FAR, Standardizer, tails

NUMBER = NumberEncoder(Standardizer(2.0, 2.0), 5.0, True)
TOWNS = CategoryEncoder(("Oslo", "Bergen", "Voss"), (0.6, 0.3, 0.1), 2, True, True, Standardizer(-1.0, 0.5))
CODES = CategoryEncoder(("7", "3"), (0.6, 0.4), 2, False, False, None, True)
ENCODERS = {
    "number": NUMBER,
    "boolean": BooleanEncoder(("no", "yes"), 1.0, True),
    "date": DateEncoder("iso", Standardizer(0.0, 1e9), 0.0, ("year", "day"), True, True),
    "category": TOWNS,
    "codes": CODES,
    "text": TextEncoder(TOWNS, Standardizer(), Standardizer()),
    "new text": TextEncoder(None, Standardizer(), Standardizer()),
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
    assert encoder.features(encoder.read(pa.array([], pa.string()))[0]).shape == (0, features.shape[1])


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=40))
def test_scaling_is_finite_and_monotone(values):
    x = np.sort(np.array(values))
    z = Standardizer.of(x)(x)
    assert np.isfinite(z).all()
    assert np.all(np.diff(z) >= 0)
    assert np.abs(z).max() <= FAR


@pytest.mark.parametrize("unit", [1e-150, 1.0, 1e150])
@pytest.mark.parametrize("shift", [0.0, 5.0])
def test_normal_numbers_are_standardised_whatever_the_unit(unit, shift):
    for seed in range(3):
        x = (np.random.default_rng(seed).normal(size=2000) + shift) * unit
        scale = Standardizer.of(x)
        assert scale.spread == 0
        assert (np.mean(scale(x)), np.std(scale(x))) == (pytest.approx(0, abs=1e-9), pytest.approx(1))


def test_heavy_tails_are_bent():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        mostly_zero = (rng.random(3000) < 0.05) * rng.lognormal(8, 1, 3000)
        for x in (rng.lognormal(0, 2, 3000), -rng.lognormal(0, 2, 3000), rng.standard_cauchy(3000), mostly_zero):
            scale = Standardizer.of(x)
            assert scale.spread > 0
            assert max(tails(scale.bent(x))) < max(tails(x)) / 2


def test_two_categories_lie_as_far_apart_as_two_numbers():
    hot = CategoryEncoder(("a", "b", "c"), (0.5, 0.3, 0.2), 2, True, True)
    for encoder, cells in ((hot, ["a", "b", "c", None]), (CODES, ["7", "3"]), (BooleanEncoder(("no", "yes"), 0.0), ["no", "yes"])):
        F = encoder.features(encoder.read(pa.array(cells))[0])
        distances = np.linalg.norm(F[:, None] - F, axis=2)
        assert np.allclose(distances[np.triu_indices(len(cells), 1)], 2**0.5)


def test_unseen_rare_and_missing_levels():
    F = TOWNS.features(TOWNS.read(pa.array(["Oslo", "Voss", "Paris", None]))[0])
    assert TOWNS.names("town") == ("town = Oslo", "town = Bergen", "town = other", "town missing", "town frequency")
    assert F[:, :4].tolist() == [[1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    assert F[0, 4] > F[1, 4] == F[2, 4] == F[3, 4]  # a new level is as rare as the rarest: less would be far from every row
    assert CODES.features(CODES.read(pa.array(["7.0", "3", "", "5", "x"]))[0]).tolist() == [[1, 0], [0, 1], [1, 0], [0, 0], [0, 0]]


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


def test_codes_are_told_from_numbers():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        x = rng.integers(0, 12, 2000).astype(float)
        jumps = rng.normal(size=12)
        assert acts_as_codes(x, jumps[x.astype(int)] + rng.normal(size=2000), False)
        assert acts_as_codes(x, (jumps[x.astype(int)] + rng.normal(size=2000) > 0).astype(float), True)
        for smooth in (x, np.sin(x / 3), (x - 5) ** 2, 0 * x):
            assert not acts_as_codes(x, smooth + rng.normal(size=2000), False)
    assert not acts_as_codes(np.arange(10.0), np.arange(10.0) % 2, False)


def test_leaks():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        y, x = rng.normal(size=(2, 500))
        gaps = np.where(rng.random(500) < 0.2, np.nan, -3 * y)
        assert leaks(y, y, False) and leaks(np.exp(y), y, False) and leaks(gaps, y, False)  # noqa: PT018 - three of a kind
        assert not leaks(x, y, False)
        assert not leaks(y + 0.01 * x, y, False)
        assert not leaks(np.round(y), y, False)
        labels = rng.integers(0, 3, 500)
        assert leaks(np.array([5.0, 1.0, 3.0])[labels], labels.astype(float), True)
        assert not leaks(np.array([5.0, 1.0, 1.0])[labels], labels.astype(float), True)
        assert leaks(np.array([5.0, 1.0, 9.0] * 5)[labels + 3 * rng.integers(0, 1, 500)], labels.astype(float), True)
        codes = rng.integers(0, 15, 500)
        assert leaks(rng.permutation(15)[codes].astype(float), codes.astype(float), False)
    assert not leaks(np.arange(5.0), np.arange(5.0), False)  # too few rows to tell


def test_copies():
    x = np.array([1.0, np.nan, 3.0])
    assert copies({"a": x, "b": x + 1, "c": x.copy(), "d": x + 1}) == {"c": "a", "d": "b"}


def test_repeated_rows_are_no_leak():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x, z, y = np.tile(rng.normal(size=(3, 60)), 10)
        few = distinct_rows([x, z, y])
        assert len(few) == 60
        assert not leaks(x[few], y[few], False)
        assert not leaks(x, y, False)  # sixty pairs are no simple relation either
        assert leaks(np.exp(y)[few], y[few], False)


WAYS = {
    "words": ["yes", "no", "no"], "truth": [True, False, False], "digits": [1, 0, 0], "floats": [1.0, 0.0, 0.0], "texts": ["1", "0", "0"],
    "letters": ["T", "F", "F"],
}  # fmt: skip


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
