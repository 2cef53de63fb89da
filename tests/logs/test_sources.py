"""Sources: files of every accepted form are read whole or refused in one clear line."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pastwise import LogWarning, TransitionCounts, count_transitions
from pastwise.errors import LogError, PastwiseError
from pastwise.logs.columns import Columns
from pastwise.logs.sources import library_of, open_table

HEADER = "s,a,n\n"
TEXT = HEADER + "cold,heat,mild\nmild,wait,mild\ncold,heat,mild\n"
COUNTS = {("cold", "heat", "mild"): 2, ("mild", "wait", "mild"): 1}
COLUMNS = {"s": ["cold", "mild", "cold"], "a": ["heat", "wait", "heat"], "n": ["mild"] * 3}


def labelled(counts: TransitionCounts) -> dict[tuple[Any, ...], int]:
    """Number of records by label."""
    spaces = (counts.states, counts.actions, counts.states)
    indices = zip(counts.state, counts.action, counts.next_state, strict=True)
    keys = (
        tuple(space.labels[i] for space, i in zip(spaces, index, strict=True)) for index in indices
    )
    return dict(zip(keys, counts.records.tolist(), strict=True))


def read(table: Any, **options: Any) -> dict[tuple[Any, ...], int]:
    return labelled(
        count_transitions(table, **{"state": "s", "action": "a", "next_state": "n", **options})
    )


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a file and return its path."""

    def written(content: str | bytes, name: str = "log.csv") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return written


Write = Callable[..., Path]


# CSV


