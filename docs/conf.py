"""Settings with which `make docs` builds a site of the project's Markdown pages, which link to each other."""

from importlib.metadata import version as installed

from pygments.lexers.data import JsonLexer
from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

project = "Slackwater"
author = "the Slackwater developers"
version = release = installed("slackwater")
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**.md", *(f"{folder}/**.md" for folder in ("benchmarks", "privacy", "transforms"))]
include_patterns += ["templates/*.md", "pipelines/*.md"]
exclude_patterns = [".*", "build", "out", "releases", "tests", "*.egg-info"]
suppress_warnings = ["toc.not_included", "myst.header"]  # pages of decisions are listed elsewhere; printed tables

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 4
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
default_role = "code"  # of the docstrings, where one backtick marks code

html_theme = "furo"
html_show_copyright = False  # it is in LICENSE
html_title = f"Slackwater {version}"
html_static_path = ["site"]
html_css_files = ["narrow.css"]


def setup(app: Sphinx) -> None:
    """Add lexers for languages of code blocks that Pygments does not know."""
    for name in ("csv", "crontab"):
        app.add_lexer(name, TextLexer)
    app.add_lexer("jsonl", JsonLexer)
