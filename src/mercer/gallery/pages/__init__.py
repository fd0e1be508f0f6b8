"""The pages, in the order of the notes; the playground is the last."""

from mercer.gallery.page import Page
from mercer.gallery.pages import lifts

PAGES: tuple[Page, ...] = (*lifts.PAGES,)
