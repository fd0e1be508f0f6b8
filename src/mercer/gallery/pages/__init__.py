"""The pages, in the order of the notes; the playground is the last."""

from mercer.gallery.page import Page
from mercer.gallery.pages import kernels, learnt, lifts, models, voting

PAGES: tuple[Page, ...] = (
    *lifts.PAGES,
    *voting.PAGES,
    *kernels.PAGES,
    *models.PAGES,
    *learnt.PAGES,
)
