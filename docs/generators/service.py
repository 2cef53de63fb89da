"""Renew the tables of docs/reference/service.md: routes, settings, problems and metrics.

    python docs/generators/service.py

The text around them is written by hand. A test checks that the tables are current.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from pastwise.service.metrics import Metrics
from pastwise.service.problems import PROBLEMS
from pastwise.service.routes import OPERATIONS
from pastwise.service.types import PolicySettings

PAGE = Path(__file__).parents[1] / "reference" / "service.md"

TABLE = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end of table -->)", re.DOTALL)
ATTRIBUTE = re.compile(r"^    ([\w, ]+) : .*\n((?:        .*\n)+)", re.MULTILINE)


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """The page with the tables of today."""
    tables = {
        "routes": table(("route", "role", "what it does"), routes()),
        "settings": table(("setting", "default", "meaning"), settings()),
        "problems": table(("status", "slug", "what it means, and what to do"), problems()),
        "metrics": table(("metric", "kind", "labels", "meaning"), metrics()),
    }
    text = PAGE.read_text(encoding="utf-8")
    return TABLE.sub(lambda found: f"{found[1]}\n{tables[found[2]]}\n{found[3]}", text)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def routes() -> Iterable[Sequence[str]]:
    """Every route with its role."""
    for operation in OPERATIONS:
        role = "" if operation.role is None else f"`{operation.role}`"
        yield f"`{operation.method} {operation.path}`", role, operation.summary


def settings() -> Iterable[Sequence[str]]:
    """Every setting; its meaning is in the documentation of the type."""
    meanings = attributes(PolicySettings.__doc__ or "")
    for field in msgspec.structs.fields(PolicySettings):
        default = msgspec.json.encode(field.default).decode()
        yield f"`{field.name}`", f"`{default}`", meanings[field.name]


def attributes(documentation: str) -> dict[str, str]:
    """Meanings of attributes in a docstring of numpy's style."""
    meanings = {}
    for names, text in ATTRIBUTE.findall(documentation):
        for name in names.split(", "):
            meanings[name] = " ".join(text.split()).replace("``", "`")
    return meanings


def problems() -> Iterable[Sequence[str]]:
    """Every kind of problem, by status."""
    for slug, kind in sorted(PROBLEMS.items(), key=lambda item: item[1].status):
        title = kind.title[0].upper() + kind.title[1:]
        yield str(kind.status), f"`{slug}`", f"{title}. {kind.explanation}"


def metrics() -> Iterable[Sequence[str]]:
    """Every metric."""
    for metric in vars(Metrics()).values():
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        yield f"`{metric.name}`", metric.kind, labels, metric.help_text


if __name__ == "__main__":
    main()
