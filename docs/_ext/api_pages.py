"""Pages of the API reference, written from the packages themselves before each build.

One page for each package under ``pastwise``, one section for each of its modules, and a first page
that lists the public names. The pages are not kept in git, so that they cannot fall behind.
"""

import inspect
import pkgutil
import re
from importlib import import_module
from pathlib import Path

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx

import pastwise

PACKAGES = (
    "policy",
    "goals",
    "logs",
    "methods",
    "evaluation",
    "simulation",
    "theory",
    "models",
    "data",
    "report",
    "studies",
    "service.client",
    "service.types",
    "errors",
)
"""From what a user meets first to what is inside; the command line has a page of its own."""

FIRST = ("base", "goal", "learner", "read")
"""Modules that open the page of their package; the others follow in alphabetical order."""


def write_pages(app: Sphinx) -> None:
    """Write the pages into reference/api."""
    folder = Path(app.srcdir) / "reference" / "api"
    folder.mkdir(exist_ok=True)
    pages = {package: _package_page(package) for package in PACKAGES}
    pages["index"] = _first_page()

    # A page that did not change keeps its date, so that it is not built again.
    for name, text in pages.items():
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def _first_page() -> str:
    """The public names, each with the first line of its docstring, and the list of packages."""
    lines = [
        *_title("API", "="),
        "``import pastwise as pw`` gives the names below; everything else is imported from its",
        "package, such as ``pastwise.methods.TL``.",
        "",
        ".. list-table::",
        "   :widths: 30 70",
        "",
    ]
    for name in sorted(pastwise.__all__, key=str.lower):
        public = getattr(pastwise, name)
        if inspect.ismodule(public):
            continue
        summary = (inspect.getdoc(public) or "").partition("\n\n")[0].replace("\n", " ")
        lines += [
            f"   * - :py:obj:`pw.{name} <{public.__module__}.{public.__qualname__}>`",
            f"     - {summary}",
        ]
    lines += ["", ".. toctree::", "   :maxdepth: 1", "", *(f"   {name}" for name in PACKAGES)]
    return "\n".join([*lines, ""])


def _package_page(package: str) -> str:
    """A package: its docstring, then its public modules."""
    name = f"pastwise.{package}"
    module = import_module(name)
    found = pkgutil.iter_modules(getattr(module, "__path__", []))
    public = [each.name for each in found if not each.name.startswith("_")]
    modules = [f"{name}.{each}" for each in sorted(public, key=lambda each: each not in FIRST)]
    lines = [*_title(name, "="), f".. automodule:: {name}"]
    if not modules:
        lines += ["   :members:"]
    for each in modules:
        lines += ["", *_title(each, "-"), f".. automodule:: {each}", "   :members:"]
    return "\n".join([*lines, ""])


def _title(text: str, underline: str) -> list[str]:
    return [text, underline * len(text), ""]


def show_as_typed(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Show the indented formulas of a module's docstring, and shapes such as [*B, S], as typed."""
    lines[:] = [re.sub(r"\*(\w+[,\]])", r"\\*\1", line) for line in lines]
    if what != "module":
        return
    shown: list[str] = []
    previous = ""  # the last line with text
    for line in lines:
        begins = line.startswith("    ") and not previous.startswith((" ", "-", "*"))
        if begins and not previous.endswith("::"):
            shown += ["::", ""]
        shown.append(line)
        previous = line if line.strip() else previous
    lines[:] = shown


def tidy_fields(app: Sphinx, doctree: nodes.document) -> None:
    """Leave plain words of a type ("states with numbers") without a link; say "Attributes"."""
    for name in doctree.findall(nodes.field_name):
        if name.astext() == "Variables":
            name.children = [nodes.Text("Attributes")]
    for reference in list(doctree.findall(pending_xref)):
        target = reference["reftarget"] if reference.get("refdomain") == "py" else ""
        in_field = isinstance(reference.parent.parent, nodes.field_body | nodes.list_item)
        if in_field and target.islower() and "." not in target:
            reference.replace_self(reference.children)
        elif target[:1].isupper() and not target.isupper():
            reference["refspecific"] = True  # a class is found by its name, in any module


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages as soon as a build begins, and read docstrings as they are meant."""
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-docstring", show_as_typed)
    app.connect("doctree-read", tidy_fields)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
