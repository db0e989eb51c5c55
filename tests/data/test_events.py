"""Event tables: hand-made ones, every form they come in, and what is wrong with bad ones."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.data.refusals import Refused, refused, refusing
from tests.reference.events import samples_by_code

from latenttree.data.events.read import Events, read_events
from latenttree.errors import DataError

#          250.1  250.2  401  008
#   p1       x             x
#   p2              x      x
#   p3                          x
#   p4       x      x           x
ROWS = [
    ("p1", "250.1", "2020-01-01"),
    ("p1", "401", "2020-06-30"),
    ("p1", "401", "2021-02-01"),
    ("p2", "250.2", "2020-12-31"),
    ("p2", "401", "2019-01-01"),
    ("p3", "008", "2020-03-01"),
    ("p4", "250.1", "2021-01-01"),
    ("p4", "250.2", "2021-01-02"),
    ("p4", "008", "2021-01-03"),
]
SAMPLES, CODES, TIMES = (list(column) for column in zip(*ROWS, strict=True))
MATRIX = [[0, 1, 0, 1], [0, 0, 1, 1], [1, 0, 0, 0], [1, 1, 1, 0]]  # 008, 250.1, 250.2, 401
NAMES = ("008", "250.1", "250.2", "401")


def frame(library: Any = pd, **names: str) -> Any:
    columns = {"patient_id": SAMPLES, "icd9": CODES, "date": TIMES}
    return library.DataFrame({names.get(name, name): x for name, x in columns.items()})


def dense(events: Events) -> list[list[int]]:
    return events.matrix.toarray().astype(int).tolist()


def check_rows(events: Events) -> None:
    """The events of ROWS, all of them."""
    assert events.names == NAMES
    assert events.samples.tolist() == ["p1", "p2", "p3", "p4"]
    assert dense(events) == MATRIX
    assert events.groups is None
    assert events.report["events"] == 9
    assert events.report["duplicates"] == 1
    assert events.report["pairs"] == 8
    assert events.matrix.has_sorted_indices


# ---- forms ----------------------------------------------------------------------------


@pytest.mark.parametrize("library", [pd, pl])
def test_frames(library: Any) -> None:
    check_rows(read_events(frame(library)))


def test_arrow_dict_and_arrays() -> None:
    check_rows(read_events(pa.table({"patient": SAMPLES, "code": CODES})))
    check_rows(read_events({"sample": np.array(SAMPLES), "code": CODES}))
    check_rows(read_events((SAMPLES, CODES)))
    check_rows(read_events((np.array(SAMPLES), np.array(CODES, dtype=object), TIMES)))


def test_categorical_columns() -> None:
    check_rows(read_events(frame().astype("category")))


def write(path: Path, delimiter: str = ",") -> Path:
    openers: dict[str, Callable[..., Any]] = {
        ".gz": gzip.open,
        ".xz": lzma.open,
        ".bz2": bz2.open,
    }
    opener = openers.get(path.suffix, open)
    with opener(path, "wt") as file:
        file.write(delimiter.join(["patient_nbr", "icd9", "date"]) + "\n")
        for row in ROWS:
            file.write(delimiter.join(row) + "\n")
    return path


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".bz2"])
def test_csv(tmp_path: Path, suffix: str) -> None:
    check_rows(read_events(write(tmp_path / f"events.csv{suffix}")))


def test_other_delimiters(tmp_path: Path) -> None:
    check_rows(read_events(str(write(tmp_path / "events.tsv", "\t"))))
    semicolons = write(tmp_path / "events.csv", ";")
    check_rows(read_events(semicolons, delimiter=";"))
    words = "separated by ';', not ','; pass delimiter=';'"
    with refusing(refused(words, path=str(semicolons), option="delimiter", value=",")):
        read_events(semicolons)


def test_parquet(tmp_path: Path) -> None:
    pq.write_table(pa.table({"patient": SAMPLES, "code": CODES}), tmp_path / "events.parquet")
    check_rows(read_events(tmp_path / "events.parquet"))
    (tmp_path / "no.parquet").write_bytes(b"no parquet here")
    with refusing(refused("cannot read no.parquet", path=str(tmp_path / "no.parquet"))):
        read_events(tmp_path / "no.parquet")


def test_codes_of_a_file_stay_as_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("id,code\n1,008\n2,8\n3,250.10\n4,250.1\n5, 8 \n\n")
    events = read_events(path, min_count=1)
    assert events.names == ("008", "250.1", "250.10", "8")
    assert events.report["events"] == 5
    assert events.matrix.toarray()[:, 3].tolist() == [0, 1, 0, 0, 1]


def test_numbers_as_codes_and_samples() -> None:
    events = read_events(([7, 9, 7], np.array([250.0, 8.0, 3.5])), min_count=1)
    assert events.names == ("250", "3.5", "8")
    assert events.samples.tolist() == [7, 9]
    assert events.samples.dtype.kind == "i"
    assert any("decimal numbers" in note for note in events.notes)


def test_one_text_is_one_sample_whatever_its_type() -> None:
    ids = np.array([1, "1", 1.0, 2], dtype=object)
    assert read_events((ids, list("abcd")), min_count=1).samples.tolist() == [1, 2]


def test_large_integers_with_gaps_stay_exact() -> None:
    ids = [2**60, None, 2**60 + 1]
    events = read_events(pl.DataFrame({"id": ids, "code": list("abc")}), min_count=1)
    assert events.samples.tolist() == [2**60, 2**60 + 1]
    assert events.report["incomplete"] == 1


def test_incomplete_events_are_counted() -> None:
    codes = ["a", None, float("nan"), "", " ?", "NA", "b", "b"]
    ids = [1, 1, 1, 1, 1, 1, 2, None]
    events = read_events(pd.DataFrame({"id": ids, "code": codes}), min_count=1)
    assert events.report["incomplete"] == 6
    assert dense(events) == [[1, 0], [0, 1]]
    assert "6 events without a sample or a code left out." in events.notes


# ---- columns --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [
        {"patient_id": "Person ID", "icd9": "Diagnosis-Code"},
        {"patient_id": "subject_id", "icd9": "what"},
        {"patient_id": "who", "icd9": "phecode"},
        {"patient_id": "who", "icd9": "what"},
    ],
)
def test_columns_are_guessed(names: dict[str, str]) -> None:
    check_rows(read_events(frame(**names)))
    check_rows(read_events(frame(**names)[["date", *names.values()]]))


def test_columns_by_name() -> None:
    table = frame().rename(columns={"patient_id": "code", "icd9": "id"})
    check_rows(read_events(table, sample="code", code="id"))
    check_rows(read_events(table, sample="code"))
    note = read_events(table, sample="code", code="id").notes[0]
    assert note == "9 events: samples from column 'code', codes from 'id'."


@pytest.mark.parametrize(
    ("option", "column"), [("sample", "who"), ("code", "what"), ("time", "when")]
)
def test_columns_that_are_not_there(option: str, column: str) -> None:
    words = "the columns are 'patient_id', 'icd9', 'date'"
    with refusing(refused(words, column=column, option=option, value=column, options=(option,))):
        read_events(frame(), **{option: column})


def test_one_column_for_samples_and_codes() -> None:
    with refusing(refused("must be different columns", value=("icd9", "icd9", None))):
        read_events(frame(), sample="icd9", code="icd9")


def test_too_few_columns() -> None:
    with refusing(refused("one of codes", option="code", value=("patient_id",))):
        read_events(frame()[["patient_id"]])
    words, options = "among 'patient_id', 'icd9'", ("since", "until", "time")
    with refusing(refused(words, option="time", options=options)):
        read_events(frame()[["patient_id", "icd9"]], since=3)


# ---- times ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("since", "until", "left"),
    [
        ("2020-01-01", "2020-12-31", 4),
        ("2020", "2020", 4),
        ("2020-06", None, 6),
        (None, "2019-12-31 23:59", 1),
        (date(2021, 1, 1), np.datetime64("2021-01-02"), 2),
        (datetime(2021, 1, 1), datetime(2021, 1, 2, 12, tzinfo=UTC), 2),
    ],
)
def test_time_spans(since: Any, until: Any, left: int) -> None:
    tables = [frame(), frame(pl), {"id": SAMPLES, "code": CODES, "time": TIMES}]
    tables.append(frame().assign(date=pd.to_datetime(frame()["date"])))
    tables.append(frame().assign(date=pd.to_datetime(frame()["date"], utc=True)))
    tables.append(frame(pl).with_columns(pl.col("date").str.to_date()))
    for table in tables:
        patients = ["p1", "p2", "p3", "p4"]
        events = read_events(table, since=since, until=until, min_count=1, all_samples=patients)
        assert events.report["outside_time"] == 9 - left
        assert events.report["pairs"] + events.report["duplicates"] == left


def test_the_last_day_counts_whole() -> None:
    table = {"id": [1, 2], "code": ["a", "b"], "time": ["2020-12-31 23:00", "2021-01-01 00:00"]}
    found = read_events(table, until="2020-12-31", all_samples=[1, 2], min_count=1)
    assert found.names == ("a",)


def test_times_are_numbers_too(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("id,code,age\n1,a,30\n2,b,40.5\n3,a,\n3,b,41\n")
    for bounds in ({"since": 31, "until": 41}, {"since": "31", "until": "41"}):
        events = read_events(path, **bounds, all_samples=[1, 2, 3], min_count=1)
        assert events.report["outside_time"] == 2  # one of them without a time
        assert dense(events) == [[0], [1], [1]]


@pytest.mark.parametrize(
    ("times", "since", "expected"),
    [
        ([1, 2], "2020-01-01", refused("holds numbers", option="since", value="2020-01-01")),
        (["2020-01-01", "2020-01-02"], 3, refused("holds dates", option="since", value=3)),
        (["2020-01-01", "soon"], "2020", refused("neither a number nor", value="soon")),
        (["2020-01-01", "2020-01-02"], "soon", refused("holds dates", option="since")),
        (["31.12.2020", "2020-01-02"], "2020", refused("like 2020-12-31", value="31.12.2020")),
    ],
)
def test_wrong_times(times: list[Any], since: Any, expected: Refused) -> None:
    with refusing(expected, column="time"):
        read_events(([1, 2], ["a", "b"], times), since=since)


# ---- roll-up --------------------------------------------------------------------------

PARENTS = {"250.1": "diabetes", "250.2": "diabetes", "401": ["heart", "pressure"]}


def pairs_frame(mapping: dict[str, Any]) -> pd.DataFrame:
    rows = [(c, t) for c, ts in mapping.items() for t in (ts if isinstance(ts, list) else [ts])]
    return pd.DataFrame(rows, columns=["code", "parent"])


def test_roll_up(tmp_path: Path) -> None:
    table = pairs_frame(PARENTS)
    table.to_csv(tmp_path / "map.csv", index=False)
    table.assign(kind="ICD9").to_csv(tmp_path / "wide.csv", index=False)
    wide = (tmp_path / "wide.csv", "code", "parent")
    for source in (PARENTS, table, pl.from_pandas(table), tmp_path / "map.csv", wide):
        events = read_events(frame(), roll_up=source)
        assert events.names == ("heart", "pressure")  # all three samples have diabetes
        assert events.samples.tolist() == ["p1", "p2", "p4"]
        assert dense(events) == [[1, 1], [1, 1], [0, 0]]
        assert events.report["everywhere"]["examples"] == {"diabetes": 3}
        outside = events.report["outside_roll_up"]
        assert (outside["codes"], outside["pairs"]) == (1, 2)
        assert outside["examples"] == {"008": 2}
        assert events.report["samples_without"] == 1


def test_roll_ups_one_after_the_other() -> None:
    steps = [{"250.1": "250", "250.2": "250", "401": "401"}, {"250": "metabolic", "x": "y"}]
    events = read_events(frame(), roll_up=steps, all_samples=["p3", "p1", "p2", "p4"])
    assert events.names == ("metabolic",)
    assert dense(events) == [[0], [1], [1], [1]]
    assert events.report["outside_roll_up"]["examples"] == {"008": 2, "401": 2}


def test_zeros_that_were_lost_are_pointed_out() -> None:
    codes = ["8", "250.1", "250.1", "99"]
    events = read_events(
        ([1, 2, 3, 3], codes),
        roll_up={"008": "gut", "250.1": "d", "250.10": "e"},
        min_count=1,
        all_samples=[1, 2, 3],
    )
    assert events.report["outside_roll_up"]["alike"] == {"8": "008"}
    assert any("like '8' from '008'" in note for note in events.notes)


# ---- groups ---------------------------------------------------------------------------

GROUPS = {"250.1": "metabolic", "250.2": "metabolic", "401": "heart", "140": "cancer"}


def test_groups() -> None:
    table = pd.DataFrame({"c": list(GROUPS), "g": list(GROUPS.values())})
    for source in (GROUPS, table):
        events = read_events(frame(), groups=source, all_samples=["p1", "p2", "p3", "p4"])
        assert events.names == ("250.1", "250.2", "401")
        assert events.groups is not None
        assert {g: c.tolist() for g, c in events.groups.items()} == {
            "metabolic": [0, 1],
            "heart": [2],
        }
        assert dense(events) == [row[1:] for row in MATRIX]
        assert events.report["outside_groups"]["examples"] == {"008": 2}
        assert events.report["empty_groups"] == ("cancer",)
        assert "1 group without a code that is left: 'cancer'." in events.notes
        assert repr(events) == "Events(4 samples x 3 codes in 2 groups)"


def test_the_table_of_groups() -> None:
    table = read_events(frame(), groups=GROUPS, all_samples=["p1", "p2", "p3", "p4"]).table()
    assert table.names == ("metabolic", "heart")
    assert table.n_samples == 4
    assert any("008" in note for note in table.notes)


def test_the_table_of_codes() -> None:
    table = read_events(frame()).table()
    assert table.kind == "sparse_binary"
    assert table.names == NAMES
    assert table.matrix is not None
    assert table.matrix.toarray().tolist() == MATRIX


def test_a_group_below_support_is_empty() -> None:
    codes = ["a", "a", "b", "c", "c"]
    events = read_events(([1, 2, 1, 2, 3], codes), groups={"a": "A", "b": "B", "c": "C"})
    assert events.report["rare"]["examples"] == {"b": 1}
    assert events.report["empty_groups"] == ("B",)


def test_a_code_has_one_group() -> None:
    words = r"in 2 groups \('heart', 'pressure'\)"
    with refusing(refused(words, option="groups", value="401", options=("groups", "roll_up"))):
        read_events(frame(), groups=PARENTS)
    repeated = pd.DataFrame({"code": ["401", "401", "008"], "group": ["h", "h", "g"]})
    assert read_events(frame(), groups=repeated).names == ("008", "401")


def test_codes_that_do_not_occur_may_be_in_several_groups() -> None:
    events = (["p", "p", "q"], ["a", "b", "b"])
    twice = {"a": "A", "b": "B", "A07.8": ["A", "B", "C"]}
    found = read_events(events, groups=twice, min_count=1, codes=["a", "b"])
    assert found.groups is not None
    assert list(found.groups) == ["A", "B"]
    with refusing(refused("in 3 groups", option="groups", value="A07.8")):
        read_events(events, groups=twice, codes=["a", "A07.8"])


def test_all_groups_empty() -> None:
    with pytest.raises(DataError, match=r"no code is left.*4 codes outside the map groups"):
        read_events(frame(), groups={"140": "cancer"})


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({}, refused("a map without any code")),
        ({"a": None}, refused("a map without any code")),
        (
            pd.DataFrame({"a": ["1"], "b": ["2"], "c": ["3"]}),
            refused("not two; name them", value=("a", "b", "c")),
        ),
        (
            (pd.DataFrame({"a": ["1"]}), "a", "b"),
            refused("the columns are 'a'", column="b", value="b"),
        ),
        (("map.csv", "a"), refused("a tuple of 2", value=2)),
        ("missing.csv", refused("no file", path="missing.csv")),
        (7, refused("roll_up is of type int; pass a mapping", value="int")),
    ],
)
def test_wrong_maps(source: Any, expected: Refused) -> None:
    with refusing(expected, option="roll_up"):
        read_events(frame(), roll_up=source)


# ---- samples and codes that are requested ---------------------------------------------


def test_all_samples() -> None:
    wanted = ["p9", "p4", "p1"]
    events = read_events(frame(), all_samples=wanted, min_count=1)
    assert events.samples.tolist() == wanted
    assert dense(events) == [[0] * 4, MATRIX[3], MATRIX[0]]
    assert events.report["outside_samples"] == 3


def test_all_samples_of_another_type(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("id,code\n1,a\n2,b\n")
    assert dense(read_events(path, all_samples=np.array([2, 3, 1]), min_count=1)) == [
        [0, 1],
        [0, 0],
        [1, 0],
    ]


def test_new_events_in_the_columns_of_old_ones() -> None:
    old = read_events(frame(), groups={**GROUPS, "008": "gut"})
    new = read_events(
        ([5, 5, 6], ["401", "v70", "401"]), codes=old.names, groups={**GROUPS, "008": "gut"}
    )
    assert new.names == old.names
    assert dense(new) == [[0, 0, 0, 1]] * 2
    assert new.report["outside_groups"]["examples"] == {"v70": 1}
    assert new.groups is not None
    assert old.groups is not None
    assert {g: c.tolist() for g, c in new.groups.items()} == {
        g: c.tolist() for g, c in old.groups.items()
    }
    plain = read_events(([5, 5, 6], ["401", "v70", "401"]), codes=["401", "zz", "008"])
    assert plain.report["outside_codes"]["examples"] == {"v70": 1}
    assert dense(plain) == [[1, 0, 0]] * 2


def test_min_count() -> None:
    events = read_events(
        (list("abcd"), ["x", "x", "x", "y"]), min_count=2, all_samples=list("abcd")
    )
    assert events.names == ("x",)
    assert events.report["rare"] == {"codes": 1, "pairs": 1, "examples": {"y": 1}, "alike": {}}
    assert "1 code in fewer than 2 samples left out, 1 occurrence in samples: 'y' (1)." in (
        events.notes
    )


# ---- bad input ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (7, refused("pass a DataFrame", value="int")),
        (np.zeros((3, 2)), refused("pass a DataFrame", value="ndarray")),
        (([1, 2], ["a"]), refused("differ in length", value={"sample": 2, "code": 1})),
        ((np.zeros((2, 2)), ["a", "b"]), refused("has shape", column="sample", value=(2, 2))),
        (([1], [["a"]]), refused("has shape", column="code", value=(1, 1))),
        (([], []), refused("no code is left.* 0 events")),
        (([1, 2], [None, None]), refused("2 events without a sample or a code")),
        (([1, 2], ["a", "b"]), refused("no code is left.*2 codes in fewer than 2")),
        (([1, 2], ["a", "a"]), refused("no code is left.*1 code in all samples")),
        ("nowhere.csv", refused("no file", path="nowhere.csv")),
        (pl.LazyFrame({"a": [1]}), refused("call .collect", value="LazyFrame")),
        ((np.array([{}, []], dtype=object), ["a", "b"]), refused("unhashable", column="sample")),
    ],
)
def test_bad_events(events: Any, expected: Refused) -> None:
    with refusing(expected):
        read_events(events)


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("min_count", 0, "must be a whole number >= 1"),
        ("min_count", 1.5, "must be a whole number >= 1"),
        ("codes", ["a", "a"], "must be a list of different codes"),
        ("codes", "ab", "must be a list of different codes"),
    ],
)
def test_bad_options(option: str, value: Any, words: str) -> None:
    with refusing(refused(words, option=option, value=value, options=(option,))):
        read_events(([1, 2], ["a", "b"]), **{option: value})


def test_bad_samples() -> None:
    events = ([1, 2], ["a", "b"])
    with refusing(refused("more than once", option="all_samples", value=1)):
        read_events(events, all_samples=[1, 1])
    with refusing(refused("must be a list", option="all_samples", value=(0,))):
        read_events(events, all_samples=[])
    with refusing(refused("no code is left.*2 events of samples")):
        read_events(events, all_samples=[3])


def test_codes_that_leave_nothing() -> None:
    with refusing(refused("no code is left.*2 codes outside codes=")):
        read_events(([1, 2], ["a", "b"]), codes=["z"])
    with refusing(refused("which groups does not", option="codes", value="a")):
        read_events(([1], ["a"]), codes=["a"], groups={"b": "g"})


DAMAGED = refused("is cut or damaged")


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("e.csv", b"", refused("is empty")),
        ("e.csv", b"\n1,2\n", refused("starts with an empty line", line=1)),
        ("e.csv", b"id,code\n1\n", refused("the first line has 2", line=2, value=1)),
        ("e.csv", b"id,code\n1,\xff\n", refused("not UTF-8 text", value=0xFF)),
        ("e.csv", b"id,code\n", refused("no code is left.* 0 events")),
        ("e.csv.gz", gzip.compress(b"id,code\n1,a\n" * 99, mtime=0)[:-20], DAMAGED),
        ("e.csv.xz", lzma.compress(b"id,code\n1,a\n" * 99)[:-20], DAMAGED),
        ("e.csv.bz2", bz2.compress(b"id,code\n1,a\n" * 99)[:-20], DAMAGED),
        ("e.csv.bz2", b"BZh9" + b"x" * 99, DAMAGED),
        ("e.ods", b"PK", refused("known are .csv")),
    ],
)
def test_bad_files(tmp_path: Path, name: str, content: bytes, expected: Refused) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with refusing(expected, path=str(path)):
        read_events(path)


# ---- against sets and loops -----------------------------------------------------------

codes = st.sampled_from("abcde")
event_lists = st.lists(st.tuples(st.sampled_from("12345"), codes), min_size=1, max_size=30)
parents = st.dictionaries(codes, st.lists(st.sampled_from("abxy"), min_size=1, max_size=3))


@given(
    event_lists,
    st.none() | parents,
    st.none() | st.sets(st.sampled_from("abcxy")),
    st.integers(1, 3),
)
def test_equals_sets_and_loops(
    pairs: list[tuple[str, str]],
    roll_up: dict[str, list[str]] | None,
    allowed: set[str] | None,
    min_count: int,
) -> None:
    expected = samples_by_code(pairs, roll_up, allowed, min_count)
    samples, found_codes = zip(*pairs, strict=True)
    groups = None if allowed is None else {code: code.upper() for code in allowed}
    try:
        events = read_events(
            (list(samples), list(found_codes)),
            roll_up=roll_up,
            groups=groups,
            min_count=min_count,
        )
    except DataError:
        assert not expected
        return
    matrix = events.matrix.toarray()
    found = {
        name: set(events.samples[matrix[:, j] > 0].tolist()) for j, name in enumerate(events.names)
    }
    assert found == expected
