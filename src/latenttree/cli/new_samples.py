"""`NewData`: new samples in the codes of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from latenttree.data.files.csv_batches import coded_texts, text_array
from latenttree.data.schema.new_files import CsvCells
from latenttree.data.schema.rows import Rows
from latenttree.engine.arrays import Floats


@dataclass(frozen=True, eq=False)
class NewData:
    """Samples of a file in the codes of a model.

    Attributes
    ----------
    rows : codes and numbers of the samples.
    cells : the texts of a .csv, else None.
    frame : the columns of a file like a .parquet, else None.
    samples : identifiers of the samples of events, else None.
    notes : what was left out.
    weights : (n,) how often each row counts, where asked for.
    """

    rows: Rows
    cells: CsvCells | None = None
    frame: Any = None
    samples: NDArray[Any] | None = None
    notes: tuple[str, ...] = ()
    weights: Floats | None = None

    def __len__(self) -> int:
        return self.rows.n_samples

    def texts(self) -> CsvCells | None:
        """The cells of a file with named columns, None of others."""
        return self.cells if self.frame is None else _cells_of_frame(self.frame)


def _cells_of_frame(frame: Any) -> CsvCells:
    """The texts that a .csv of the same table would have."""

    def text(value: Any) -> str:
        return "" if value is None or value != value else str(value)

    columns = (text_array(list(map(text, column.to_pylist()))) for column in frame.columns)
    return CsvCells(tuple(frame.column_names), *zip(*map(coded_texts, columns), strict=True))
