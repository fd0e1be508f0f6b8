"""The plain tile: the traced source with torch for NumPy, on whole blocks. What fused tiles are
tested against, and what forms the few columns that a preconditioner needs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from mercer.gpu.backend import Tensor, torch
from mercer.gpu.operands import PIECE, View
from mercer.gpu.quantities import SeenRows
from mercer.pairs.traced import Asked, KernelSource


def block(source: KernelSource, X: Tensor, Z: Tensor, positions: Any, dtype: Any) -> Tensor:
    """k(X, Z), (n, m), in some precision; what it is of pairs, such as distances by differences, in
    float64 of the rows as they are, so that offsets cost no digits."""
    asked = enumerate(source.quantities)
    q = {f"q{i}": _quantity(a, source, X, Z, positions).to(dtype) for i, a in asked}
    t = {f"t{i}": v for i, v in enumerate(source.parameters)}
    scope: dict[str, Any] = {"xp": functions()}
    exec(str(source), scope)
    out = torch.as_tensor(scope["tile"](**q, **t), dtype=dtype, device=X.device)
    return out.expand(len(X), len(Z))


def vector(a: Asked, view: View, X: Tensor, n: int, dtype: Any) -> Tensor:
    """One number a row, for n rows with padding: x'x, prod_j (1 + x_j^2), or an elementary
    symmetric polynomial of the squares."""
    out = torch.zeros(n, dtype=dtype, device=X.device)
    for at in range(0, len(X), PIECE):
        squares = view(X[at : at + PIECE]) ** 2
        out[at : at + len(squares)] = _of_products(a, squares).to(dtype)
    return out


def _where(test: Tensor, a: Any, b: Any) -> Tensor:
    like = a if torch.is_tensor(a) else b if torch.is_tensor(b) else test.double()
    return torch.where(test, torch.as_tensor(a, dtype=like.dtype, device=test.device), b)


NAMES = ("exp", "log", "log1p", "sqrt", "sin", "cos")


def functions() -> SimpleNamespace:
    """What formulas call, of torch."""
    return SimpleNamespace(where=_where, **{name: getattr(torch, name) for name in NAMES})


def _quantity(a: Asked, source: KernelSource, X: Tensor, Z: Tensor, positions: Any) -> Tensor:
    view = View(SeenRows(a.columns, a.map), positions(a.columns), source.parameters)
    x, z = view(X), view(Z)
    if a.side != "both":
        own = x if a.side == "rows" else z
        value = _of_products(a, own * own)
        return value[:, None] if a.side == "rows" else value[None, :]
    if a.kind in ("dot", "angle"):
        return x @ z.T if a.kind == "dot" else _angle(x, z)
    if a.kind in ("chisq", "harmonic"):
        total = x[:, None, :] + z[None, :, :]
        top = (x[:, None, :] - z[None, :, :]) ** 2 if a.kind == "chisq" else 2 * x[:, None, :] * z
        return (top / torch.where(total > 0, total, 1.0)).sum(dim=2)
    if a.kind in ("prod1p", "elementary"):
        return _of_products(a, x[:, None, :] * z[None, :, :])
    return _distance(a, source, x, z)


def _distance(a: Asked, source: KernelSource, x: Tensor, z: Tensor) -> Tensor:
    def numbers(param: Any) -> Tensor:
        many = param if isinstance(param, tuple) else (param,)
        values = [source.parameters[int(p.name[1:])] if hasattr(p, "name") else p for p in many]
        return torch.tensor(values, dtype=x.dtype, device=x.device)

    if a.kind == "sinsq":
        period, b = map(numbers, a.params)
        angle = torch.pi * (x[:, None, :] - z[None, :, :]) / period
        return ((torch.sin(angle) / b) ** 2).sum(dim=2)
    x, z = x / numbers(a.params[0]), z / numbers(a.params[0])
    if a.kind == "absdist":
        return torch.cdist(x, z, p=1)
    r = torch.cdist(x, z, compute_mode="donot_use_mm_for_euclid_dist")
    return r if a.kind == "dist" else r * r


def _angle(x: Tensor, z: Tensor) -> Tensor:
    size = torch.outer(*(torch.linalg.vector_norm(s, dim=1) for s in (x, z)))
    cosine = torch.where(size > 0, (x @ z.T) / torch.where(size > 0, size, 1.0), 0.0)
    return torch.arccos(cosine.clamp(-1, 1))


def _of_products(a: Asked, products: Tensor) -> Tensor:
    """Of x_j z_j along the last axis."""
    if a.kind == "dot":
        return products.sum(dim=-1)
    if a.kind == "prod1p":
        return (1 + products).prod(dim=-1)
    if a.kind == "harmonic":
        return products.sqrt().sum(dim=-1)
    if a.kind == "angle":
        return torch.where(products.sum(dim=-1) > 0, 0.0, torch.pi / 2)
    if a.kind != "elementary":
        raise NotImplementedError(f"{a.kind} of a row has no GPU tile; compute it on the CPU.")
    E = [torch.ones_like(products[..., 0])]
    E += [torch.zeros_like(E[0]) for _ in range(int(a.params[0]))]
    for column in products.unbind(dim=-1):
        for r in range(len(E) - 1, 0, -1):
            E[r] = E[r] + column * E[r - 1]
    return E[-1]
