"""Formulas as MathML, written when the site is built.

Browsers render MathML themselves, so the pages need no script and no fonts from elsewhere. Docutils
brings the converter along.
"""

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

log = logging.getLogger(__name__)


def visit_inline(writer: HTML5Translator, node: nodes.math) -> None:
    """Write a formula within a line."""
    writer.body.append(_mathml(node, as_block=False))
    raise nodes.SkipNode


def visit_block(writer: HTML5Translator, node: nodes.math_block) -> None:
    """Write a displayed formula, with its number where it has one."""
    writer.body.append(writer.starttag(node, "div", CLASS="math-block"))
    writer.body.append(_mathml(node, as_block=True))
    if node["number"]:
        number = get_node_equation_number(writer, node)
        writer.body.append(f'<span class="eqno">({number})</span>')
    writer.body.append("</div>\n")
    raise nodes.SkipNode


def _mathml(node: nodes.Element, as_block: bool) -> str:
    """The formula as MathML; one that the converter does not know is a warning."""
    try:
        return str(tex2mathml(node.astext(), as_block=as_block))
    except MathError as error:
        log.warning("%s", error, location=node)
        return ""


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer as ``mathml``."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
