"""Policy cards as Markdown and HTML."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import pastwise as pw
from pastwise.errors import ParameterError
from pastwise.policy.card import PolicyCard
from pastwise.policy.summary import quick_verdict
from pastwise.report.card import card_html, card_markdown, write_card
from tests.helpers.command import shell_of
from tests.helpers.markup import require_static

EVIL = "<script>alert('x')</script> | *bold*"


@cache
def learner() -> pw.TransferLearner:
    rng = np.random.default_rng(0)
    size = 80
    log = {
        "x": rng.uniform(0, 2, size).tolist(),
        "ward": [EVIL, "rare", *rng.choice(["A", "B"], size - 2).tolist()],
        "did": rng.choice(["up", "down"], size).tolist(),
        "patient": np.repeat(np.arange(size // 8), 8).tolist(),
        "hour": np.tile(np.arange(8), size // 8).tolist(),
    }
    goal = pw.Goal(targets={"ward": {"A": 1}})
    return pw.TransferLearner(goal, method="TL").fit(
        log, state=["x", "ward"], action="did", episode="patient", time="hour", bins={"x": [1.0]}
    )


def test_a_card_says_what_the_policy_rests_on() -> None:
    card = PolicyCard.of(learner(), quick_verdict(learner(), samples=20))
    counts = learner().counts_
    assert card.data["Records"] == str(counts.num_records)
    assert card.data["Episodes"] == "10 (patient), of 7 records each"
    records = [state.records for state in card.states]
    assert records == sorted(records, reverse=True)
    assert sum(records) == counts.num_records
    for state in card.states:
        decision = learner().decisions([state.state]).to_dict()["decisions"][0]
        assert (state.action, state.probability) == (decision["action"], decision["probability"])
        assert (state.records, state.episodes) == (decision["records"], decision["episodes"])
        assert state.is_weak == (state.records < 10)
    number = sum(state.is_weak for state in card.states)
    assert any(limit.startswith(f"{number} states of") for limit in card.limits)
    assert card.verdict is not None
    assert json.loads(json.dumps(card.to_dict()))["verdict"]["sentence"] == card.verdict.sentence


def test_a_card_says_what_was_said_of_the_past() -> None:
    known = learner().retarget(learner().goal, pw.methods.TLForesight(past_skill=1))
    card = PolicyCard.of(known)
    assert sum("how good the past was for this goal: 1," in limit for limit in card.limits) == 1
    assert "method='TL_foresight(past_skill=1)'" in card.making["Python"]
    again = learner().retarget(learner().goal, "TL_foresight(past_skill=1)")
    assert again.rule_ == known.rule_

    inferred = PolicyCard.of(learner().retarget(learner().goal, "TL_foresight"))
    assert not any("said how good the past was" in limit for limit in inferred.limits)
    assert "method='TL_foresight'" in inferred.making["Python"]


def test_a_page_is_well_formed_and_runs_nothing() -> None:
    card = PolicyCard.of(learner(), title=EVIL)
    page = card_html(card)
    markup = require_static(page)
    assert markup.tags.count("h1") == 1
    assert markup.tags.count("tr") == len(card.states) + 1
    assert EVIL in markup.text
    assert "prefers-color-scheme: dark" in page
    assert "Not judged." in page


def test_markdown_shows_labels_as_they_are() -> None:
    text = card_markdown(PolicyCard.of(learner()), max_states=2)
    rows = [line for line in text.splitlines() if line.startswith("| \\[")]
    assert len(rows) == 2
    assert "The 2 most visited of" in text
    assert EVIL not in card_markdown(PolicyCard.of(learner()))
    assert "\\<script\\>" in card_markdown(PolicyCard.of(learner()))


def test_a_card_is_written_as_its_name_says(tmp_path: Path) -> None:
    card = PolicyCard.of(learner())
    write_card(card, tmp_path / "card.md")
    write_card(card, tmp_path / "card.html")
    assert (tmp_path / "card.md").read_text(encoding="utf-8") == card_markdown(card)
    assert (tmp_path / "card.html").read_text(encoding="utf-8") == card_html(card)
    with pytest.raises(ParameterError, match=r"\.md or \.html"):
        write_card(card, tmp_path / "card.pdf")


def test_the_command_judges_unless_it_must_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    learner().save("p.safetensors")
    shell = shell_of(monkeypatch, capsys)
    shown = shell("card", "p.safetensors", "-o", "card.md")
    assert (shown.code, shown.out, shown.err) == (0, "", "The card is in card.md\n")
    judged = Path("card.md").read_text(encoding="utf-8")
    assert "# Policy card: p.safetensors" in judged
    assert "The new rule" in judged
    checksum = pw.load("p.safetensors").checksum_
    assert len(checksum) == 64
    assert checksum in judged
    shell("card", "p.safetensors", "-o", "card.md", "--no-verdict", "--title", "Wards")
    assert Path("card.md").read_text(encoding="utf-8").startswith("# Wards\n")
    assert "Not judged." in Path("card.md").read_text(encoding="utf-8")
    assert shell("card", "p.safetensors", "-o", "card.pdf").code == 2
