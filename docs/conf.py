"""Configuration of the documentation site; ``make docs`` builds it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

import pastwise

project = "pastwise"
author = "The pastwise developers"
version = release = pastwise.__version__
copyright = author  # noqa: A001 - the name that Sphinx reads

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_click",
    "sphinx_copybutton",
    "api_pages",
    "mathml",
]
exclude_patterns = ["_build"]
nitpicky = False  # names of types in docstrings are words, not references

# Markdown: formulas between dollars, headings that links can name, field lists.
myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "fieldlist"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

# Docstrings: numpy style; a name in single backticks is a link where the name is known.
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
python_maximum_signature_line_length = 80

smartquotes = False  # options begin with two dashes

# Pages: everything is served from the folder itself, nothing from elsewhere.
html_theme = "furo"
html_title = "pastwise"
html_static_path = ["_static"]
html_css_files = ["pastwise.css"]
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
copybutton_exclude = ".linenos, .gp, .go"
