"""The gallery: interactive pages of what lifts and kernels do, one file each, and a playground."""

from mercer.gallery.files import write
from mercer.gallery.page import Page
from mercer.gallery.pages import PAGES

__all__ = ["PAGES", "Page", "write"]
