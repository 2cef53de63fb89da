"""The report: machine, summary of ratios, a table for each job, plots of how cost grows."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from importlib.metadata import distributions
from pathlib import Path

from benchmarks.harness import GIB, Curve, Figure, Headline, Row, Scale, Section
from pastwise._files import staged

PACKAGES = (
    "pastwise",
    "numpy",
    "scipy",
    "duckdb",
    "pyarrow",
    "narwhals",
    "numba",
    "pandas",
    "polars",
    "quantecon",
    "mdpsolver",
    "pymdptoolbox",
    "river",
    "mabwiser",
)


def write(sections: Sequence[Section], scale: Scale, minutes: float, path: Path) -> None:
    """Write the report and its figures, under temporary names first."""
    figures = [figure for section in sections for figure in section.figures]
    if figures:
        with staged(path.parent / "figures", owned=_old(path.parent / "figures")) as stage:
            for figure in figures:
                _draw(figure, stage / f"{figure.name}.png")
    with staged(path.parent) as stage:
        (stage / path.name).write_text(page(sections, scale, minutes), encoding="utf-8")


def _old(folder: Path) -> list[str]:
    return [path.name for path in folder.glob("*.png")]


def page(sections: Sequence[Section], scale: Scale, minutes: float) -> str:
    """The report as Markdown."""
    lines = [
        "# Benchmarks",
        "",
        "Written by `python -m benchmarks`, not by hand. Contenders run in turns, each after an "
        "uncounted run; seconds are medians. A ratio is a contender's time over ours, the median "
        "of the turns: above 1 pastwise is faster. Each job checks that all contenders compute the "
        "same result.",
        "",
        f"Scale: {scale.name}. The suite took {minutes:.0f} minutes.",
        "",
        *_machine(),
        "",
        "## Summary",
        "",
        table(["job", "quantity", "measured"], _summary(sections)),
    ]
    for section in sections:
        lines += ["", *_section(section)]
    return "\n".join([*lines, ""])


def _machine() -> Iterator[str]:
    """The machine and the versions, as a list."""
    installed = {d.metadata["Name"].lower(): d.version for d in distributions()}
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / GIB
    processor = f"{os.cpu_count()} cores of {_processor()}"
    yield f"- Machine: {processor}, {memory:.0f} GiB; {platform.system()}"
    yield f"- Python {platform.python_version()}"
    yield "- " + ", ".join(f"{name} {installed[name]}" for name in PACKAGES if name in installed)


def _processor() -> str:
    names = Path("/proc/cpuinfo")
    if names.exists():
        for line in names.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _summary(sections: Sequence[Section]) -> list[list[str]]:
    """The headlines of all jobs, a line each."""
    return [
        [section.title, headline.quantity, _value(headline)]
        for section in sections
        for headline in section.headlines
    ]


def _value(headline: Headline) -> str:
    return f"{number(headline.value)} {headline.unit}"


def _section(section: Section) -> Iterator[str]:
    yield f"## {section.title}"
    yield ""
    yield section.text
    if section.rows:
        yield ""
        yield table(
            ["size", "contender", "median", "least - most", "ratio to ours"],
            list(map(_line, section.rows)),
        )
    for note in section.notes:
        yield ""
        yield note
    for figure in section.figures:
        yield ""
        yield f"![{figure.name}](figures/{figure.name}.png)"
        yield ""
        yield (
            "Exponents: "
            + ", ".join(f"{curve.contender} {curve.exponent:.2f}" for curve in figure.curves)
            + "."
        )


def _line(row: Row) -> list[str]:
    spread = f"{duration(row.least)} - {duration(row.most)}"
    return [row.size, row.contender, duration(row.seconds), spread, number(row.ratio)]


def number(value: float) -> str:
    """Three significant digits, without an exponent."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def duration(seconds: float) -> str:
    """Seconds in the unit that suits them."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{number(seconds / size)} {unit}"
    return f"{number(seconds / 1e-6)} µs"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _named(curve: Curve) -> str:
    return f"{curve.contender} ({curve.exponent:.2f})"


def _draw(figure: Figure, path: Path) -> None:
    """Seconds over size, both in logarithms, with the exponent of each curve."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    canvas, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    ours, *others = figure.curves
    for i, curve in enumerate(others):  # ten colours, then the same once more, dashed
        style = {
            "color": f"C{i % 10}",
            "linestyle": "-" if i < 10 else "--",
            "marker": "o",
            "markersize": 4,
        }
        axes.loglog(curve.sizes, curve.seconds, label=_named(curve), linewidth=1, **style)
    axes.loglog(ours.sizes, ours.seconds, "ko-", label=_named(ours), linewidth=2.5)
    sizes = sorted({size for curve in figure.curves for size in curve.sizes})
    axes.set_xticks(sizes, [f"{size:,.0f}" for size in sizes])
    axes.minorticks_off()
    axes.set_xlabel(figure.size)
    axes.set_ylabel("seconds")
    axes.grid(alpha=0.3)
    axes.legend(
        fontsize="small", title="contender (exponent)", loc="center left", bbox_to_anchor=(1, 0.5)
    )
    canvas.savefig(path, dpi=120, bbox_inches="tight")
    plt.close(canvas)
