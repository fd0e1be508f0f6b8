"""Conjugate gradients on A = K + diag(d) for all columns at once, with every vector on the device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mercer.gpu.backend import Tensor, torch
from mercer.gpu.graphs import RepeatedStep

if TYPE_CHECKING:
    from mercer.gpu.solve import GPUSystem

FEW = 4  # steps that take less time than to capture one
CAPTURED = 1 << 32  # pairs of rows up to which launches of small vectors are a share of a step


class ConjugateGradients:
    """Preconditioned conjugate gradients on A x = b from x = 0. A step changes tensors in place and
    waits for nothing, so that it is one launch after the first.

    Parameters
    ----------
    system : A and its preconditioner P
    like : a tensor as the right-hand sides (n, q) will be
    plain : steps that are run before one is captured, where it is
    natural : of so many first columns, one is done where r'P^-1 r is at most its goal, and steps end
    with them; others where |r| is

    Attributes
    ----------
    X, R : where columns are, and what is left of them
    step, ratio : alpha and beta of the last step, of columns that are not done; else 0
    """

    def __init__(self, system: GPUSystem, like: Tensor, natural: int = 0, plain: int = 1) -> None:
        self.system, self.natural = system, natural
        self.X, self.R, self.D = (torch.zeros_like(like) for _ in range(3))
        self.step, self.ratio, self.gamma, self.goal = like.new_zeros((4, like.shape[1]))
        self.on = torch.zeros_like(self.goal, dtype=torch.bool)
        self.going, self.zero = self.on.any(), self.goal.new_zeros(())
        worth = len(like) ** 2 <= CAPTURED
        self.repeated = RepeatedStep(like.device, captured=worth, plain=plain)

    def start(self, B: Tensor, Z: Tensor, goal: Tensor) -> None:
        """Begin at x = 0, with Z = P^-1 B."""
        self.X.zero_()
        self.R.copy_(B)
        self.D.copy_(Z)
        self.gamma.copy_((B * Z).sum(dim=0))
        self.goal.copy_(goal)
        self.on.fill_(True)
        self._look()

    def rest(self) -> ConjugateGradients:
        """Those beside the first, where they are now."""
        at = slice(self.natural, None)
        made = ConjugateGradients(self.system, self.X[:, at], plain=FEW)
        for name in ("X", "R", "D", "gamma", "goal", "on"):
            getattr(made, name).copy_(getattr(self, name)[..., at])
        made._look()
        return made

    def steps(self, most: int) -> Iterator[int]:
        """One after the other while a column is not done, at most so many; their numbers."""
        for at in range(1, most + 1):
            if not bool(self.going):
                return
            self.repeat()
            yield at

    def repeat(self) -> None:
        """One step."""
        self.repeated(self._forward)

    def _forward(self) -> None:
        AD = self.system.times(self.D)
        curve = (self.D * AD).sum(dim=0)
        self.on &= torch.minimum(curve, self.gamma) > 0
        torch.where(self.on, self.gamma / curve, self.zero, out=self.step)
        self.X.addcmul_(self.D, self.step)
        self.R.addcmul_(AD, self.step, value=-1)
        Z = self.system.P.solve(self.R)
        new = (self.R * Z).sum(dim=0)
        torch.where(self.on, new / self.gamma, self.zero, out=self.ratio)
        torch.addcmul(Z, self.D, self.ratio, out=self.D)
        torch.where(self.on, new, self.gamma, out=self.gamma)
        self._look()

    def _look(self) -> None:
        """Which columns are done."""
        size = torch.linalg.vector_norm(self.R, dim=0)
        size[: self.natural] = self.gamma[: self.natural]
        self.on &= size > self.goal
        torch.any(self.on[: self.natural or None], out=self.going)
