"""The registry: methods by name, with their colours and hyper-parameters."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest

from pastwise import methods
from pastwise.errors import ParameterError, PluginError
from pastwise.methods import registry
from pastwise.methods.registry import Entry, from_settings, text_of, to_settings
from pastwise.models.dense import DenseModel
from pastwise.theory.exploration import UCB, EpsilonGreedy, PosteriorSampling
from pastwise.theory.similarity import normalised_similarity, plain_similarity

LEARNING = ["TL", "TL_explore", "FPD_learn", "TL_foresight", "Rand", "clone"]


@pytest.fixture
def own_entries(monkeypatch: pytest.MonkeyPatch) -> dict[str, Entry]:
    """A copy of the registry, so that a test may add to it."""
    copy = dict(methods.entries())
    monkeypatch.setattr(registry, "_ENTRIES", copy)
    return copy


def test_names_are_those_of_methods_that_learn_and_references_come_last() -> None:
    assert methods.names() == LEARNING
    assert set(methods.entries()) == {*LEARNING, "FPD"}
    assert [name for name, entry in methods.entries().items() if not entry.learns] == ["FPD"]


def test_entries_name_their_class_and_say_what_it_does() -> None:
    for name, entry in methods.entries().items():
        assert entry.name == name == entry.make.name  # type: ignore[attr-defined]
        assert entry.summary == (entry.make.__doc__ or "").splitlines()[0]


def test_colours_are_distinct() -> None:
    """Two curves of a figure never have the same colour."""
    colours = [methods.colour(name) for name in methods.entries()]
    assert len(set(colours)) == len(colours)


def test_method_is_created_by_its_name() -> None:
    assert methods.create("TL") == methods.TL()
    assert methods.create("TL", prior_count=5.0) == methods.TL(prior_count=5.0)
    assert methods.create("clone") == methods.Clone()


def test_method_that_needs_the_true_model_is_not_created_by_its_name() -> None:
    with pytest.raises(ParameterError, match="FPD does not learn from a log: it needs the true"):
        methods.create("FPD")


@pytest.mark.parametrize("name", ["SARSA", "scripted", "tl", ""])
def test_unknown_name_is_refused_with_those_that_are_known(name: str) -> None:
    choice = ", ".join(LEARNING)
    with pytest.raises(ParameterError, match=f"unknown method '{name}'; choose one of {choice}"):
        methods.create(name)


@pytest.mark.parametrize(
    ("text", "method"),
    [
        ("TL", methods.TL()),
        ("TL(prior_count=5)", methods.TL(prior_count=5)),
        ("TL_foresight(past_skill=-1)", methods.TLForesight(past_skill=-1)),
        ("TL_foresight(epochs=7, discount=0.99)", methods.TLForesight(epochs=7, discount=0.99)),
        ("FPD_learn(replay=True)", methods.FPDLearn(replay=True)),
    ],
)
def test_a_method_is_written_as_text_and_read_again(text: str, method: Any) -> None:
    assert text_of(method) == text
    assert methods.create(text) == method


def test_texts_may_be_written_by_hand() -> None:
    assert methods.create("TL()") == methods.TL()
    assert methods.create("TL( prior_count = 5.0 )") == methods.TL(prior_count=5)
    assert methods.create("FPD_learn(replay=true)") == methods.FPDLearn(replay=True)
    assert methods.create("FPD_learn(replay=false)") == methods.FPDLearn()
    given = methods.create("TL_foresight(epochs=7, past_skill=None)", discount=0.5)
    assert given == methods.TLForesight(epochs=7, discount=0.5)


def test_tables_functions_and_explorers_are_only_shown() -> None:
    text = text_of(methods.TL(prior_count=np.ones((2, 2, 2)), similarity=plain_similarity))
    assert text == "TL(prior_count=..., similarity=...)"
    assert text_of(methods.TLExplore(explore=UCB())) == "TL_explore(explore=...)"
    assert text_of(methods.TL(prior_count=np.float32(2))) == "TL(prior_count=2.0)"
    assert text_of(methods.TL(prior_count=np.array(5))) == "TL(prior_count=5)"
    with pytest.raises(ParameterError, match=re.escape(f"cannot read the method '{text}'")):
        methods.create(text)


@pytest.mark.parametrize(
    ("text", "name"), [("TLForesight(past_skill=1)", "TL_foresight"), ("Clone", "clone")]
)
def test_the_name_of_a_class_is_answered_with_that_of_its_method(text: str, name: str) -> None:
    with pytest.raises(ParameterError, match=f"unknown method .*, the class of {name}; choose one"):
        methods.create(text)


@pytest.mark.parametrize(
    "text",
    [
        "TL(5)",
        "TL(prior_count=)",
        "TL(prior_count=5",
        "TL(prior_count=5)(prior_count=5)",
        "TL(prior_count='5')",
        "TL(prior_count=[1, 2])",
        "TL(prior_count=print(5))",
        "FPD_learn(replay=yes)",
        "TL(prior_count=5, prior_count=6)",
        "TL(**{'prior_count': 5})",
        "tl.TL(prior_count=5)",
        "(TL)",
        "TL\0(prior_count=5)",
        "TL(prior_count=1e999999)()",
        "TL(prior_count=" + "-" * 5000 + "5)",
        "TL(prior_count=" + "-" * 480 + "5)",
        "TL(prior_count=" + "-" * 200_000 + "5)",
        "TL(prior_count=" + "not " * 5000 + "5)",
        "TL(prior_count=1" + "+1" * 5000 + ")",
        "TL(prior_count=a" + ".a" * 5000 + ")",
        "TL(prior_count=" + "9" * 5000 + ")",
        "TL(prior_count=0x" + "f" * 5000 + ")",
        "TL(prior_count={[]})",
        "TL(prior_count={[]: 1})",
    ],
)
def test_text_that_is_no_method_is_refused(text: str) -> None:
    with pytest.raises(ParameterError, match=r"cannot read the method|unknown method"):
        methods.create(text)


def test_hyper_parameters_of_a_text_are_checked() -> None:
    with pytest.raises(ParameterError, match="TL has no hyper-parameter 'prior'; choose one of"):
        methods.create("TL(prior=5)")
    with pytest.raises(ParameterError, match="past_skill must be a number from -1 to 1"):
        methods.create("TL_foresight(past_skill=2)")
    with pytest.raises(ParameterError, match="unknown method 'SARSA'"):
        methods.create("SARSA(epochs=3)")
    with pytest.raises(ParameterError, match=r"past_skill must be a number from -1 to 1, not 444"):
        methods.create("TL_foresight(past_skill=0x" + "f" * 400 + ")")


def test_unknown_hyper_parameter_is_refused_with_those_that_are_known() -> None:
    message = "TL has no hyper-parameter 'prior'; choose one of prior_count, similarity"
    with pytest.raises(ParameterError, match=message):
        methods.create("TL", prior=5.0)
    with pytest.raises(ParameterError, match="TL has no hyper-parameter 'name'"):
        methods.create("TL", **{"name": 3})
    with pytest.raises(ParameterError, match="TL_foresight has no hyper-parameter 'prior_count'"):
        methods.create("TL_foresight", prior_count=5.0)
    with pytest.raises(ParameterError, match="Rand has no hyper-parameter 'seed'; it has none"):
        methods.create("Rand", seed=1)


def test_own_method_is_registered_by_a_decorator(own_entries: dict[str, Entry]) -> None:
    """Without a colour of its own it gets a spare one."""

    @methods.register()
    @dataclass(frozen=True)
    class Idle(methods.Rand):
        """Do nothing."""

        name: ClassVar[str] = "idle"

    assert methods.create("idle") == Idle()
    assert methods.names()[-3:] == ["idle", "Rand", "clone"]
    assert own_entries["idle"].summary == "Do nothing."
    assert methods.colour("idle") in registry.SPARE_COLOURS


def test_name_is_registered_once(own_entries: dict[str, Entry]) -> None:
    with pytest.raises(ParameterError, match="a method named 'TL' is registered already"):
        methods.register()(methods.TL)


def test_methods_of_other_distributions_are_found(
    own_entries: dict[str, Entry], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their modules are loaded when the registry is first used."""
    loaded = []

    class EntryPoint:
        def load(self) -> ModuleType:
            loaded.append("module")
            return sys

    groups = []

    def entry_points(group: str) -> list[EntryPoint]:
        groups.append(group)
        return [EntryPoint()]

    registry._load_plugins.cache_clear()
    monkeypatch.setattr(registry, "entry_points", entry_points)
    methods.names()
    methods.entries()
    assert groups == ["pastwise.methods"]
    assert loaded == ["module"]


