"""Every equation, definition, theorem and algorithm of the paper is cited by code and by a test."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

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


CITATION = re.compile(r"((?:Definition|Theorem|Algorithm) \d+|(?:Eqs?\. )?\((\d+)\)) \[([\w:-]+)\]")
"""``Eq. (10) [eq:...]``, ``Theorem 1 [th:...]``; in a list of equations the later ones lack the word."""


def citations(folder: str) -> set[tuple[str, str]]:
    """Pairs of item and label that the texts of a folder cite."""
    here = Path(__file__).name
    texts = (
        " ".join(p.read_text().split()) for p in (ROOT / folder).rglob("*.py") if p.name != here
    )
    found = (match for text in texts for match in CITATION.finditer(text))
    return {(f"Eq. ({match[2]})" if match[2] else match[1], match[3]) for match in found}


@pytest.mark.parametrize("folder", ["src/pastwise", "tests"])
def test_every_item_of_the_paper_is_cited_and_none_wrongly(folder: str) -> None:
    cited = citations(folder)
    assert set(ITEMS.items()) - cited == set()
    assert cited - set(ITEMS.items()) == set()
