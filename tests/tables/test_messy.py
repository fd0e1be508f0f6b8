"""Values as people write them: units, codes, marks of missing, spellings of yes, columns of one
name."""

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.tables import Columns, DataError, open_source
from mercer.tables.encoders import from_state
from mercer.tables.values import missing_marks

N = 240
RNG = np.random.default_rng(0)
Y = RNG.normal(size=N)


def fitted(cells, y=Y):
    """The treatment of one column beside a plain one, and its encoder, as a saved model would have
    it."""
    batch = pa.record_batch({"x": cells, "plain": RNG.normal(size=len(y)), "y": y})
    found = Columns("y").fit([batch])
    assert Columns.from_state(found.state()).state() == found.state()
    encoder = found.encoders_.get("x")
    return found.treatments_[0], from_state(encoder.state()) if encoder else None


def told(treatment, words):
    assert any(words in text for text in treatment.warnings), treatment.warnings


@pytest.mark.parametrize("unit", ["kg", " kg", " KG", "km/h", " °C", " m²", "%", " USD"])
def test_numbers_with_a_unit_are_numbers(unit):
    values = RNG.normal(70, 9, N).round(2)
    treatment, encoder = fitted([f"{v}{unit}" for v in values])
    assert treatment.kind == "number"
    assert np.array_equal(encoder.read(pa.array([f"{v}{unit}" for v in values]))[0][:, 0], values)
    assert encoder.read(pa.array(["12.5", None]))[0][:, 0].tolist()[0] == 12.5


def test_units_that_differ_are_never_taken_for_one():
    """12 kg and 500 g are not 12 and 500."""
    treatment, _ = fitted(
        [f"{v:.0f} {'kg' if i % 2 else 'g'}" for i, v in enumerate(RNG.normal(70, 9, N))]
    )
    assert treatment.kind == "category"
    told(treatment, "two units (g, kg)")
    treatment, _ = fitted(
        [f"{v:.0f}{' kg' if i % 2 else ' or so'}" for i, v in enumerate(RNG.normal(70, 9, N))]
    )
    told(treatment, "mixes numbers and text")
    treatment, encoder = fitted(
        [f"{v:.1f} {'g' if i == 7 else 'kg'}" for i, v in enumerate(RNG.normal(70, 9, N))]
    )
    assert treatment.kind == "number"
    told(treatment, "one of its values is text")
    assert np.isnan(encoder.read(pa.array(["5 g"]))[0][0, 0])


def test_a_target_with_a_unit(tmp_path):
    batch = pa.record_batch({"x": RNG.normal(size=N), "y": [f"{v:.3f} m" for v in Y]})
    found = Columns("y").fit([batch])
    assert found.task_ == "regression"
    assert np.allclose(found.transform(batch).y, Y, atol=1e-3)
    assert any('has "m" behind its numbers' in text for text in found.warnings_)
    assert found.treatments_[1].details.endswith(" m")


def test_spellings_of_a_target_that_were_merged_are_told():
    spelled = np.where(
        np.median(Y) < Y, np.resize(["yes", "YES", "Y"], N), np.resize(["no", "N"], N)
    )
    found = Columns("y").fit([pa.record_batch({"x": RNG.normal(size=N), "y": spelled.tolist()})])
    assert len(found.classes_) == 2
    assert [text for text in found.warnings_ if "several ways" in text and '"YES"' in text]
    plain = Columns("y").fit(
        [
            pa.record_batch(
                {"x": RNG.normal(size=N), "y": np.where(np.median(Y) < Y, "yes", "no").tolist()}
            )
        ]
    )
    assert not any("several ways" in text for text in plain.warnings_)


def test_codes_with_leading_zeros_stay_codes():
    codes = [f"{v:05d}" for v in RNG.choice([123, 4567, 90210, 10001], N)]
    treatment, encoder = fitted(codes)
    assert treatment.kind == "category"
    assert set(encoder.levels) == set(codes)
    told(treatment, "holds codes with zeros before, such as")
    treatment, encoder = fitted([f"{i:06d}" for i in RNG.permutation(N)])
    assert (treatment.kind, encoder) == ("id", None)
    for plain in (["0.5", "12", "0"], ["10", "200", "0"]):
        assert fitted([plain[i % 3] if i % 5 else str(i) for i in range(N)])[0].kind == "number"


def test_a_target_of_codes_keeps_its_zeros():
    batch = pa.record_batch(
        {"x": RNG.normal(size=N), "y": [f"{v:03d}" for v in RNG.choice([1, 2, 40], N)]}
    )
    found = Columns("y").fit([batch])
    assert (found.task_, found.classes_) == ("classification", ("001", "002", "040"))
    assert Columns("y", task="regression").fit([batch]).task_ == "regression"


