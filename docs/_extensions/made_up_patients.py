"""A table of made-up patients, `patients.csv`: text, numbers, counts and gaps for some pages.

Five hidden variables with two states stand in a tree: age is behind metabolism, infection and
smoking, metabolism behind the heart.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

HIDDEN = {
    "old": (None, 0.45, 0.45),
    "metabolic": ("old", 0.2, 0.6),
    "heart": ("metabolic", 0.1, 0.6),
    "infected": ("old", 0.15, 0.5),
    "smoker": ("old", 0.55, 0.15),
}
"""Of each hidden variable its parent, and its probability without and with the parent."""

NUMBERS = {
    "age": ("old", 36, 68, 8.0),
    "bmi": ("metabolic", 23, 31, 2.5),
    "cholesterol": ("metabolic", 4.6, 6.4, 0.6),
    "ejection": ("heart", 62, 44, 6.0),
    "crp": ("infected", 6, 38, 8.0),
    "temperature": ("infected", 36.7, 38.3, 0.5),
    "lung_capacity": ("smoker", 4.4, 3.4, 0.5),
}
"""Of each number its hidden variable, its mean in both states and its standard deviation."""

ANSWERS = {
    "glasses": ("old", 0.3, 0.9),
    "retired": ("old", 0.03, 0.8),
    "hearing_aid": ("old", 0.02, 0.35),
    "diabetes": ("metabolic", 0.03, 0.5),
    "hypertension": ("metabolic", 0.15, 0.75),
    "infarction": ("heart", 0.01, 0.45),
    "chest_pain": ("heart", 0.1, 0.8),
    "cough": ("infected", 0.15, 0.8),
    "antibiotics": ("infected", 0.03, 0.65),
    "nicotine_test": ("smoker", 0.04, 0.85),
    "bronchitis": ("smoker", 0.08, 0.5),
}
"""Of each question its hidden variable, and the probability of "yes" in both states."""


def patients(n: int = 1500, seed: int = 0) -> pd.DataFrame:
    """A row for each patient; 5% of the cells are empty."""
    rng = np.random.default_rng(seed)
    states: dict[str | None, np.ndarray] = {None: np.zeros(n, dtype=bool)}
    for name, (parent, without, with_) in HIDDEN.items():
        states[name] = rng.random(n) < np.where(states[parent], with_, without)
    columns = {
        name: rng.normal(np.where(states[parent], high, low), sd).round(1)
        for name, (parent, low, high, sd) in NUMBERS.items()
    }
    for name, (parent, low, high) in ANSWERS.items():
        yes = rng.random(n) < np.where(states[parent], high, low)
        columns[name] = np.where(yes, "yes", "no")
    columns["visits"] = rng.poisson(np.where(states["infected"], 4.0, 0.8))
    frame = pd.DataFrame(columns)[sorted(columns)]
    return frame.mask(rng.random(frame.shape) < 0.05)


def write_patients(path: Path) -> None:
    """Write the table, unless it is there as it should be, so that pages are not run again."""
    text = patients().to_csv(index=False)
    if not path.exists() or path.read_text(encoding="utf8") != text:
        path.write_text(text, encoding="utf8")
