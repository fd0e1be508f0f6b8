"""The playground reads kernel expressions as Mercer does: the same values, the same words back, the same
refusals; and its random features have the kernel as their mean."""

import numpy as np
import pytest

from mercer import kernels
from tests.gallery import javascript

NAMES = vars(kernels)
X = np.random.default_rng(5).uniform(-1.2, 1.2, size=(5, 2))
READ = "(() => { const k = K.fits(P.parse(data.text), 2); return { shown: P.shown(k), values: K.matrix(k, data.X) }; })()"

LEAVES = (
    "Constant()",
    "Linear()",
    "Cosine()",
    "Polynomial()",
    "Polynomial(2, bias=0.5)",
    "Polynomial(degree=3.0)",
    "AllSubsets()",
    "Anova(1)",
    "Anova(order=2)",
    "ArcCosine(0)",
    "ArcCosine()",
    "ArcCosine(order=2)",
    "Gaussian()",
    "Gaussian(0.5)",
    "Gaussian(bandwidth=(1.0, 2))",
    "Laplace(0.7)",
    "Laplace(norm=1)",
    "Laplace(2, 2, 1.5)",
    "Laplace(exponent=0.5)",
    "Matern()",
    "Matern(0.8, nu=0.5)",
    "Matern(nu=2.5)",
    "Matern(nu=1.2)",
    "Matern(nu=3)",
    "Matern(nu=inf)",
    "Cauchy(1.5)",
    "RationalQuadratic(0.6, 0.4)",
    "RationalQuadratic(mixture=2)",
    "Sinc(0.4)",
    "Periodic(0.9, period=1.7)",
    "Periodic([1, 2], [0.5, 1.5])",
)
TREES = (
    "0.5 * Gaussian(bandwidth=1.0) + Linear() * Polynomial(degree=2)",
    "Linear() + 1",
    "0 + Gaussian()",
    "2 * 3 * Linear()",
    "Linear() * 2 / 4",
    "(Gaussian() + Linear()) * Laplace()",
    "Gaussian() * (Linear() + 0.25)",
    "2 * Gaussian() * Linear() * 3",
    "Linear() ** 2",
    "(Linear() + 1) ** 3.0",
    "Gaussian() ** 0",
    "exp(Linear())",
    "exp(0.3 * Linear()).normalized()",
    "Linear().compose([1, 0, 2.5])",
    "(2 * Linear()).compose((0.5, 1))",
    "Gaussian(0.8).on_columns([0]) + Linear().on_columns(-1)",
    "Polynomial().normalized() + 1e-05",
    "Gaussian(1e-3 * 2000)",
    "Gaussian(2 ** 0.5)",
    "+1 * Linear() + -1 * -2",
    "Gaussian((3))",
    "1.5e+2 * Constant()",
    " Gaussian ( .5 ) ",
)
REFUSED = (
    "Gaussian() - Linear()",
    "1 - Linear()",
    "-Linear()",
    "+Linear()",
    "-1 * Linear()",
    "Linear() * -0.5",
    "Linear() + -2",
    "Linear() / -2",
    "Linear() / 0",
    "Gaussian() ** 0.5",
    "Gaussian() ** -1",
    "Linear() ** Linear()",
    "Gaussian(0)",
    "Gaussian(-1)",
    "Gaussian(-1.5)",
    "Gaussian(bandwidth=())",
    "Gaussian((1, -2))",
    "Gaussian(inf)",
    "Polynomial(1.5)",
    "Polynomial(-2)",
    "Polynomial(2, -1)",
    "Polynomial(bias=-0.5)",
    "Anova(0)",
    "ArcCosine(3)",
    "Laplace(norm=3)",
    "Laplace(exponent=0)",
    "Laplace(norm=1, exponent=1.5)",
    "Laplace(exponent=2.5)",
    "Matern(nu=0)",
    "Matern(nu=-1.5)",
    "RationalQuadratic(1.0, 0)",
    "Periodic(1.0, 0)",
    "Gaussian(1, 2)",
    "Linear(1, 2, 3)",
    "Gaussian(width=2)",
    "Gaussian(1.0, bandwidth=2)",
    "exp(2)",
    "Linear().compose([])",
    "Linear().compose([1, -1])",
    "Linear().compose(2)",
    "Linear().on_columns([])",
    "Linear().on_columns([0.5])",
    "Gaussian((1, 2, 3))",
    "Periodic(1.0, (1, 2, 3))",
    "Linear().on_columns([2])",
    "Gaussian().on_columns([-3])",
)
BROKEN = (
    "",
    "Gaussian(",
    "Gaussian() +",
    "Gaussian)",
    "Gaussian() Linear()",
    "Gaussian",
    "Foo()",
    "2 + 3",
    "Gaussian() @ Linear()",
    "Gaussian() $ 2",
    "Linear().T()",
    "[1, 2]",
)