@pytest.mark.parametrize("delimiter", [",", ";", "|", "\t"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_delimiters_and_line_ends(write: Write, delimiter: str, line_end: str) -> None:
    text = TEXT.replace(",", delimiter).replace("\n", line_end)
    for given in (
        text,
        text.removesuffix(line_end),
        "\ufeff" + text,
        text.replace("cold", '"cold"'),
    ):
        assert read(write(given)) == COUNTS


@pytest.mark.parametrize("name", ["log.csv", "log.tsv", "log.txt", "LOG.CSV"])
def test_endings_of_csv_files(write: Write, name: str) -> None:
    assert read(write(TEXT, name)) == COUNTS


@pytest.mark.parametrize("name", ["log.csv.gz", "log.csv.GZ"])
def test_compressed_file(write: Write, name: str) -> None:
    assert read(write(gzip.compress(TEXT.encode()), name)) == COUNTS


def test_quoted_text_may_hold_anything(write: Write) -> None:
    odd = [
        'a "quoted" word',
        "a, b; c | d\te",
        "two\nlines",
        "two\r\nlines",
        " spaces ",
        "čaj ☕",
        "'",
        "#",
        "NULL",
        "\\",
    ]
    lines = ['"{}","x","{}"\n'.format(label.replace('"', '""'), "end") for label in odd]
    assert read(write(HEADER + "".join(lines))) == {(label, "x", "end"): 1 for label in odd}


def test_labels_are_text_even_where_they_look_like_numbers(write: Write) -> None:
    path = write(HEADER + "007,1,7\n7,1.0,007\n")
    assert read(path) == {("007", "1", "7"): 1, ("7", "1.0", "007"): 1}
    assert read(path, text_labels=False) == {(7, 1.0, 7): 2}


def test_numbers_of_a_file_that_are_not_labels_are_numbers(write: Write) -> None:
    path = write("s,a,n,many,heavy,temperature,then\na,x,b,2,0.5,10.5,20\nb,x,b,3,2,20,20\n")
    counts = count_transitions(path, "s", "a", "n", count="many", weight="heavy")
    assert counts.records.tolist() == [2, 3]
    assert counts.weight.tolist() == [1.0, 6.0]
    binned = read(path, state="temperature", next_state="then", bins={"temperature": [15]})
    assert binned == {("< 15", "x", ">= 15"): 1, (">= 15", "x", ">= 15"): 1}


@pytest.mark.filterwarnings("ignore:no state has records of several actions")
def test_fraction_after_many_whole_numbers_is_not_rounded(write: Write) -> None:
    path = write("s,a,n,w\n" + "a,x,b,1\n" * 3000 + "a,x,b,0.5\n")
    assert count_transitions(path, "s", "a", "n", weight="w").weight.tolist() == [3000.5]


@pytest.mark.filterwarnings("ignore:no state has records of several actions")
def test_fraction_after_many_whole_labels_is_not_rounded(write: Write) -> None:
    path = write(HEADER + "1,2,1\n" * 3000 + "1.5,2,1\n")
    assert read(path, text_labels=False) == {(1, 2, 1): 3000, (1.5, 2, 1): 1}


def test_columns_without_a_name_are_called_by_their_place(write: Write) -> None:
    """R numbers rows in a first column of this kind, spreadsheets end in some that are empty."""
    path = write(",s,a,n,,\n1,a,x,b,,\n2,b,y,a,,\n3,a,x,a,,7\n")
    assert read(path) == {("a", "x", "b"): 1, ("b", "y", "a"): 1, ("a", "x", "a"): 1}
    counts = count_transitions(path, "s", "a", "n", weight="column 1")
    assert counts.weight.sum() == 6


def test_long_numbers_of_episodes_differ(write: Write) -> None:
    """Two that are the same in floating point."""
    first, second = 2**60, 2**60 + 1
    path = write(f"who,day,s,a\n{first},1,a,x\n{second},2,b,x\n{first},3,c,x\n{second},4,d,x\n")
    assert read(path, next_state=None, episode="who", time="day") == {
        ("a", "x", "c"): 1,
        ("b", "x", "d"): 1,
    }


def test_empty_fields_are_missing_values_and_blank_lines_are_nothing(write: Write) -> None:
    path = write(TEXT + '\n,heat,mild\n"",heat,mild\n\n')
    with pytest.warns(LogWarning, match="2 records without state"):
        assert read(path) == COUNTS


def test_columns_that_are_not_needed_may_hold_anything(write: Write) -> None:
    note = "a very long story " * 20_000
    assert read(write(f"s,a,n,note,\na,x,b,{note},\nb,x,b,,\n")) == {
        ("a", "x", "b"): 1,
        ("b", "x", "b"): 1,
    }


@pytest.mark.parametrize(
    ("header", "state"),
    [
        ('"s, in °C, outside";a;n', "s, in °C, outside"),
        ('"say ""s""",a,n', 'say "s"'),
        ("the state,a,n", "the state"),
        ("select,a,n", "select"),
        ("a.b,a,n", "a.b"),
    ],
)
def test_names_of_columns_may_be_odd(write: Write, header: str, state: str) -> None:
    delimiter = ";" if ";" in header else ","
    path = write(header + "\n" + "cold,heat,mild\nmild,heat,mild\n".replace(",", delimiter))
    assert read(path, state=state) == {("cold", "heat", "mild"): 1, ("mild", "heat", "mild"): 1}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty: the first line of a CSV file names its columns"),
        ("\n\n", "is empty: the first line of a CSV file names its columns"),
        ("s,a,n\n", "the log has no records"),
        ("s,a,n", "the log has no records"),
        (TEXT + "cold,heat\n", "Expected Number of Columns: 3 Found: 2"),
        (TEXT + "cold,heat,mild,warm\n", "Expected Number of Columns: 3 Found: 4"),
        (HEADER + "cold,heat,mild\n" * 3000 + "cold,heat\n", "Line: 3002"),
        (TEXT + '"cold,heat,mild\n', "quote"),
        ("s,a,n,a\n1,2,3,4\n", "the column 'a' occurs twice"),
        ("s,a,n,A\n1,2,3,4\n", "column"),
        ("s,a,n\0\n1,2,3\n", "is not a text file"),
        (TEXT.encode() + bytes(512), "cannot be read"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "is not a CSV file in UTF-8"),
        (np.random.default_rng(0).bytes(5000), "is not a CSV file in UTF-8"),
        (HEADER.encode() + "žár,x,y\n".encode("cp1250"), "is not a CSV file in UTF-8"),
        (HEADER.encode() + b"cold,heat,mild\n" * 3000 + "žár,x,y\n".encode("cp1250"), "utf-8"),
        (TEXT.encode("utf-16"), "is not a CSV file in UTF-8"),
        ("nothing to see here\n", "the log has no column 's'; it has nothing to see here"),
    ],
)
def test_bad_csv_file_is_refused_in_one_line(
    write: Write, content: str | bytes, message: str
) -> None:
    path = write(content)
    with pytest.raises(LogError, match=r"\w") as error:
        read(path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def damaged(content: bytes) -> bytes:
    return content[:20] + bytes(byte ^ 0xFF for byte in content[20:40]) + content[40:]


@pytest.mark.parametrize(
    "content",
    [
        TEXT.encode(),
        gzip.compress(TEXT.encode())[:-12],
        gzip.compress(TEXT.encode() * 5000)[:-12],
        damaged(gzip.compress(TEXT.encode() * 5000)),
        damaged(gzip.compress(TEXT.encode())),
    ],
    ids=["not compressed", "cut", "cut late", "garbled", "garbled short"],
)
def test_damaged_compressed_file_is_refused(write: Write, content: bytes) -> None:
    with pytest.raises(LogError, match=r"log\.csv\.gz") as error:
        read(write(content, "log.csv.gz"))
    assert "\n" not in str(error.value)


def test_value_that_only_looks_like_a_date_is_refused(write: Write) -> None:
    path = write("s,a,n,at\na,x,b,2020-01-01\nb,x,b,2020-W01-1\n")
    with pytest.raises(LogError, match="2020-W01-1") as error:
        count_transitions(path, "s", "a", "n", age="at", half_life="1d")
    assert "\n" not in str(error.value)


def test_moments_of_a_relation_differ_in_any_time_zone_of_its_session() -> None:
    """Clocks go back between the first and the second."""
    connection = duckdb.connect()
    connection.execute("set TimeZone = 'Europe/Prague'")
    rows = [
        f"('{label}', 'x', 1, timestamptz '2024-10-27 0{i}:30:00 UTC')"
        for i, label in enumerate("abc")
    ]
    relation = connection.sql(f'from (values {", ".join(rows)}) as log(s, a, e, "the ""time""")')
    found = read(relation, next_state=None, episode="e", time='the "time"')
    assert found == {("a", "x", "b"): 1, ("b", "x", "c"): 1}


# Several files


def test_files_in_a_list_or_glob_are_one_log(write: Write, tmp_path: Path) -> None:
    one, two = write(TEXT, "logs/one.csv"), write(TEXT.replace("wait", "heat"), "logs/two.csv")
    write(TEXT, "logs/deeper/three.csv")
    both = COUNTS | {("cold", "heat", "mild"): 4, ("mild", "heat", "mild"): 1}
    for given in (
        tmp_path / "logs" / "*.csv",
        str(tmp_path / "logs" / "*.csv"),
        [one, str(two)],
        [f"{one}", two],
    ):
        assert read(given) == both
    assert read(tmp_path / "logs" / "t*.csv") == read(two)
    assert read(tmp_path / "**" / "three.csv") == COUNTS
    assert read([tmp_path / "logs" / "o*.csv", two]) == both


def test_episode_may_go_on_in_the_next_file(write: Write, tmp_path: Path) -> None:
    write("who,day,s,a\n1,1,a,x\n1,2,b,x\n", "1.csv")
    write("who,day,s,a\n1,3,c,x\n", "2.csv")
    found = read(tmp_path / "*.csv", next_state=None, episode="who", time="day")
    assert found == {("a", "x", "b"): 1, ("b", "x", "c"): 1}


@pytest.mark.parametrize("other", ["a,s,n\n1,2,3\n", "s;a;n\n1;2;3\n", "s,a,n,b\n1,2,3,4\n"])
def test_files_of_different_headers_are_refused(write: Write, tmp_path: Path, other: str) -> None:
    write(TEXT, "1.csv")
    write(other, "2.csv")
    with pytest.raises(LogError, match=r"2\.csv: its header differs from that of .*1\.csv"):
        read(tmp_path / "*.csv")


def test_files_of_different_kinds_are_refused(write: Write) -> None:
    with pytest.raises(LogError, match="files of several kinds cannot be one log: csv, json"):
        read([write(TEXT), write("{}", "log.jsonl")])


def test_name_of_a_file_is_no_glob(write: Write) -> None:
    """A file that is there is read, and that alone, even if its name looks like a glob."""
    write(TEXT, "log1.csv")
    assert read(write(HEADER + "a,x,b\nb,x,b\n", "log[1].csv")) == {
        ("a", "x", "b"): 1,
        ("b", "x", "b"): 1,
    }
    assert read(write(HEADER + "a,y,b\nb,y,b\n", "log*.csv")) == {
        ("a", "y", "b"): 1,
        ("b", "y", "b"): 1,
    }


@pytest.mark.parametrize("name", ["log.csv", "log.jsonl", "log.parquet"])
def test_name_of_a_folder_is_no_column(tmp_path: Path, name: str) -> None:
    path = tmp_path / "s=elsewhere" / "n=5" / name
    path.parent.mkdir(parents=True)
    frame = pl.DataFrame(COLUMNS)
    if name == "log.csv":
        frame.write_csv(path)
    elif name == "log.jsonl":
        frame.write_ndjson(path)
    else:
        frame.write_parquet(path)
    assert read(path) == COUNTS


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none.csv", "no such file: .*none.csv"),
        ("none*.csv", r"no such file: .*none\*.csv"),
        ("", r"is a folder; name its files, as in .*/\*.parquet"),
        (
            "log.ods",
            r"log.ods: unknown kind of file; known are .csv, .tsv, .txt, .parquet, .pq, .jsonl, ",
        ),
        ("log", r"log: unknown kind of file"),
    ],
)
def test_what_is_no_log_file_is_refused(
    write: Write, tmp_path: Path, name: str, message: str
) -> None:
    write(TEXT, "log.ods")
    write(TEXT, "log")
    with pytest.raises(PastwiseError, match=message):
        read(f"{tmp_path}{os.sep}{name}")


