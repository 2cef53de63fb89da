"""Every equation, definition, theorem and algorithm of the paper is cited by code and by a test."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

ITEMS = {
    "Definition 1": "MDP",
    "Definition 2": "def:closed_loop_descr",
    "Definition 3": "def:ideal_closed-loop_beh",
    "Definition 4": "def:FPD_opt_dec",
    "Definition 5": "def:similarity",
    "Definition 6": "def:similarity_norm",
    "Theorem 1": "th:solution_FPD",
    "Algorithm 1": "alg:alg_exploration",
    "Eq. (1)": "eq:closed-loop_beh",
    "Eq. (2)": "eq:closed-loop_factoris",
    "Eq. (3)": "eq:similarity",
    "Eq. (4)": "eq:similarity_norm",
    "Eq. (5)": "eq:closed-loop_beh_data",
    "Eq. (6)": "eq:weighted_bayes",
    "Eq. (7)": "eq:dirichlet_prior",
    "Eq. (8)": "eq:posterior",
    "Eq. (9)": "eq:estimated_opt_dec_rule_theory",
    "Eq. (10)": "eq:estimated_dec_rule",
    "Eq. (11)": "eq:past_model_1",
    "Eq. (12)": "eq:past_model_12",
    "Eq. (13)": "eq:past_model_3",
    "Eq. (14)": "eq:current_ideal_model_1",
    "Eq. (15)": "eq:random_strategy",
}
"""All numbered items of the paper, with the label of each."""


def cited_labels(folder: str) -> set[str]:
    here = Path(__file__).name
    texts = (path.read_text() for path in (ROOT / folder).rglob("*.py") if path.name != here)
    return {label for text in texts for label in re.findall(r"\[([\w:-]+)\]", text)}


@pytest.mark.parametrize("folder", ["src/pastwise", "tests"])
def test_every_item_of_the_paper_is_cited(folder: str) -> None:
    missing = {item: label for item, label in ITEMS.items() if label not in cited_labels(folder)}
    assert not missing


@pytest.mark.parametrize("folder", ["src/pastwise", "tests"])
def test_no_citation_is_misspelt(folder: str) -> None:
    paperlike = {label for label in cited_labels(folder) if re.match(r"(eq|def|th|alg):", label)}
    assert paperlike <= set(ITEMS.values())
