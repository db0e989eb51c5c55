"""Daily returns of 452 stocks, and their sectors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

FILES = ("stocks/close_prices.csv.gz", "stocks/info.csv")
JUMP = 0.35
"""Log-returns beyond this are splits, mergers or errors."""


def read_stocks(prices: Path, info: Path) -> tuple[pd.DataFrame, list[str]]:
    """Daily log-returns `(1257, 452)` and the sector of each stock."""
    import pandas as pd

    returns = np.log(pd.read_csv(prices)).diff().iloc[1:].reset_index(drop=True)
    sectors = pd.read_csv(info).set_index("ticker")["sector"]
    return returns, sectors.loc[list(returns.columns)].tolist()


def prepared(returns: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The returns as normal scores, as they are, and with jumps as gaps."""
    from scipy.stats import norm

    return {
        "normal scores": (returns.rank() / (len(returns) + 1)).apply(norm.ppf),
        "as given": returns,
        "gaps": returns.where(returns.abs() <= JUMP),
    }
