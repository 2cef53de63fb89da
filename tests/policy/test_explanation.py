"""Why an action has its probability, as plain values and in sentences."""

from __future__ import annotations

from pastwise.policy.explanation import Explanation, Reason, TransitionEvidence

EXPLANATION = Explanation(
    ("cold", 1),
    "TL",
    {
        "wait": Reason(
            probability=0.25,
            is_allowed=True,
            parts={"records": 0.2, "prior": 0.05},
            adds_up=True,
            evidence=(TransitionEvidence(("cold", 1), 1, 0.1, 0.2),),
        ),
        "heat": Reason(
            probability=0.75,
            is_allowed=True,
            parts={"records": 0.7, "prior": 0.05},
            adds_up=True,
            evidence=(
                TransitionEvidence(("warm", 1), 3, 1.5, 0.5),
                TransitionEvidence(("cold", 1), 1, 0.6, 0.2),
            ),
        ),
    },
)


def test_an_explanation_as_plain_values() -> None:
    assert EXPLANATION.to_dict() == {
        "state": '["cold", 1]',
        "actions": {
            "wait": {
                "probability": 0.25,
                "is_allowed": True,
                "parts": {"records": 0.2, "prior": 0.05},
                "adds_up": True,
                "evidence": [
                    {"next_state": '["cold", 1]', "records": 1, "similarity": 0.1, "share": 0.2}
                ],
            },
            "heat": {
                "probability": 0.75,
                "is_allowed": True,
                "parts": {"records": 0.7, "prior": 0.05},
                "adds_up": True,
                "evidence": [
                    {"next_state": '["warm", 1]', "records": 3, "similarity": 1.5, "share": 0.5},
                    {"next_state": '["cold", 1]', "records": 1, "similarity": 0.6, "share": 0.2},
                ],
            },
        },
        "method": "TL",
    }


def test_an_explanation_in_words_has_the_likeliest_first() -> None:
    lines = [line.split() for line in str(EXPLANATION).splitlines()]
    assert [line[0] for line in lines] == [
        "In",
        "heat",
        "0.5",
        "0.2",
        "0.05",
        "wait",
        "0.2",
        "0.05",
    ]
    assert '3 records that led to ["warm", 1], similarity 1.5' in str(EXPLANATION)
    assert "1 record " in str(EXPLANATION)
