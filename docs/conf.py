"""How Sphinx builds the site (`./do docs`); design page 0023 says why so."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import mercer  # noqa: E402

project = "Mercer"
author = "Mercer contributors"
copyright = "Mercer contributors, BSD 3-Clause"
release = version = mercer.__version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "commands",
    "gallery",
    "mathml",
    "plain_docstrings",
]
exclude_patterns = ["_build", "site", "jupyter_execute", "examples", "**/.ipynb_checkpoints"]
templates_path = ["_templates"]
default_role = "py:obj"
highlight_language = "text"  # blocks say where they are Python; prompts are seen
nitpicky = False

# Markdown and notebooks: what a notebook shows was stored when the tests ran it.
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "off"
nb_execution_cache_path = str(HERE / "_build" / "jupyter")
nb_ipywidgets_js = {}  # nothing is loaded from elsewhere

# Reference: the pages list names, autosummary writes a page for each.
autosummary_generate = True
autosummary_imported_members = False
autodoc_typehints = "none"  # types stand in the docstrings, where tests compare them
autodoc_docstring_signature = False  # a first line such as "k(x, z) = 1" is a formula
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
html_math_renderer = "mathml"

html_title = "Mercer"
html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["mercer.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_search_summary = False  # it fetches pages, which browsers refuse to files
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": "Mercer"},
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "navbar_align": "left",
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
}
html_sidebars = {"changelog": [], "contributing": [], "performance": [], "gallery": []}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True