# Parquet and JSON


@pytest.mark.parametrize("name", ["log.parquet", "log.pq"])
def test_parquet_files(tmp_path: Path, name: str) -> None:
    pq.write_table(pa.table(COLUMNS), tmp_path / name)
    assert read(tmp_path / name) == COUNTS
    assert read([tmp_path / name] * 2) == {key: 2 * number for key, number in COUNTS.items()}


def lines(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize("name", ["log.jsonl", "log.ndjson", "log.json", "log.jsonl.gz"])
def test_json_files(write: Write, name: str) -> None:
    rows = [
        dict(zip(COLUMNS, values, strict=True)) for values in zip(*COLUMNS.values(), strict=True)
    ]
    text = lines(*rows).encode()
    assert read(write(gzip.compress(text) if name.endswith(".gz") else text, name)) == COUNTS
    assert read(write(json.dumps(rows), "array.json")) == COUNTS


@pytest.mark.parametrize(
    ("label", "other"),
    [
        ("007", "1"),
        (7, -8),
        (-7, 8),
        (True, False),
        (0.5, 2.0),
        ("2020-01-01", "2020-01-02"),
        ("2020-01-01 00:00:00", "2020-01-02 00:00:00"),
        ("2020-01-01T00:00:00", "2020-01-02T00:00:00"),
        ("2020-01-01T00:00:00Z", "2020-01-02T00:00:00Z"),
        ("00000000-0000-0000-0000-000000000005", "00000000-0000-0000-0000-000000000006"),
        ("10:30:00", "11:00:00"),
    ],
)
def test_labels_of_json_are_what_they_are(write: Write, label: Any, other: Any) -> None:
    path = write(
        lines(
            *(
                {"s": s, "a": "x", "n": n}
                for s, n in ((label, label), (label, other), (other, other))
            )
        ),
        "log.jsonl",
    )
    counts = count_transitions(path, "s", "a", "n")
    assert sorted(counts.states.labels, key=str) == sorted([label, other], key=str)
    assert {type(found) for found in counts.states.labels} == {type(label)}


def test_key_that_a_json_record_does_not_have_is_a_missing_value(write: Write) -> None:
    rows = [{"s": "a", "a": "x", "n": "b"}, {"s": "b", "a": "x", "n": "b"}, {"s": "b", "a": "x"}]
    with pytest.warns(LogWarning, match="1 record without next state"):
        assert read(write(lines(*rows), "log.jsonl")) == {("a", "x", "b"): 1, ("b", "x", "b"): 1}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("log.parquet", b""),
        ("log.parquet", TEXT.encode()),
        ("log.parquet", np.random.default_rng(1).bytes(3000)),
        ("log.jsonl", TEXT.encode()),
        ("log.jsonl", np.random.default_rng(2).bytes(3000)),
        ("log.jsonl", b'{"s": "a", "a"'),
        ("log.jsonl", lines({"s": "a", "a": "x", "n": "b"}).encode() + b"oops\n"),
        ("log.jsonl", b'{"s": "\xff", "a": "x", "n": "b"}\n'),
    ],
)
def test_bad_parquet_or_json_file_is_refused_in_one_line(
    write: Write, name: str, content: bytes
) -> None:
    path = write(content, name)
    with pytest.raises(LogError, match=rf"{name}: cannot be read") as error:
        read(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "empty|no records"),
        ("1\n2\n", "Expected OBJECT, but got UBIGINT: 1$"),
        (lines({"s": "a", "a": "x", "n": "b"}, {"s": 1, "a": "x", "n": 2}), "different types"),
        (lines({"s": ["a"], "a": "x", "n": ["b"]}), "a label is text, a number or a boolean"),
        (
            lines({"s": {"in": 1}, "a": "x", "n": {"in": 2}}),
            "a label is text, a number or a boolean",
        ),
    ],
)
def test_json_that_is_no_table_of_labels_is_refused(
    write: Write, content: str, message: str
) -> None:
    path = write(content, "log.jsonl")
    with pytest.raises(LogError, match=message):
        read(path)


