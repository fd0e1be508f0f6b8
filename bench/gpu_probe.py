"""The traced source of kernel expressions inside a small Triton tile, against the CPU reference:
`python bench/gpu_probe.py`.

A proof that the formula written once is a GPU kernel too. A file is generated for each expression
and imported; parameters are read from memory, so changing them never recompiles. Not yet the fast
way: distances are added up column by column.
"""

import importlib.util
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

from mercer.kernels import Gaussian, Kernel, Laplace, Linear, Matern, Polynomial

EXPRESSIONS = {
    "gaussian": Gaussian(2.0),
    "sum of three": 0.5 * Gaussian(3.0) + 0.1 * Linear() * Polynomial(2, bias=0.5) + Laplace(4.0),
    "ARD Matern times Gaussian": Matern(tuple(np.linspace(1.0, 3.0, 16).tolist())) * Gaussian(2.5),
    "Laplace of exponent .7": Laplace(3.0, exponent=0.7),
    "Laplace in the 1-norm": Laplace(5.0, norm=1, exponent=0.7) + 0.5 * Laplace(4.0, norm=1),
}

TEMPLATE = '''"""Generated: {title}."""
from __future__ import annotations

import triton
import triton.language as tl
import triton.language as xp


@triton.jit
def product(X, Z, V, OUT, THETA, n, m, D: tl.constexpr, R: tl.constexpr, C: tl.constexpr):
    rows = xp.program_id(0) * R + xp.arange(0, R)
{parameters}
    total = xp.zeros((R,), xp.float32)
    for start in range(0, m, C):
        cols = start + xp.arange(0, C)
{zeros}
        for j in range(D):
            x = xp.load(X + rows * D + j, mask=rows < n, other=0.0)[:, None]
            z = xp.load(Z + cols * D + j, mask=cols < m, other=0.0)[None, :]
{sums}
{roots}
{body}
        v = xp.load(V + cols, mask=cols < m, other=0.0)
        total += xp.sum({result} * v[None, :], axis=1)
    xp.store(OUT + rows, total, mask=rows < n)
'''


def _divisor(params):
    """The bandwidth of column j, as source: one parameter, or one of a run of them."""
    (b,) = params
    if isinstance(b, tuple):
        return f"xp.load(THETA + {int(b[0].name[1:])} + j)"
    return str(b)


def _sum(i, asked):
    """The line that adds a column to quantity i."""
    if asked.kind == "dot" and asked.map is None:
        return f"q{i} += x * z"
    if (
        asked.kind not in ("sqdist", "dist", "absdist")
        or asked.columns is not None
        or asked.map is not None
    ):
        raise NotImplementedError(
            f"the probe has no {asked.kind} of {asked.columns or 'all columns'}, or of mapped ones."
        )
    term = "xp.abs(t)" if asked.kind == "absdist" else "t * t"
    return f"t = (x - z) / {_divisor(asked.params)}; q{i} += {term}"


def generate(k: Kernel) -> str:
    """The Triton file of K @ v for this expression."""
    source = k.source()
    at = " " * 8
    return TEMPLATE.format(
        title=repr(k),
        parameters="\n".join(
            f"    t{i} = xp.load(THETA + {i})" for i in range(len(source.parameters))
        ),
        zeros="\n".join(
            f"{at}q{i} = xp.zeros((R, C), xp.float32)" for i in range(len(source.quantities))
        ),
        sums="\n".join(
            f"{at}    {line}"
            for i, a in enumerate(source.quantities)
            for line in _sum(i, a).split("; ")
        ),
        roots="\n".join(
            f"{at}q{i} = xp.sqrt(q{i})" for i, a in enumerate(source.quantities) if a.kind == "dist"
        ),
        body="\n".join(f"{at}{line}" for line in source.lines),
        result=source.result,
    )


def load(k: Kernel, folder: Path):
    """The generated file, imported: Triton reads its source from disk."""
    path = folder / f"tile_{abs(hash(k.source())):x}.py"
    path.write_text(generate(k))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.product


def multiply(product, k, X, Z, v, tile=(32, 32)):
    """K @ v by the generated tile."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    theta = torch.tensor(k.source().parameters, dtype=torch.float32, device=device)
    x, z, w = (torch.from_numpy(np.ascontiguousarray(a)).to(device) for a in (X, Z, v))
    out = torch.full((len(X),), float("nan"), device=device)  # poisoned: what is not written shows
    grid = (-(-len(X) // tile[0]),)
    product[grid](x, z, w, out, theta, len(X), len(Z), X.shape[1], *tile)
    return out.cpu().numpy()


def check(k, folder, n=130, m=77, d=16):
    """The worst relative error of K @ v at the kernel's own parameters and at others, and how often
    Triton compiled."""
    rng = np.random.default_rng(0)
    X, Z, v = (rng.normal(size=s).astype(np.float32) for s in ((n, d), (m, d), (m,)))
    product, errors = load(k, folder), []
    for factor in (1.0, 1.7):
        at = k.clone().set_params(
            **{name: value * factor for name, value in k.parameters().items()}
        )
        exact = at(X.astype(float), Z.astype(float)) @ v
        errors.append(np.abs(multiply(product, at, X, Z, v) - exact).max() / np.abs(exact).max())
    return max(errors), compiled(product)


def compiled(product) -> int | None:
    """The number of binaries Triton made, or None in its interpreter."""
    caches = getattr(product, "device_caches", None)
    return None if caches is None else sum(len(c[0]) for c in caches.values())


def main() -> int:
    worst, most = 0.0, 0
    with tempfile.TemporaryDirectory() as folder:
        for name, k in EXPRESSIONS.items():
            error, count = check(k, Path(folder))
            worst, most = max(worst, error), max(most, count or 0)
            print(
                f"{name}: relative error {error:.1e}, binaries compiled for two sets of parameters: {count}"
            )
    failed = worst >= 1e-5 or most > 1
    print("FAILED: an error above 1e-5, or parameters that recompile" if failed else "passed")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
