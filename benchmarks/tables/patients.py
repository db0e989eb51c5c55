"""Patients: by number of samples, groups of codes; by number of variables, binary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.data.rare_sources import RareCodes, RareGroups
from benchmarks.figures.fits import patients_figure
from benchmarks.fits import fits_table
from benchmarks.settings import Settings
from benchmarks.sources import Paper, Target, Work

ABOUT = """The paper's figures of running time on health records, at their shapes: 168 groups of up
to 31 codes for 410,964 to 1,643,857 patients (CMS), and 238 to 1,083 binary codes of 29,862
patients (MIMIC2). Neither is public, so both are simulated from a known tree with codes as rare
as there: about ten a patient, frequencies by Zipf's law, the rarest in 0.2% of the patients.
"RF, frequent" is over the codes of at least 1% of the patients. k = 2."""
BY_SAMPLES, BY_VARIABLES = "by samples", "by variables"
# patients and seconds of the paper's figure (a); variables and seconds of its figure (b)
CMS = {410_964: 3676.0, 821_928: 4524.0, 1_232_892: 8148.0, 1_643_857: 8965.0}
MIMIC2 = {238: 2491.0, 476: 6792.0, 714: 11272.0, 952: 16291.0}
PATIENTS, GROUPS = 29_862, 168
TARGETS = {1_643_857: Target(60.0), 952: Target(10.0)}
# rare codes: 314,647 events of 29,862 patients; 15.8 million events of 1.64 million
CODES_OF_A_PATIENT = 10.5


def works(settings: Settings) -> list[Work]:
    """The rows."""
    if settings.quick:
        return [_by_samples(3_000, None, 12, 6), _by_variables(12, None, 4_000)]
    rows = [_by_samples(n, seconds) for n, seconds in CMS.items()]
    return rows + [_by_variables(p, MIMIC2.get(p)) for p in (*MIMIC2, 1_083)]


def _by_samples(n: int, seconds: float | None, groups: int = GROUPS, widest: int = 31) -> Work:
    return Work(
        f"{groups} groups, {n:,} patients",
        RareGroups(groups, n, per_sample=6.5 * min(1.0, groups / 40), widest=widest),
        2,
        Paper(seconds),
        TARGETS.get(n, Target()),
        float(n),
        BY_SAMPLES,
    )


def _by_variables(p: int, seconds: float | None, n: int = PATIENTS) -> Work:
    # the most frequent codes of the whole: fewer variables have fewer codes a patient
    per_sample = CODES_OF_A_PATIENT * min(1.0, 0.3 + 0.7 * p / 952)
    return Work(
        f"{p:,} binary, {n:,} patients",
        RareCodes(p, n, per_sample=per_sample if p > 50 else 2.0),
        2,
        Paper(seconds),
        TARGETS.get(p, Target()),
        float(p),
        BY_VARIABLES,
    )


def draw(record: Mapping[str, Any]) -> Any:
    """Time over patients and over variables, the paper's beside."""
    return patients_figure(record, {BY_SAMPLES: CMS, BY_VARIABLES: MIMIC2})


TABLES = (
    fits_table(
        works,
        name="patients",
        shows="the paper's health records at their shapes: time by patients and by codes",
        duration="15 min",
        title="Patients: by samples (168 groups of up to 31 codes) and by variables (binary)",
        about=ABOUT,
        draw=draw,
    ),
)