@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("raise RuntimeError('out of order')", "RuntimeError: out of order"),
        ("import a_library_that_is_not_there", "No module named 'a_library_that_is_not_there'"),
    ],
)
def test_package_whose_methods_cannot_be_loaded_is_named(
    module: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_methods.py").write_text(module)
    info = tmp_path / "broken-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[pastwise.methods]\nbest = broken_methods\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry._load_plugins.cache_clear()
    with pytest.raises(PluginError, match=r"package 'broken' .*'broken_methods'") as error:
        methods.names()
    assert message in str(error.value)


# Settings.


@pytest.mark.parametrize(
    "method",
    [
        methods.TL(prior_count=5, similarity=plain_similarity),
        methods.TLExplore(threshold=0.2, window=3, explore=EpsilonGreedy(0.1)),
        methods.TLExplore(explore=UCB(width=2.0)),
        methods.TLExplore(explore=PosteriorSampling()),
        methods.FPDLearn(horizon=3, prior_count=0.5, replay=True),
        methods.TLForesight(epochs=7),
        methods.TLForesight(discount=0.99, temperature=0.1),
    ],
)
def test_settings_describe_every_hyper_parameter(method: Any) -> None:
    assert from_settings(to_settings(method)) == method


def test_settings_are_plain_values() -> None:
    assert to_settings(methods.TLExplore(prior_count=2.0)) == {
        "name": "TL_explore",
        "prior_count": 2.0,
        "similarity": {"function": "normalised_similarity"},
        "threshold": 0.4,
        "window": 10,
        "explore": {"class": "EpsilonGreedy", "epsilon": 0.3},
    }


def own_similarity(*record: Any) -> Any:
    return normalised_similarity(*record)


def normalised_similarity_of_another() -> Callable[..., Any]:
    """A function that has the name of the library's own."""

    def normalised_similarity(*record: Any) -> Any:
        return plain_similarity(*record)

    return normalised_similarity


@dataclass(frozen=True)
class OwnExplorer(EpsilonGreedy):
    """An explorer that only its author has."""


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (methods.TL(similarity=own_similarity), "similarity, of type function, cannot be saved"),
        (methods.TL(similarity=normalised_similarity_of_another()), "cannot be saved"),
        (methods.TLExplore(explore=OwnExplorer()), "of type OwnExplorer, cannot be saved"),
        (methods.FPD(DenseModel(np.full((2, 2, 2), 0.5))), "cannot be saved"),
        (methods.Scripted(np.full((1, 2, 2), 0.5)), "only registered methods can"),
    ],
)
def test_settings_refuse_what_a_file_cannot_name(method: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        to_settings(method)


def test_numbers_and_tables_of_numpy_come_back() -> None:
    table = np.full((2, 2, 2), 0.1)
    again = from_settings(to_settings(methods.TL(prior_count=table)))
    np.testing.assert_array_equal(again.prior_count, table)  # type: ignore[attr-defined]
    for number in (np.int64(5), np.float32(5), np.float64(5)):
        method = methods.TL(prior_count=number)
        assert from_settings(to_settings(method)) == method


def test_subclass_is_not_the_registered_class() -> None:
    """It would come back as another method."""

    class Other(methods.TL):
        pass

    with pytest.raises(ParameterError, match="Other cannot be saved: only registered methods can"):
        to_settings(Other())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "SARSA"}, "unknown method 'SARSA'"),
        ({"name": "FPD"}, "FPD does not learn from a log"),
        ({"name": "TL", "depth": 3}, "TL has no hyper-parameter 'depth'"),
        ({"name": "TL", "prior_count": -1}, "prior counts must be positive"),
        (
            {"name": "TL", "prior_count": "much"},
            r"prior_count must be a number up to 1e\+12, not 'much'",
        ),
        ({"name": "TL", "similarity": "eval"}, "similarity must be a function"),
        ({"name": "TL", "similarity": []}, "similarity must be a function"),
        ({"name": "TL", "similarity": {"function": "eval"}}, "'eval' is not a hyper-parameter"),
        ({"name": "TL", "similarity": {"function": "TL"}}, "'TL' is not a hyper-parameter"),
        ({"name": "TL", "similarity": {"class": "np"}}, "'np' is not a hyper-parameter"),
        ({"name": "TL", "similarity": {}}, "None is not a hyper-parameter"),
        ({"name": "TL_explore", "explore": 5}, "explore must be an Explorer"),
        ({"name": "TL_explore", "explore": {"function": "plain_similarity"}}, "Explorer"),
        ({"name": "TL_foresight", "epochs": -1}, "epochs must be a whole number from 0"),
    ],
)
def test_settings_that_describe_no_method_are_refused(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        from_settings(settings)
