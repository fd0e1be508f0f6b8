"""Targets: the task by a stated rule, classes in order, and what cannot be learned."""

import numpy as np
import pyarrow as pa
import pytest

from mercer.tables import Columns, DataError
from tests.tables.examples import N, table


@pytest.mark.parametrize(
    ("y", "task", "reason"),
    [
        (["a", "b"] * (N // 2), "classification", "has two distinct values."),
        (["a", "b", "c", "d"] * (N // 4), "classification", "holds text."),
        ([2.5, 7.5] * (N // 2), "classification", "has two distinct values."),
        (
            np.arange(N) % 7,
            "classification",
            "holds whole numbers with only 7 distinct values (up to 20 count as classes).",
        ),
        (np.arange(N) % 7 + 0.5, "regression", "holds numbers that are not whole."),
        (np.arange(N) % 30, "regression", "holds whole numbers with 30 distinct values."),
        ([True, False] * (N // 2), "classification", "has two distinct values."),
        (
            [f"{i % 3}" for i in range(N)],
            "classification",
            "holds whole numbers with only 3 distinct values (up to 20 count as classes).",
        ),
    ],
    ids=[
        "two words",
        "words",
        "two numbers",
        "few whole",
        "not whole",
        "many whole",
        "booleans",
        "digits",
    ],
)
def test_the_task_is_guessed_by_a_stated_rule(y, task, reason):
    found = Columns("y").fit(table().set_column(2, "y", pa.array(y)))
    assert found.task_ == task
    assert found.task_reason_ == f'{task}, since "y" {reason}'


def test_classes_are_ordered_and_unknown_ones_marked():
    data = table().set_column(2, "y", pa.array([10, 9, 2, None] * (N // 4)))
    found = Columns("y").fit(data)
    assert found.classes_ == ("2", "9", "10")
    assert found.target_.counts == (100, 100, 100)
    rows = found.transform(
        table().set_column(2, "y", pa.array(["9.0", "10", "7", "NA"] * (N // 4)))
    )
    assert rows.y[:3].tolist() == [1, 2, -1]
    assert rows.index[:4].tolist() == [0, 1, 2, 4]
    assert len(found.transform(data, target=False)) == N
    assert found.transform(data, target=False).y is None
    assert found.transform(data.drop_columns("y")).y is None


def test_none_may_be_a_class():
    found = Columns("y").fit(
        table().set_column(2, "y", pa.array(["none", "mild", "?", ""] * (N // 4)))
    )
    assert found.classes_ == ("mild", "none")
    assert found.n_dropped_ == N // 2


def test_imbalance_and_skew_are_noted():
    rare = Columns("y").fit(table().set_column(2, "y", pa.array(["a"] * (N - 8) + ["b"] * 8)))
    assert rare.target_.imbalance == 0.02
    assert rare.warnings_ == ('classes are imbalanced: "b" has 8 of 400 rows (2.0%).',)
    skewed = Columns("y").fit(
        table().set_column(2, "y", pa.array(np.random.default_rng(0).lognormal(0, 2, N)))
    )
    assert skewed.target_.skew > 2
    assert skewed.target_.positive
    assert skewed.warnings_[0].startswith('the target "y" is skewed (skewness ')


def test_a_task_that_was_asked_for():
    assert (
        Columns("y", task="classification")
        .fit(table().set_column(2, "y", pa.array(np.arange(N) % 40)))
        .task_
        == "classification"
    )
    asked = Columns("y", task="regression").fit(
        table().set_column(2, "y", pa.array(np.arange(N) % 2))
    )
    assert asked.task_reason_ == "regression, as asked for."


@pytest.mark.parametrize(
    ("settings", "y", "sentence"),
    [
        (
            dict(target="z"),
            None,
            r'there is no column "z" \(given as target\); the names are "a", "b", "y"\.',
        ),
        (dict(target="Y"), None, r'there is no column "Y" \(given as target\); did you mean "y"\?'),
        (
            dict(target="y", exclude=["aa"]),
            None,
            r'there is no column "aa" \(given as exclude\); the names are "a", "b", "y"\.',
        ),
        (dict(target="y", group="y"), None, r'"y" has more than one role; give each column one\.'),
        (
            dict(target="y"),
            [None] * N,
            r'no row has a value of the target "y"; choose another column\.',
        ),
        (
            dict(target="y"),
            ["NA"] * N,
            r'no row has a value of the target "y"; choose another column\.',
        ),
        (
            dict(target="y"),
            [1.0] * N,
            r'the target "y" has the same value in every row; there is nothing to predict\.',
        ),
        (
            dict(target="y", task="regression"),
            ["u", "v"] * (N // 2),
            r'the target "y" holds text, which a regression cannot predict',
        ),
        (
            dict(target="y", task="classification"),
            np.arange(6 * N) % 1200 / 7,
            r"distinct values, too many for classes",
        ),
        (
            dict(target="y"),
            [f"w{i % 1200}" for i in range(8 * N)],
            r"too many for classes \(at most 1,000\); choose another column\.",
        ),
        (
            dict(target="y"),
            [f"w{i}" for i in range(N)],
            r'the target "y" has 400 classes in 400 rows, too few rows for each',
        ),
        (
            dict(target="y"),
            [[1, 2]] * N,
            r'the target "y" holds list<.*>, not single values; choose another column\.',
        ),
        (
            dict(target="y"),
            [f"{i % 28 + 1}.{i % 12 + 1}.2021" for i in range(N)],
            r'the target "y" holds dates as text; predict a number made from it.*task="classification"',
        ),
        (
            dict(target="y"),
            np.datetime64("2020-01-01") + np.arange(N),
            r'the target "y" holds dates; predict a number made from it',
        ),
        (
            dict(target="y", exclude=["a", "b"]),
            None,
            r'no column can be used to predict "y"\. "a": Left out, as asked for\.',
        ),
        (dict(target="y", weight="a"), None, r'the weight "a" has negative values, such as -'),
        (
            dict(target="y", time_column="b"),
            "words",
            r'the time column "b" holds neither numbers nor dates; choose another',
        ),
    ],
    ids=[
        "no target",
        "misspelt",
        "exclude",
        "two roles",
        "nulls",
        "missing words",
        "constant",
        "text",
        "many numbers",
        "many words",
        "own classes",
        "lists",
        "dates as text",
        "dates",
        "nothing left",
        "weights",
        "time",
    ],
)
def test_what_cannot_be_learned_is_one_sentence(settings, y, sentence):
    data = table(n=N if y is None or isinstance(y, str) else len(y))
    if isinstance(y, str):
        data = data.set_column(1, "b", pa.array([y, "more"] * (N // 2)))
    elif y is not None:
        data = data.set_column(2, "y", pa.array(y))
    with pytest.raises(DataError, match=sentence):
        Columns(**settings).fit(data)


def test_classes_keep_the_type_of_training():
    kinds = {
        pa.int64(): np.arange(N) % 3,
        pa.bool_(): np.arange(N) % 2 == 0,
        pa.string(): np.where(np.arange(N) % 2, "u", "v"),
    }
    for kind, y in kinds.items():
        assert Columns("y").fit(table().set_column(2, "y", pa.array(y))).target_.kind == kind
    found = Columns("y").fit(table().set_column(2, "y", pa.array(["no", "yes"] * (N // 2)))).target_
    assert found.read(pa.array([True, False, None])).tolist()[:2] == [1.0, 0.0]
    assert found.read(pa.array(["perhaps"])).tolist() == [-1.0]
