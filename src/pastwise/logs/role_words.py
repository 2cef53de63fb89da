"""Words in the names of columns, and the roles that they speak for."""

from __future__ import annotations

import re

WORDS = {
    "episode": "episode ep id case patient subject user session trajectory traj run person "
    "customer trip nr individual participant machine device game rollout stay student pupil "
    "household firm client member player animal unit sequence key concept:name pid sid uid",
    "time": "time t date timestamp datetime step hour day year month week minute second period "
    "epoch visit when round wave quarter seq turn tick at moment trial occasion",
    "state": "state s status obs observation room level condition stage symptom health phase mode "
    "position location cell grade situation context severity temperature temp "
    "mood pain activity response score",
    "action": "action act a did do decision treatment treat trt drug dose medication med therapy "
    "intervention control choice arm offer ad command move order assigned assignment resource "
    "given prescribed treated operator price channel did_what u",
    "next": "next then following after new subsequent successor later n",
    "outcome": "outcome result reward response success click clicked converted conversion died "
    "survived alive recovered",
    "none": "rownames rowname row index unnamed propensity probability prob weight done reward "
    "return comment note notes",
}
"""Words in names of columns, by role; ``none`` are those of columns with other roles."""

WORDS_OF_ROLE = {role: frozenset(words.split()) for role, words in WORDS.items()}

NAMED = 1.5
"""Score of a name that is a word of the role; a part of the name has two thirds of it."""


def words_of(name: str) -> list[str]:
    """The words that a name consists of, in lower case.

    >>> words_of("nextRoom_2"), words_of("case:concept:name")
    (['next', 'room', '2'], ['case', 'concept', 'name'])
    """
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    spaced = re.sub(r"(?<=[A-Za-z])(?=\d)", " ", spaced)
    return [word.lower() for word in re.split(r"[^0-9A-Za-z']+", spaced) if word]


def name_score(name: str, role: str) -> float:
    """How much a name speaks for a role."""
    known = WORDS_OF_ROLE[role]
    words = words_of(name)
    if name.lower() in known or (len(words) == 1 and words[0] in known):
        return NAMED
    long_words = [word for word in words if len(word) > 1]
    if any(word in known for word in long_words):
        return NAMED * 2 / 3
    # Words that are written together, such as patientid and timestamps.
    joined = "".join(words)
    long_known = [word for word in known if len(word) >= 4]
    if any(joined.startswith(word) or joined.endswith(word) for word in long_known):
        return NAMED / 2
    if role == "episode" and joined.endswith("id"):
        return NAMED * 2 / 3
    return 0.0