@pytest.mark.parametrize("mark", [-999, -9999.0, 9999, 99999])
@pytest.mark.parametrize("text", [False, True])
def test_marks_of_missing_are_missing_and_told(mark, text):
    values = [mark if i % 8 == 0 else float(v) for i, v in enumerate(RNG.integers(1, 90, N))]
    treatment, encoder = fitted([str(v) for v in values] if text else values)
    told(
        treatment,
        f"has {mark:g} far from all its other values; such cells count as missing, about 30 of them",
    )
    assert treatment.kind == "number"
    assert encoder.indicator
    assert np.isnan(encoder.read(pa.array([mark]))[0][0, 0])
    kept = [v for v in values if v != mark]
    assert treatment.details.startswith(f"from {min(kept):g} to {max(kept):g}")


@pytest.mark.parametrize(
    "values",
    [
        np.arange(-1000.0, -900),
        np.r_[np.arange(0.0, 900), 999, 999, 999],
        np.r_[np.arange(50.0), 999],
        np.r_[RNG.lognormal(5, 2, 500), 99.0],
        np.r_[np.zeros(5), -999.0],
    ],
)
def test_numbers_that_may_be_numbers_are_no_marks(values):
    assert missing_marks(values, values.min(), values.max()) == ()


@given(
    st.lists(st.integers(0, 80), min_size=12, max_size=40),
    st.sampled_from([-99.0, -999.0, -9999.0]),
    st.floats(-5, 5),
)
def test_a_mark_is_found_wherever_the_rest_lies_near_zero(rest, mark, shift):
    values = np.asarray(rest) * 0.5 + abs(shift)
    assert missing_marks(np.r_[values, mark], mark, values.max()) == (mark,)


def test_a_target_with_a_mark_is_told_of_and_kept():
    y = np.where(np.arange(N) % 20 == 0, -999.0, np.abs(Y))
    found = Columns("y").fit([pa.record_batch({"x": Y, "y": y})])
    assert found.n_rows_ == N
    assert any(
        "has -999 far from all its other values; where that stands for missing" in text
        for text in found.warnings_
    )


@pytest.mark.parametrize(
    "words",
    [
        ["yes", "YES", "No"],
        ["True", "FALSE", "true"],
        ["Y", "n", "yes", "No"],
        ["ON", "off", "Off"],
    ],
)
def test_spellings_of_yes_and_no_are_two_values(words):
    cells = [words[i % len(words)] for i in range(N)]
    yes = np.array([w.lower() in ("yes", "true", "y", "on") for w in cells])
    treatment, encoder = fitted(cells)
    assert treatment.kind == "boolean"
    told(treatment, "spells yes and no in several ways")
    assert np.array_equal(encoder.read(pa.array(cells))[0][:, 0], yes)
    target = Columns("y").fit([pa.record_batch({"x": Y, "y": cells})]).target_
    assert len(target.classes) == 2
    assert sum(target.counts) == N
    codes = target.read(pa.array(cells))
    assert np.array_equal(codes == codes[0], yes == yes[0])


def test_classes_of_yes_and_no_read_other_spellings_the_right_way_round():
    """ "YES" sorts before "no"."""
    target = (
        Columns("y")
        .fit([pa.record_batch({"x": Y, "y": ["YES" if v > 0 else "no" for v in Y]})])
        .target_
    )
    assert target.classes == ("YES", "no")
    assert target.read(pa.array(["yes", "N", "true", "maybe"])).tolist() == [0.0, 1.0, 0.0, -1.0]


def test_columns_of_one_name_are_numbered_and_told(tmp_path):
    (tmp_path / "t.csv").write_text("a,a,a_2,y\n1,2,3,4\n5,6,7,8\n")
    source = open_source(tmp_path / "t.csv")
    assert source.schema.names == ["a", "a_3", "a_2", "y"]
    assert source.said == (
        f'{tmp_path / "t.csv"} has several columns of one name; they were numbered: "a" as "a_3".',
    )


@pytest.mark.parametrize("scale", [1e40, 1.7e308, 1e-40, 5e-322])
def test_targets_whose_squares_cannot_be_told_are_refused(scale):
    with pytest.raises(
        DataError, match="beyond what squared errors can tell apart; scale it first"
    ):
        Columns("y").fit([pa.record_batch({"x": Y, "y": (Y / np.abs(Y).max()) * scale})])


@pytest.mark.parametrize("dtype", [np.uint64, np.int64, np.float64])
def test_columns_at_the_ends_of_their_type_give_finite_features(dtype):
    info = np.finfo(dtype) if dtype is np.float64 else np.iinfo(dtype)
    values = np.array([info.min, info.max, 0, 1] * (N // 4), dtype)
    for cells in (
        values,
        values[1::2].repeat(2),
        np.full(N, info.max, dtype) - np.arange(N).astype(dtype),
    ):
        batch = pa.record_batch({"u": cells, "x": Y, "y": Y[::-1]})
        assert np.isfinite(Columns("y").fit([batch]).transform(batch).X).all()
