"""The gallery: interactive pages of what lifts and kernels do, one file each, and a playground."""

from mercer.gallery.page import Page
from mercer.gallery.pages import PAGES
from mercer.gallery.files import write

__all__ = ["PAGES", "Page", "write"]