def read(texts):
    return javascript.run([{"data": {"text": text, "X": X}, "expression": READ} for text in texts])


def ours(text):
    return eval(text.strip(), NAMES | {"inf": np.inf})


def random_tree(rng, depth):
    """An expression, with every operator and method."""
    if depth == 0:
        return str(rng.choice(LEAVES))
    a, b = random_tree(rng, depth - 1), random_tree(rng, int(rng.integers(depth)))
    forms = (
        "{a} + {b}",
        "({a}) * ({b})",
        "0.4 * ({a})",
        "({a}) ** 2",
        "exp(0.1 * ({a})).normalized()",
        "({a}).normalized()",
        "({a}).compose([0.5, 1, 0.1])",
        "{a} + 1.5",
    )
    return str(rng.choice(forms)).format(a=a, b=b)


RANDOM = [random_tree(np.random.default_rng(seed), seed % 4) for seed in range(60)]


def test_values_and_words_are_those_of_mercer():
    texts = [*LEAVES, *TREES, *RANDOM]
    for text, answer in zip(texts, read(texts), strict=True):
        k, given = ours(text), X.round(9)
        assert "error" not in answer, (text, answer)
        assert answer["value"]["shown"] == repr(k), text
        np.testing.assert_allclose(
            answer["value"]["values"], k(given), rtol=1e-5, atol=1e-7, err_msg=text
        )


def test_refusals_are_those_of_mercer():
    for text, answer in zip(REFUSED, read(REFUSED), strict=True):
        with pytest.raises((ValueError, TypeError, ZeroDivisionError)) as found:
            ours(text)(X)
        said = str(found.value)
        assert answer["refusal"], (text, answer)
        if text != "Linear(1, 2, 3)":  # Mercer's Linear has a metric, the playground's has none
            assert _plain(answer["error"]) == _plain(said), text


def _plain(said):
    """Python names the kind of division by zero, and lists its kernels where a tuple is meant, in its own way."""
    return "division by zero" if "division by zero" in said else said


def kernel_of(text):
    found = ours(text)
    if not isinstance(found, kernels.Kernel):
        raise TypeError("no kernel")
    return found


def test_what_is_no_expression_is_refused_with_a_sentence():
    for text, answer in zip(BROKEN, read(BROKEN), strict=True):
        with pytest.raises((SyntaxError, NameError, TypeError, AttributeError)):
            kernel_of(text)
        assert answer["refusal"], text
        assert answer["error"].endswith("."), text


FEATURED = [
    t
    for t in (*LEAVES, *TREES)
    if "exponent" not in t and t != "Laplace(2, 2, 1.5)" and "inf" not in t
]


def test_random_features_have_the_kernel_as_their_mean():
    """Within five standard errors, for each pair of rows; the draws are fixed by their seed."""
    D = 600
    expression = (
        f"P.features(P.parse(data.text), data.X, {D}, 7).map(f => f.map(v => +v.toPrecision(10)))"
    )
    answers = javascript.run(
        [{"data": {"text": t, "X": X[:3]}, "expression": expression} for t in FEATURED]
    )
    for text, answer in zip(FEATURED, answers, strict=True):
        F = np.array(answer["value"])  # (D, n)
        products = F[:, :, None] * F[:, None, :]
        exact = ours(text)(X[:3])
        error = products.std(0) / np.sqrt(D)
        assert (np.abs(products.mean(0) - exact) <= 5 * error + 1e-7 * (1 + np.abs(exact))).all(), (
            text
        )


def test_rough_exponents_have_no_random_features():
    expression = "P.features(P.parse(data.text), data.X, 2, 1)"
    (answer,) = javascript.run(
        [{"data": {"text": "Laplace(exponent=0.5)", "X": X}, "expression": expression}]
    )
    assert answer["refusal"]