# Tables in memory


@pytest.mark.parametrize("name", ["sate", "stat"])
def test_missing_column_names_the_near_ones(name: str) -> None:
    log = {"state": ["a"], "status": ["b"], "did": ["x"]}
    with pytest.raises(
        LogError, match=f"the log has no column '{name}'; did you mean 'state' or 'status'"
    ):
        count_transitions(log, name, "did", "status")


def test_missing_column_that_resembles_none_names_all() -> None:
    for missing in (
        {"state": "temperature"},
        {"count": "temperature"},
        {"age": "temperature", "half_life": 1},
    ):
        with pytest.raises(LogError, match="the log has no column 'temperature'; it has s, a, n"):
            read(COLUMNS, **missing)


@pytest.mark.parametrize(
    ("log", "message"),
    [
        (None, "not NoneType"),
        (object(), "not object"),
        (5, "not int"),
        (pl.Series([1]), "not Series"),
    ],
)
def test_what_is_no_table_is_refused(log: Any, message: str) -> None:
    with pytest.raises(
        LogError, match="a log is a path, a mapping of columns, a list of rows"
    ) as error:
        read(log)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"s": ["cold", 5, "mild"]}, "different types"),
        ({"s": [5, "cold", "mild"]}, "different types"),
        ({"s": [True, "cold", "mild"]}, "different types"),
        ({"s": ["cold", "mild"]}, "length"),
        ({"s": np.zeros((3, 2))}, "dimension"),
        ({"s": "cold"}, "s"),
        ({"s": 5}, "s"),
        ({"s": [object()] * 3}, "s"),
    ],
)
def test_bad_column_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(LogError, match=message) as error:
        read(COLUMNS | change)
    assert "\n" not in str(error.value)


