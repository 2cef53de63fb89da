"""The file with the tokens of administrators."""

from pathlib import Path

import pytest

from pastwise.errors import FileError, ParameterError
from pastwise.service.tokens import read_token_file
from tests.helpers.disk import full_disk


def test_a_new_file_has_one_token_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "admin.token"
    (token,) = read_token_file(path)
    assert token.startswith("pw_")
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_token_file(path) == [token]
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_leaves_no_file_that_the_next_start_refuses(tmp_path: Path) -> None:
    path = tmp_path / "admin.token"
    with full_disk(0), pytest.raises(FileError, match="cannot write the token file"):
        read_token_file(path)
    assert list(tmp_path.iterdir()) == []
    assert len(read_token_file(path)) == 1


@pytest.mark.parametrize("content", ["", "short\n"])
def test_files_without_a_token_are_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "admin.token"
    path.write_text(content)
    with pytest.raises(ParameterError, match="start again"):
        read_token_file(path)
