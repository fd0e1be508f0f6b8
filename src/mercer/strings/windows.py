"""Kernels of windows: sums over all pairs of windows of two strings of a weight of how many letters
they differ by."""

from __future__ import annotations

from mercer.kernels.base import whole
from mercer.kernels.proof import register as prove_by
from mercer.store import register
from mercer.strings.alphabet import Alphabet
from mercer.strings.base import StringKernel
from mercer.strings.profile import Profile
from mercer.strings.window_engine import WindowEngine


@register("strings.Spectrum")
class Spectrum(StringKernel):
    """sum over words u of k letters of (times u is in x) (times u is in z)

    Parameters
    ----------
    k : int, default=3
        The letters of a word, >= 1.
    alphabet : {"dna", "rna", "protein"} or text of letters, default=None
        None: the letters of the rows of `fit`, then fixed in `kernel_`; in a call those of both
        sides.
    case : {"fold", "keep"}, default=None
        Whether lower-case letters are upper-case ones; None folds for named alphabets.
    unknown : {"skip", "letter", "raise"}, default="skip"
        Windows with a letter that is not in the alphabet count nothing; or such letters are all
        one letter more; or are refused.
    strands : {"one", "both"}, default="one"
        "both" counts the words of a string of DNA and of its reverse complement.

    References
    ----------
    Leslie, Eskin and Noble, The spectrum kernel: a string kernel for SVM protein classification
    (2002).

    Examples
    --------
    >>> Spectrum(2)(["banana", "bandana"])
    array([[9., 7.],
           [7., 8.]])
    """

    k: int = 3

    def check(self) -> None:
        self.k = whole(self.k, "k", least=1)
        super().check()

    def engine(self, letters: Alphabet) -> WindowEngine:
        return WindowEngine(letters, Profile.spectrum(self.k))


@register("strings.Mismatch")
class Mismatch(StringKernel):
    """sum over words u of k letters of (windows of x near u) (windows of z near u)

    A window is near a word where they differ in at most m letters. The kernel depends on how
    many letters the alphabet has, also on those that occur nowhere.

    Parameters
    ----------
    k : int, default=5
        The letters of a word, >= 1.
    m : int, default=1
        The letters in which windows may differ from it, below k.
    alphabet : {"dna", "rna", "protein"} or text of letters, default=None
        None: the letters of the rows of `fit`, then fixed in `kernel_`; in a call those of both
        sides.
    case : {"fold", "keep"}, default=None
        Whether lower-case letters are upper-case ones; None folds for named alphabets.
    unknown : {"skip", "letter", "raise"}, default="skip"
        Windows with a letter that is not in the alphabet count nothing; or such letters are all
        one letter more; or are refused.
    strands : {"one", "both"}, default="one"
        "both" counts the windows of a string of DNA and of its reverse complement.

    References
    ----------
    Leslie, Eskin, Cohen, Weston and Noble, Mismatch string kernels for discriminative protein
    classification (2004).

    Examples
    --------
    >>> Mismatch(2, 1, alphabet="abc")(["ab"], ["ab", "ac", "cc"])
    array([[5., 3., 2.]])
    """

    k: int = 5
    m: int = 1

    def check(self) -> None:
        self.k, self.m = _window(self.k, self.m, "k")
        super().check()

    def engine(self, letters: Alphabet) -> WindowEngine:
        return WindowEngine(letters, Profile.mismatch(self.k, self.m, letters.size), self.m)


@register("strings.Gapped")
class Gapped(StringKernel):
    """sum over windows u of x and v of z of C(g - h, g - m), of g letters that differ in h

    That is the number of common words of g - m letters with m gaps, each at the same places of
    a window of g.

    Parameters
    ----------
    g : int, default=6
        The letters of a window, >= 1.
    m : int, default=2
        How many of them are gaps, below g.
    alphabet : {"dna", "rna", "protein"} or text of letters, default=None
        None: the letters of the rows of `fit`, then fixed in `kernel_`; in a call those of both
        sides.
    case : {"fold", "keep"}, default=None
        Whether lower-case letters are upper-case ones; None folds for named alphabets.
    unknown : {"skip", "letter", "raise"}, default="skip"
        Windows with a letter that is not in the alphabet count nothing; or such letters are all
        one letter more; or are refused.
    strands : {"one", "both"}, default="one"
        "both" counts the windows of a string of DNA and of its reverse complement.

    References
    ----------
    Ghandi, Lee, Mohammad-Noori and Beer, Enhanced regulatory sequence prediction using gapped
    k-mer features (2014).

    Examples
    --------
    >>> Gapped(3, 1, alphabet="dna")(["ACG"], ["ACG", "ATG", "TTT"])
    array([[3., 1., 0.]])
    """

    g: int = 6
    m: int = 2

    def check(self) -> None:
        self.g, self.m = _window(self.g, self.m, "g")
        super().check()

    def engine(self, letters: Alphabet) -> WindowEngine:
        return WindowEngine(letters, Profile.gapped(self.g, self.m))


def _window(g: object, m: object, name: str) -> tuple[int, int]:
    length, most = whole(g, name, least=1), whole(m, "m")
    if most >= length:
        raise ValueError(
            f"m must be below {name}, the letters of a window, got m={m!r} and {name}={g!r}."
        )
    return length, most


prove_by(Spectrum, "its features are how often a string has each word of k letters")
prove_by(Mismatch, "its features are how many windows are within m letters of each word")
prove_by(Gapped, "its features are how often a string has each word with m gaps")
