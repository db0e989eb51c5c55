"""Which library reads tables larger than memory best: pyarrow, DuckDB or Polars.

    python benchmarks/data_libraries.py FOLDER [--rows 4000000] [--events 20000000]

Writes a CSV, a Parquet and a file of events to FOLDER, and prints seconds and peak memory (of a
process for each measurement, told to keep to 1 GiB where the library has such a setting) of

- columns: the distinct values of 20 columns of labels with their counts, the codes of all rows,
  and 15 exact quantiles of 4 columns of numbers;
- events: the distinct pairs of sample and code, sorted, as a CSR matrix.

What a library cannot do beyond memory is done by the code of `latenttree.data`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

N_LABELS, N_NUMBERS, LIMIT = 20, 4, "1GB"
SHARES = np.arange(1, 16) / 16


def write_files(folder: Path, n_rows: int, n_events: int) -> None:
    """The files that are read, about 90 bytes of CSV a row."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    def table(n: int, rng: np.random.Generator) -> Any:
        words = np.array([f"w{i:03d}" for i in range(300)])
        columns = {f"c{j}": words[rng.integers(0, 2 + 12 * j, n)] for j in range(N_LABELS)}
        columns |= {f"x{j}": rng.normal(size=n).round(6) for j in range(N_NUMBERS)}
        return pa.table(columns)

    def events(n: int, rng: np.random.Generator) -> Any:
        codes = np.array([f"D{i:05d}" for i in range(20_000)])
        numbers = (rng.random(n) ** 3 * len(codes)).astype(np.int64)
        return pa.table({"patient": rng.integers(0, n_events // 50, n), "code": codes[numbers]})

    for name, make, n in (("table", table, n_rows), ("events", events, n_events)):
        rng, step = np.random.default_rng(0), 1 << 19
        schema = make(1, rng).schema
        with (
            csv.CSVWriter(folder / f"{name}.csv", schema) as text,
            parquet.ParquetWriter(folder / f"{name}.parquet", schema) as columns,
        ):
            for start in range(0, n, step):
                part = make(min(step, n - start), rng)
                text.write(part)
                columns.write(part)


# ---- pyarrow -------------------------------------------------------------------------------


def arrow_batches(path: Path) -> Any:
    """Record batches; all columns of a CSV are text."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    if path.suffix == ".parquet":
        return parquet.ParquetFile(path).iter_batches(1 << 17)
    names = path.open().readline().replace('"', "").strip().split(",")
    return csv.open_csv(
        path,
        csv.ReadOptions(block_size=1 << 22),
        convert_options=csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
    )


def arrow_columns(path: Path, folder: Path) -> Any:
    """Dictionaries grow with the batches; quantiles by `streaming.quantiles`."""
    import pyarrow as pa
    from pyarrow import compute

    from latenttree.data.streaming.quantiles import range_of, streamed_edges

    positions: dict[str, dict[str, int]] = {f"c{j}": {} for j in range(N_LABELS)}
    codes: dict[str, list[Any]] = {name: [] for name in positions}
    numbers: dict[str, list[Any]] = {f"x{j}": [] for j in range(N_NUMBERS)}
    with tempfile.TemporaryFile(dir=folder) as file:
        for batch in arrow_batches(path):
            for name, position in positions.items():
                coded = batch.column(name).dictionary_encode()
                new = [position.setdefault(v, len(position)) for v in coded.dictionary.to_pylist()]
                file.write(np.asarray(new, np.int16)[coded.indices.to_numpy()].data)
                codes[name].append(batch.num_rows)
            for name, parts in numbers.items():
                values = compute.cast(batch.column(name), pa.float64()).to_numpy()
                parts.append((file.tell(), len(values)))
                file.write(values.data)

        def parts_of(name: str) -> Callable[[], Any]:
            def parts() -> Any:
                for at, n in numbers[name]:
                    file.seek(at)
                    yield np.frombuffer(file.read(8 * n)), None

            return parts

        edges = [streamed_edges(parts_of(name), range_of(parts_of(name))) for name in numbers]
    return [len(position) for position in positions.values()], np.concatenate(edges)


def arrow_events(path: Path, folder: Path) -> Any:
    """Dictionaries of both columns grow with the batches; pairs by `streaming.pairs`."""
    from latenttree.data.streaming.pairs import PairCollector
    from latenttree.data.streaming.scratch import Arrays, ScratchFolder

    positions: list[dict[Any, int]] = [{}, {}]
    pairs = PairCollector(ScratchFolder(folder))
    for batch in arrow_batches(path):
        numbers = []
        for column, position in zip(batch.columns, positions, strict=True):
            coded = column.dictionary_encode()
            new = [position.setdefault(v, len(position)) for v in coded.dictionary.to_pylist()]
            numbers.append(np.asarray(new, np.int64)[coded.indices.to_numpy()])
        pairs.add(*numbers)
    distinct = pairs.sorted(len(positions[0]), tuple(map(str, positions[1])))
    matrix = distinct.matrix(Arrays(0, folder))
    return matrix.shape, matrix.nnz


# ---- DuckDB --------------------------------------------------------------------------------


def duck_source(path: Path, folder: Path) -> tuple[Any, str]:
    """A connection to a database on disk, and what to select from."""
    import duckdb

    connection = duckdb.connect(str(folder / "duck.db"))
    connection.execute(f"set memory_limit='{LIMIT}'; set temp_directory='{folder}/duck.tmp'")
    if path.suffix == ".parquet":
        return connection, f"read_parquet('{path}')"
    read = f"read_csv('{path}', header=true, all_varchar=true, auto_detect=false, delim=',', "
    names = path.open().readline().replace('"', "").strip().split(",")
    types = ", ".join(f"'{name}': 'VARCHAR'" for name in names)
    connection.execute(f"create table t as from {read} quote='\"', columns={{{types}}})")
    return connection, "t"


def duck_columns(path: Path, folder: Path) -> Any:
    """One GROUP BY a column, ENUM types for the codes, ORDER BY for the quantiles."""
    connection, source = duck_source(path, folder)
    sizes = []
    for j in range(N_LABELS):
        query = f"select c{j}, count(*) from {source} group by c{j} order by c{j}"
        labels = [label for label, _ in connection.execute(query).fetchall()]
        sizes.append(len(labels))
        values = ", ".join(f"'{label}'" for label in labels)
        connection.execute(f"create type e{j} as enum ({values})")
    chosen = ", ".join(f"enum_code(c{j}::e{j})" for j in range(N_LABELS))
    with tempfile.TemporaryFile(dir=folder) as file:
        for batch in connection.sql(f"select {chosen} from {source}").to_arrow_reader(1 << 17):
            for column in batch.columns:
                file.write(column.to_numpy().astype(np.int16).data)
    ((n,),) = connection.execute(f"select count(*) from {source}").fetchall()
    at = np.ceil(SHARES * n).astype(np.int64) - 1
    edges = []
    for j in range(N_NUMBERS):
        start = 0
        query = f"select x{j}::double from {source} order by 1"
        for batch in connection.sql(query).to_arrow_reader(1 << 17):
            inside = at[(at >= start) & (at < start + batch.num_rows)] - start
            edges.append(batch.column(0).to_numpy()[inside])
            start += batch.num_rows
    return sizes, np.concatenate(edges)


def duck_events(path: Path, folder: Path) -> Any:
    """SELECT DISTINCT with codes by position; patients in the order of their numbers."""
    connection, source = duck_source(path, folder)
    for name in ("patient", "code"):
        query = f"select {name}, row_number() over (order by {name}) - 1 as i from "
        connection.execute(
            f"create table {name}s as {query} (select distinct {name} from {source})"
        )
    query = (
        f"select distinct p.i::int as r, c.i::int as c from {source} t join patients p on "
        "t.patient = p.patient join codes c on t.code = c.code order by 1, 2"
    )
    n_rows, n_codes = (
        connection.execute(f"select count(*) from {name}s").fetchall()[0][0]
        for name in ("patient", "code")
    )
    counts, nnz = np.zeros(n_rows, np.int64), 0
    with tempfile.TemporaryFile(dir=folder) as file:
        for batch in connection.sql(query).to_arrow_reader(1 << 20):
            rows, codes = (column.to_numpy() for column in batch.columns)
            counts += np.bincount(rows, minlength=n_rows)
            file.write(codes.data)
            nnz += len(codes)
    return (n_rows, n_codes), nnz


# ---- Polars --------------------------------------------------------------------------------


def polars_source(path: Path) -> Any:
    """A lazy frame; all columns of a CSV are text."""
    import polars as pl

    if path.suffix == ".parquet":
        return pl.scan_parquet(path)
    return pl.scan_csv(path, infer_schema=False)


def polars_columns(path: Path, folder: Path) -> Any:
    """Streaming group_by a column, casts to Enum for the codes, sort for the quantiles."""
    import polars as pl

    source, sizes, enums = polars_source(path), [], []
    for j in range(N_LABELS):
        counts = source.group_by(f"c{j}").len().collect(engine="streaming").sort(f"c{j}")
        sizes.append(len(counts))
        enums.append(pl.col(f"c{j}").cast(pl.Enum(counts[f"c{j}"].to_list())).to_physical())
    source.select(enums).sink_ipc(folder / "codes.arrow")
    n = source.select(pl.len()).collect(engine="streaming").item()
    at = np.ceil(SHARES * n).astype(np.int64) - 1
    edges = [
        source.select(pl.col(f"x{j}").cast(pl.Float64).sort().gather(at))
        .collect(engine="streaming")[f"x{j}"]
        .to_numpy()
        for j in range(N_NUMBERS)
    ]
    return sizes, np.concatenate(edges)


def polars_events(path: Path, folder: Path) -> Any:
    """Streaming unique and sort of patients and codes as they are written."""
    import polars as pl

    source = polars_source(path).select("patient", "code")
    pairs = source.unique().sort("patient", "code")
    pairs.sink_ipc(folder / "pairs.arrow")
    found = pl.scan_ipc(folder / "pairs.arrow")
    sizes = [
        found.select(pl.col(name).n_unique()).collect(engine="streaming").item()
        for name in ("patient", "code")
    ]
    return tuple(sizes), found.select(pl.len()).collect(engine="streaming").item()


# ---- measuring -----------------------------------------------------------------------------

MEASURED: dict[str, Callable[[Path, Path], Any]] = {
    f"{library} {what}": globals()[f"{library}_{what}"]
    for what in ("columns", "events")
    for library in ("arrow", "duck", "polars")
}


def measure(name: str, path: Path) -> None:
    """Print a line: name, file, seconds, peak memory, and a digest of the answer."""
    from latenttree.engine.memory import peak_memory

    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        start = time.perf_counter()
        first, second = MEASURED[name](path, Path(folder))
        seconds = time.perf_counter() - start
    digest = second if np.isscalar(second) else f"{np.sum(second):.17g}"
    shape = first if len(first) == 2 else f"{sum(first)} labels"
    peak = (peak_memory() or 0) / 2**20
    print(
        f"{name:15} {path.name:15} {seconds:8.1f} s {peak:8.0f} MiB   {shape} {digest}", flush=True
    )


def main() -> None:
    """Write the files and measure every library in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--events", type=int, default=20_000_000)
    parser.add_argument("--only", nargs=2, metavar=("NAME", "FILE"))
    arguments = parser.parse_args()
    if arguments.only:
        measure(arguments.only[0], arguments.folder / arguments.only[1])
        return
    write_files(arguments.folder, arguments.rows, arguments.events)
    for name in MEASURED:
        for suffix in (".csv", ".parquet"):
            file = ("table" if "columns" in name else "events") + suffix
            command = [sys.executable, __file__, str(arguments.folder), "--only", name, file]
            subprocess.run(command, check=False)


if __name__ == "__main__":
    main()
