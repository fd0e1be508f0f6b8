"""Results to JSON and back: nothing is lost, and a damaged one is refused in a sentence."""

import json
import math
from dataclasses import MISSING, fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.automl.result import Contender, FitResult
from mercer.report import html
from tests.report.examples import EXAMPLES, binary, regression

LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
JUNK = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


@pytest.mark.parametrize("make", EXAMPLES.values(), ids=EXAMPLES)
def test_json_and_back(make):
    result = make()
    text = json.dumps(result.as_dict(), allow_nan=False)
    again = FitResult.from_dict(json.loads(text))
    assert again.as_dict() == result.as_dict()
    assert again.contenders == result.contenders
    assert again.chosen == result.chosen
    assert html(again) == html(result)


def test_numpy_values_and_nan_become_plain():
    worst = ({"row": np.int32(1), "actual": np.str_("a")},)
    odd = replace(
        regression(), seed=np.int64(3), points=((np.float32(1.5), math.nan),), worst=worst
    )
    values = json.loads(json.dumps(odd.as_dict(), allow_nan=False))
    assert values["seed"] == 3
    assert values["points"] == [[1.5, None]]
    assert math.isnan(FitResult.from_dict(values).points[0][1])


@pytest.mark.parametrize(
    "field", [field.name for field in fields(FitResult) if field.default is MISSING]
)
def test_a_missing_field_is_named(field):
    values = binary().as_dict()
    for more in ("confidence", "scores", "decision"):
        del values[more]  # they have a default
    del values[field]
    with pytest.raises(ValueError, match=rf"FitResult cannot be read: {field} missing or unknown"):
        FitResult.from_dict(values)


def test_an_unknown_field_is_named():
    with pytest.raises(ValueError, match="colour missing or unknown"):
        FitResult.from_dict({**binary().as_dict(), "colour": 1})
    with pytest.raises(ValueError, match="Contender cannot be read"):
        Contender.from_dict([])


@given(st.sampled_from([field.name for field in fields(FitResult)]), JUNK)
def test_junk_is_refused_or_shown(field, junk):
    try:
        result = FitResult.from_dict({**binary().as_dict(), field: junk})
    except ValueError as error:
        said = str(error)
    else:
        said = html(result)
    assert said.startswith(("FitResult cannot be read", "<!DOCTYPE html>"))