def test_column_of_mixed_types_in_pandas_is_named() -> None:
    frame = pa.table({**COLUMNS, "note": ["a", "b", "c"]}).to_pandas()
    frame.loc[1, "s"] = 5
    with pytest.raises(LogError, match=r"different types.*column s"):
        read(frame)


def test_columns_of_any_table_that_are_not_needed_may_hold_anything(write: Write) -> None:
    notes: list[Any] = [5, "five", None]
    frame = pa.table(COLUMNS).to_pandas()
    frame["note"] = notes
    rows = [
        dict(zip(COLUMNS, values, strict=True)) for values in zip(*COLUMNS.values(), strict=True)
    ]
    file = write(
        lines(*(row | {"note": note} for row, note in zip(rows, notes, strict=True))), "log.jsonl"
    )
    for log in (COLUMNS | {"note": notes}, frame, file):
        assert read(log) == COUNTS


def test_column_that_occurs_twice_is_refused_in_one_line() -> None:
    table = pa.table([[1], [2], [3], [4]], names=["s", "a", "n", "n"])
    for twice in (table, pa.table(COLUMNS).to_pandas().set_axis(["s", "n", "n"], axis=1)):
        with pytest.raises(LogError, match=r"'n'") as error:
            read(twice)
        assert "\n" not in str(error.value)


