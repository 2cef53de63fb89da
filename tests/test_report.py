"""Tables, pages and figures show what they are given."""

from pathlib import Path

import numpy as np
import pytest

from pastwise.adapters.files import staged
from pastwise.report.figures import difference_boxplot, gain_boxplot, method_name, timing_plot
from pastwise.report.text import claims_page, write_csv

GAINS = {name: np.arange(10) + i for i, name in enumerate(["Rand", "TL", "TL_explore", "FPD", "clone", "optimum"])}


def test_every_run_is_behind_its_box_and_methods_keep_their_order() -> None:
    axes = gain_boxplot(GAINS, "p12").axes[0]
    clouds = [line for line in axes.lines if line.get_marker() == "."]
    assert [len(cloud.get_ydata()) for cloud in clouds] == [10] * 6  # type: ignore[arg-type]
    assert [label.get_text() for label in axes.get_xticklabels()] == [method_name(name) for name in GAINS]


def test_methods_without_references_need_no_border() -> None:
    axes = gain_boxplot({"Rand": GAINS["Rand"]}, "p1").axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["Rand"]


def test_differences_have_one_panel_for_each_past() -> None:
    figure = difference_boxplot({"p3": GAINS, "p1": GAINS})
    assert len(figure.axes) == 2


def test_timing_is_drawn_in_milliseconds_on_logarithmic_axes() -> None:
    axes = timing_plot([3, 10], {"TL_explore": np.array([[0.001, 0.001], [0.002, 0.002]])}).axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    np.testing.assert_allclose(np.asarray(axes.lines[0].get_ydata()), [1.0, 2.0])


def test_method_names_have_subscripts() -> None:
    assert method_name("TL_explore") == r"TL$_{\mathrm{explore}}$"
    assert method_name("FPD") == "FPD"


def test_csv_is_unrounded_and_leaves_absent_values_empty(tmp_path: Path) -> None:
    write_csv(tmp_path / "t.csv", [{"a": 1 / 3, "b": None}, {"a": 2, "b": "x"}])
    assert (tmp_path / "t.csv").read_text() == f"a,b\n{1 / 3},\n2,x\n"


def test_claims_page_shows_interval_and_verdict() -> None:
    measured = [
        {"what": "TL - Rand", "difference": 1.0, "low": 0.5, "high": 1.5},
        {"what": "TL - FPD", "difference": -1.0, "low": None, "high": None},
    ]
    page = claims_page([{"claim": "It works", "verdict": "holds", "measured": measured, "remark": "r"}], 7, "How.")
    assert "| It works | **holds** | TL - Rand: +1.00 [+0.50, +1.50]<br>TL - FPD: -1.00 | r |" in page
    assert "7 runs. How." in page


def test_staged_files_move_in_together(tmp_path: Path) -> None:
    out = tmp_path / "a" / "b"
    with staged(out) as folder:
        (folder / "x").write_text("new")
        assert not (out / "x").exists()
    assert [path.name for path in out.iterdir()] == ["x"]


def test_staged_failure_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("old")

    def fail(folder: Path) -> None:
        with staged(folder) as stage:
            (stage / "x").write_text("new")
            raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        fail(tmp_path)
    with pytest.raises(RuntimeError, match="no"):
        fail(tmp_path / "new" / "deep")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("x", "old")]


def test_staged_removes_owned_files_that_are_not_written_again(tmp_path: Path) -> None:
    for name in ("old", "other"):
        (tmp_path / name).touch()
    with staged(tmp_path, owned=["old", "x"]) as folder:
        (folder / "x").touch()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "x"]
