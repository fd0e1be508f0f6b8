"""Pages on features that are chosen or learnt, on strings, on the slips, and the playground."""

from __future__ import annotations

import numpy as np

from mercer.gallery.page import Names, Page
from mercer.gallery.slips import SLIPS, shown


def _sink(n: Names) -> dict[str, object]:
    path, F = n["model"].path_, n["F"]
    effects = path.coef[:, 0] * F.std(0)[path.ids]
    strong = np.argsort(-np.abs(effects).max(0), kind="stable")[:40]
    every = slice(None, None, 2)
    return {
        "alphas": path.alphas[every],
        "sizes": path.sizes[every],
        "names": [n["names"][i].split("__")[1] for i in path.ids[strong]],
        "effects": effects[every][:, strong],
        "loss": np.array(n["model"].path_table_["loss"])[every],
        "chosen": n["model"].alpha_,
        "served": F.shape[1],
    }


SINK = Page(
    slug="sink",
    title="The kitchen sink, and what survives",
    claim="If you can think of a feature, add it; an L1 penalty then keeps few. Along the path of penalties features "
    "enter one by one, and rows that were left out tell where to stop.",
    look=(
        "The target is x0·x1 + sin(x2) + a jump in x3; their features, of 80, are the strongest ones kept.",
        "To the right the loss on left-out rows rises again: features there follow the noise.",
        "The dashed line is the largest penalty within one standard error of the best.",
    ),
    code="""
import numpy as np
from mercer import SparseRegressor
from mercer.lifts import Identity, KitchenSink

rng = np.random.default_rng(10)
X = rng.uniform(-2, 2, size=(160, 5))
y = X[:, 0] * X[:, 1] + 1.5 * np.sin(X[:, 2]) + (X[:, 3] < 0.4) + 0.3 * rng.normal(size=160)
phi = KitchenSink(n_knots=0, n_jumps=8)
F, names = phi.fit_transform(X), phi.get_feature_names_out()
model = SparseRegressor(lift=Identity()).fit(F, y)
survivors = [names[i] for i in model.support_]
""",
    data=_sink,
)


def _metric(n: Names) -> dict[str, object]:
    return {
        "X": n["X"][300:400],
        "y": n["y"][300:400],
        "metrics": [m.metric_ / np.trace(m.metric_) for m in n["metrics"]],
        "predictions": [p[:100] for p in n["predictions"]],
        "scores": n["scores"],
    }


METRIC = Page(
    slug="metric",
    title="Learnt features, round by round",
    claim="Fit a kernel machine, look along which directions its function changes, stretch the space there, and fit "
    "again. Columns that say nothing fade, and the machine sees points as near that answer alike.",
    look=(
        "The target depends on 2 x0 + x1 and on x2 alone; after a round or two the metric has just these.",
        "The score on held-out rows rises with the metric, most in the first round.",
        "Along the leading direction the answers lie near one curve; at round 0 there is none.",
    ),
    code="""
import numpy as np
from mercer import KernelRidge, LearnedMetric
from mercer.kernels import Gaussian

rng = np.random.default_rng(11)
X = rng.normal(size=(600, 8))
y = np.sin(2 * X[:, 0] + X[:, 1]) + 0.3 * X[:, 2] + 0.1 * rng.normal(size=600)
metrics = [LearnedMetric(Gaussian(3.0), form="full", rounds=r, random_state=0).fit(X[:300], y[:300]) for r in range(5)]
fits = [KernelRidge(Gaussian(3.0), alpha=0.01).fit(m.transform(X[:300]), y[:300]) for m in metrics]
predictions = [f.predict(m.transform(X[300:])) for m, f in zip(metrics, fits)]
scores = [1 - np.mean((p - y[300:]) ** 2) / np.var(y[300:]) for p in predictions]   # R², held out
""",
    data=_metric,
)

