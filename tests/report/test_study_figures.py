"""Figures of studies show what they are given; a method has one colour in all of them."""

from itertools import pairwise

import numpy as np

from pastwise.report.study_figures import (
    Curve,
    Panel,
    difference_boxplot,
    gain_boxplot,
    method_name,
    online_plot,
    timing_plot,
    transfer_plot,
)
from pastwise.report.style import colour_of, is_reference
from pastwise.studies import paper

GAINS = {
    name: np.arange(10) + i
    for i, name in enumerate(["Rand", "TL", "TL_explore", "FPD", "clone", "optimum"])
}


def test_every_run_is_behind_its_box_and_methods_keep_their_order() -> None:
    axes = gain_boxplot(GAINS, "past", references=("clone", "optimum")).axes[0]
    clouds = [line for line in axes.lines if line.get_marker() == "."]
    assert [len(cloud.get_ydata()) for cloud in clouds] == [10] * 6  # type: ignore[arg-type]
    assert [label.get_text() for label in axes.get_xticklabels()] == [
        method_name(name) for name in GAINS
    ]


def test_methods_without_references_need_no_border() -> None:
    axes = gain_boxplot({"Rand": GAINS["Rand"]}, "past").axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["Rand"]


def test_differences_have_one_panel_for_each_past() -> None:
    figure = difference_boxplot({"p3": GAINS, "p1": GAINS})
    assert len(figure.axes) == 2


def test_time_is_shown_on_logarithmic_axes() -> None:
    curve = Curve("TL_explore", [3, 10], [1.0, 2.0], [0.5, 1.5], [1.5, 2.5])
    axes = timing_plot([curve]).axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    np.testing.assert_allclose(np.asarray(axes.lines[0].get_ydata()), [1.0, 2.0])


def test_numbers_on_an_axis_of_less_than_a_decade_do_not_touch() -> None:
    curve = Curve("TL", [200, 1000], [0.5, 0.6])
    levels = {"logged": 0.5, "random": 0.4, "optimum": 0.7}
    figure = transfer_plot([Panel("few", [curve], levels)])
    figure.canvas.draw()
    axis = figure.axes[0].xaxis
    labels = [*axis.get_ticklabels(minor=True), *axis.get_ticklabels()]
    boxes = [label.get_window_extent() for label in labels if label.get_text()]
    inside = sorted((box for box in boxes if box.width), key=lambda box: box.x0)
    assert len(inside) > 3
    assert all(left.x1 < right.x0 for left, right in pairwise(inside))


def test_method_names_have_subscripts() -> None:
    assert method_name("TL_explore") == r"TL$_{\mathrm{explore}}$"
    assert method_name("FPD") == "FPD"
    assert method_name("FPD_learn (dense)") == r"FPD$_{\mathrm{learn}}$ (dense)"
    assert method_name("TL, careful") == "TL, careful"


def test_every_method_has_its_own_colour_and_references_are_grey() -> None:
    names = paper.all_methods()
    colours = [colour_of(name) for name in names]
    assert len(set(colours)) == len(names)
    for name, colour in zip(names, colours, strict=True):
        is_grey = colour[1:3] == colour[3:5] == colour[5:7]
        assert is_grey == is_reference(name), name
    assert {name for name in names if is_reference(name)} == {"Rand", "clone", "optimum"}


def test_variants_of_a_method_share_its_colour_and_differ_by_their_lines() -> None:
    names = ["TL_foresight", "TL_foresight, careful", "clone"]
    lines = online_plot([Curve(name, [1, 2], [0.5, 0.6]) for name in names]).axes[0].lines
    own, variant, reference = lines
    assert own.get_color() == variant.get_color() == colour_of("TL_foresight")
    assert [line.get_linestyle() for line in (own, variant, reference)] == ["-", "--", "--"]
    assert len({line.get_marker() for line in lines}) == 3
