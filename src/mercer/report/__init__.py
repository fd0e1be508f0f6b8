"""The report: the result of a fit as one self-contained HTML page, without scripts and without the
network."""

from mercer.report.page import html, write

__all__ = ["html", "write"]