STRINGS = Page(
    slug="strings",
    title="Strings: which pieces make them similar",
    claim="A kernel needs no coordinates: count the words that two strings share, and the counts are its features. With "
    "mismatches, or gaps, words count that are only nearly there.",
    look=(
        "Marked letters lie in a shared word; each dot of the grid is a pair of windows that agree.",
        "Change one letter in the middle: a word of k letters loses up to k windows; with one mismatch none.",
        "Runs along the diagonal are stretches in common; off it, they have moved.",
    ),
    code="""
from mercer.strings import Mismatch, Spectrum, Subsequence

x, z = ["ACGTTGCATGACCTGA"], ["TTGCATCACCTGAACG"]
shared = Spectrum(3, alphabet="dna")(x, z).item()             # words of three letters in both
alike = Spectrum(3, alphabet="dna").normalized()(x, z).item()
near = Mismatch(4, 1, alphabet="dna").normalized()(x, z).item()
gapped = Subsequence(3, decay=0.5, alphabet="dna").normalized()(x, z).item()
""",
    data=lambda n: {
        "x": n["x"][0],
        "z": n["z"][0],
        "shared": n["shared"],
        "alike": n["alike"],
        "near": n["near"],
        "gapped": n["gapped"],
    },
)


def _slips(n: Names) -> dict[str, object]:
    return {
        "slips": [
            {
                "key": key,
                "where": slip.where,
                "says": slip.says,
                "right": slip.right,
                "sentence": (s := shown(key)).sentence,
                "x": s.x,
                "note": s.note,
                "truth": s.right,
                "xlabel": s.xlabel,
                "ylabel": s.ylabel,
            }
            for key, slip in SLIPS.items()
        ]
    }


SLIP_PAGE = Page(
    slug="slips",
    title="Slips in the notes",
    claim="Sixteen formulas and claims in the notes are not quite right. Each is shown with what is right, and with "
    "numbers in which the two differ.",
    look=(
        "Choose a slip, or step through them with the arrow keys on the slider.",
        "Orange is what the note says, blue what is right.",
        "A slip is a chance to understand: most are a factor, a sign, or a condition that was left out.",
    ),
    code="""
import numpy as np
from mercer.kernels import Gaussian
from mercer.lifts import RandomFourier

r = np.linspace(0, 3, 31)[:, None]                        # note 000: frequencies of exp(-r²/s²)
for s in (1.0, 1 / np.sqrt(2)):                           # N(0, 1/s²) as in the note, and N(0, 2/s²)
    phi = RandomFourier(Gaussian(s), 20_000, random_state=0).fit(r)
    estimate = phi.transform(r) @ phi.transform([[0.0]]).T
    error = np.abs(estimate[:, 0] - np.exp(-r[:, 0] ** 2)).max()   # 0.25, then 0.00
""",
    data=_slips,
)

PLAYGROUND = Page(
    slug="playground",
    title="The playground",
    claim="Click points of two classes, or of a curve; type a kernel as you would in Python. The page parses it with "
    "Mercer's own refusals and shows the Gram matrix, the lifted points, the machine, and random features on the way.",
    look=(
        "Try Gaussian() - Linear(), Gaussian() ** 0.5 or -1 * Linear(): each is refused with its reason.",
        "Add Linear() to a Gaussian: far from the points, the curve follows a line instead of falling to zero.",
        "Random features of a product are products of independent features: unbiased, but with more variance.",
    ),
    code="""
import numpy as np
from mercer import GaussianProcessRegressor, KernelSVC, exp
from mercer.kernels import *

k = Gaussian(bandwidth=0.9) + 0.1 * Linear()
points = np.array([[-1.2, 0.4], [0.3, 1.1], [0.9, -0.7], [-0.4, -1.0]])
classes = np.array([1, 1, -1, -1])
machine = KernelSVC(k, C=1.0, tol=1e-8).fit(points, classes)
values, gram = machine.decision_function(points), k(points)
""",
    data=lambda n: {"values": n["values"], "gram": n["gram"]},
)

PAGES = (SINK, METRIC, STRINGS, SLIP_PAGE, PLAYGROUND)