def test_table_without_columns_is_refused() -> None:
    with pytest.raises(LogError, match=r"\w") as error:
        read({})
    assert "\n" not in str(error.value)


def test_index_of_a_pandas_frame_is_no_column() -> None:
    frame = pa.table(COLUMNS).to_pandas()
    frame.index = ["s", "s", "s"]
    assert read(frame) == COUNTS


def test_relation_of_a_database_is_read_where_it_is(tmp_path: Path) -> None:
    connection = duckdb.connect(str(tmp_path / "logs.db"))
    connection.execute("create table log (s text, a text, n text)")
    connection.execute("insert into log values ('cold', 'heat', 'mild'), ('mild', 'wait', 'mild')")
    assert read(connection.table("log")) == {
        ("cold", "heat", "mild"): 1,
        ("mild", "wait", "mild"): 1,
    }
    assert read(connection.sql("from log where a = 'heat' union all from log")) == COUNTS
    connection.close()


def test_whole_numbers_of_a_database_are_whole_however_wide(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "logs.db")) as connection:
        log = connection.sql(
            "select sum(i) as s, 'x' as a, i as n from range(5, 8) as t(i) group by i"
        )
        counts = count_transitions(log, "s", "a", "n")
        assert [(label, type(label)) for label in counts.states.labels] == [
            (i, int) for i in (5, 6, 7)
        ]


def test_database_that_was_closed_is_refused(tmp_path: Path) -> None:
    connection = duckdb.connect(str(tmp_path / "logs.db"))
    relation = connection.sql("select 'a' as s, 'x' as a, 'b' as n")
    connection.close()
    with pytest.raises(LogError, match="the log: cannot be read"):
        read(relation)


@pytest.mark.parametrize(
    ("table", "library"),
    [
        (pa.table(COLUMNS), "pyarrow"),
        (pa.table(COLUMNS).to_pandas(), "pandas"),
        (pl.DataFrame(COLUMNS), "polars"),
        (pl.LazyFrame(COLUMNS), "polars"),
        (COLUMNS, None),
        ("log.csv", None),
    ],
)
def test_library_that_results_may_be_given_in(table: Any, library: str | None) -> None:
    assert library_of(table) == library


def test_database_is_no_library_that_results_may_be_given_in() -> None:
    with duckdb.connect() as connection:
        assert library_of(connection.from_arrow(pa.table(COLUMNS))) is None


def test_records_are_numbered_where_they_have_an_order(write: Write) -> None:
    named = Columns.of("s", "a", "n")
    ordered = [
        write(TEXT),
        COLUMNS,
        pa.table(COLUMNS),
        pl.DataFrame(COLUMNS),
        pa.table(COLUMNS).to_pandas(),
    ]
    for table in ordered:
        plain, numbered = (
            open_table(table, named, numbered=n).collect_schema().names() for n in (False, True)
        )
        assert plain == ["s", "a", "n"]
        assert len(numbered) == 4
    lazy = open_table(pl.LazyFrame(COLUMNS), named, numbered=True)
    assert lazy.collect_schema().names() == ["s", "a", "n"]
