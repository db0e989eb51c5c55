"""Rivals beside us: the same data, each in a process of its own, within a limit of time.

The data of a seed are drawn once; then every rival loads them, fits something small (libraries are
loaded and kernels compiled), is timed fitting the samples to learn from, and only then sees the
samples that were held out, and is compared with the truth.
"""

from __future__ import annotations

import io
import math
import tempfile
import warnings
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.data.halves import Halves, layers_of
from benchmarks.judging import SCORES, judged
from benchmarks.limits import Exceeded, Failed, at_most, within_limits
from benchmarks.rivals import Floats, Rival, Task, likelihoods, named
from benchmarks.rivals.binary import is_binary
from benchmarks.settings import Settings
from benchmarks.timing import in_fresh_process, peak_memory, timed, warm_up

SHARE = 0.6
"""Of the time limit, after which methods that can stop early should: a last step may be long."""

SHORT = 5.0
"""Seconds below which a fit is repeated, and the shorter time counts: the first one may load
kernels that the small fit before it did not need."""

TRUTH = "truth"
"""The name of the true model among the references."""

DONE, ABSENT, TIME, MEMORY, FAILED, SKIPPED, UNSUITED = (
    "done", "not installed", "time", "memory", "failed", "not tried", "unsuited",
)  # fmt: skip
"""How an attempt ended."""


@dataclass(frozen=True)
class Contest:
    """A set of data, and who tries it.

    part : contests of one part grow; who ran out of time or memory in one is not tried in the next.
    reference : whose log-likelihood of what is held out the others' are compared with.
    """

    label: str
    data: Halves
    n_states: int
    rivals: tuple[str, ...]
    part: str = ""
    reference: str = TRUTH

    def label_of(self, rival: str) -> str:
        """The label of a row."""
        return f"{self.label}: {rival}"


@dataclass(frozen=True)
class Limit:
    """Of one rival on one set of data: seconds of the fit, and bytes of memory.

    grace : seconds for loading, warming up, and scoring what was held out.
    """

    seconds: float
    memory: float = math.inf
    grace: float = 60.0

    def describe(self, reason: str) -> str:
        """Why an attempt ended."""
        if reason == TIME:
            return f"ran out of {self.seconds:,.0f} s"
        return f"took more than {self.memory / 2**30:,.0f} GiB"


@dataclass(frozen=True)
class Outcome:
    """What one rival did on one set of data; `values` where it is done."""

    state: str
    reason: str = ""
    values: Mapping[str, Any] | None = None
    held_out: Floats | None = None


def run_contests(
    contests: Iterable[Contest], settings: Settings, limit: Limit, seeds: int = 1
) -> list[dict[str, Any]]:
    """A row for each contest and rival that was asked for."""
    contests = list(contests)
    if not any(settings.wants(c.label_of(r)) for c in contests for r in c.rivals):
        return []
    in_fresh_process(warm_up)
    rows: list[dict[str, Any]] = []
    beaten: dict[tuple[str, str], str] = {}
    for contest in contests:
        wanted = [r for r in contest.rivals if settings.wants(contest.label_of(r))]
        if not wanted:
            continue
        found = [
            compete(contest, wanted, seed, settings, limit, beaten)
            for seed in settings.seed_range(seeds)
        ]
        for name in wanted:
            outcomes = [outcome[name] for outcome in found if name in outcome]
            if outcomes:
                rows.append(row_of(contest, named(name), outcomes))
    return rows


def compete(
    contest: Contest,
    wanted: Sequence[str],
    seed: int,
    settings: Settings,
    limit: Limit,
    beaten: dict[tuple[str, str], str],
) -> dict[str, Outcome]:
    """All rivals on the data of one seed; `beaten` learns who ran out, and where."""
    outcomes: dict[str, Outcome] = {}
    with tempfile.TemporaryDirectory(prefix="latenttree-bench-") as name:
        folder = Path(name)
        try:
            in_fresh_process(contest.data.draw, folder, seed)
        except (ValueError, MemoryError, BrokenProcessPool) as error:
            reason = f"no data: {type(error).__name__}: {error}"
            return {who: Outcome(FAILED, reason) for who in wanted}
        if contest.reference == TRUTH:
            reference = in_fresh_process(truth_likelihoods, contest, folder, settings.n_jobs)
        else:
            alone = attempt(contest, contest.reference, folder, seed, settings.n_jobs, limit)
            reference = alone.held_out
            outcomes[contest.reference] = _compared(alone, reference)
        for who in wanted:
            if who in outcomes:
                continue
            where = beaten.get((contest.part, who))
            if where is not None:
                outcomes[who] = Outcome(SKIPPED, f"not tried: {where}")
            else:
                outcome = attempt(contest, who, folder, seed, settings.n_jobs, limit)
                outcomes[who] = _compared(outcome, reference)
                if outcome.state in (TIME, MEMORY) and contest.part:
                    beaten[contest.part, who] = f"{outcome.reason} at {contest.label}"
            if outcomes[who].state != UNSUITED:
                settings.say(f"{contest.label_of(who)}, seed {seed}: {_summary(outcomes[who])}")
    return {name: outcome for name, outcome in outcomes.items() if outcome.state != UNSUITED}


def attempt(
    contest: Contest, name: str, folder: Path, seed: int, n_jobs: int, limit: Limit
) -> Outcome:
    """One rival, in a process of its own."""
    rival = named(name)
    if not rival.available():
        return Outcome(ABSENT, f"not installed: pip install {rival.install}")
    try:
        found: dict[str, Any] | None = within_limits(
            fit_rival, contest, name, folder, seed, n_jobs, limit.seconds,
            seconds=limit.seconds + limit.grace, memory=limit.memory,
        )  # fmt: skip
    except Exceeded as error:
        values = {"peak_bytes": error.peak_bytes or None}
        return Outcome(error.reason, limit.describe(error.reason), values)
    except Failed as error:
        return Outcome(FAILED, str(error))
    if found is None:
        return Outcome(UNSUITED)
    return Outcome(DONE, "", found, found.pop("held_out_values"))


def fit_rival(
    contest: Contest, name: str, folder: Path, seed: int, n_jobs: int, seconds: float
) -> dict[str, Any] | None:
    """Load, warm up, fit against the clock, then look at what was held out and at the truth."""
    rival = named(name)
    train, test = contest.data.load(folder)
    known = contest.data.truth(folder)
    task = Task(train, contest.n_states, seed, n_jobs)
    if known is not None:
        task = replace(task, tree=known.tree, layers=layers_of(known.tree))
    if not rival.suits(task):
        return None
    with _quiet(), threadpool_limits(limits=n_jobs):
        _warm_up(rival, task)
        times: list[float] = []
        while not times or (len(times) < 2 and times[0] < SHORT):
            with at_most(seconds):
                answer, taken = timed(lambda: rival.fit(replace(task, seconds=SHARE * seconds)))
            times.append(taken)
    peak = peak_memory()
    held_out = trained = None
    if answer.log_likelihood is not None:
        held_out, trained = answer.log_likelihood(test), float(answer.log_likelihood(train).sum())
    return {
        "seconds": min(times),
        "peak_bytes": peak,
        "n_hidden": None if answer.tree is None else answer.tree.n_hidden,
        **judged(answer, known),
        "held_out_values": held_out,
        "held_out": None if held_out is None else float(held_out.mean()),
        "training": None if trained is None else trained / train.n_samples,
        "n_parameters": answer.n_parameters,
        "bic": bic(trained, answer.n_parameters, train.n_samples),
        "n_samples": train.n_samples,
        "n_held_out": test.n_samples,
        "n_vars": train.n_vars,
        "more": answer.more,
    }


def bic(log_likelihood: float | None, n_parameters: int | None, n: int) -> float | None:
    """`-2 log L + parameters log n` of the samples that were learned from; lower is better."""
    if log_likelihood is None or n_parameters is None:
        return None
    return -2 * log_likelihood + n_parameters * math.log(n)


class _quiet:
    """Nothing that libraries print or warn about."""

    def __enter__(self) -> None:
        self.parts: tuple[Any, ...] = (
            redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()),
            warnings.catch_warnings(),
        )  # fmt: skip
        for part in self.parts:
            part.__enter__()
        warnings.simplefilter("ignore")

    def __exit__(self, *error: object) -> None:
        for part in reversed(self.parts):
            part.__exit__(None, None, None)


def _warm_up(rival: Rival, task: Task) -> None:
    """A few samples of a few variables of the same kind; whatever comes of it."""
    few = _few(task)
    if rival.suits(few):
        try:
            rival.fit(few)
        except Exception:
            return


def _few(task: Task) -> Task:
    """Nine variables of a known tree and 400 samples, in the form of the task's."""
    from latenttree.data import as_table
    from latenttree.evaluation.datasets import make_latent_tree

    known = make_latent_tree(9, 2, 2 if is_binary(task.table) else 3, n_samples=400,
                             edge_length=0.4, random_state=0)  # fmt: skip
    X: Any = known.X
    if task.table.kind == "sparse_binary":
        from scipy import sparse

        X = sparse.csr_array(X.astype(np.float32))
    table = as_table(X, names=list(known.tree.observed_names))
    return Task(table, 2, 0, task.n_jobs, known.tree, layers_of(known.tree), 1.0)


def truth_likelihoods(contest: Contest, folder: Path, n_jobs: int) -> Floats | None:
    """Of what is held out under the true model; None where there is none, or categories were
    never drawn."""
    known = contest.data.truth(folder)
    if known is None or known.model is None:
        return None
    _, test = contest.data.load(folder)
    p = known.tree.n_observed
    if not np.array_equal(known.model.dims[:p], test.dims):
        return None
    return likelihoods(known.model, test, n_jobs)


def _compared(outcome: Outcome, reference: Floats | None) -> Outcome:
    """With the gain over the reference, nats a sample, and its standard error over samples."""
    if outcome.held_out is None or reference is None or outcome.values is None:
        return outcome
    gain = outcome.held_out - reference
    error = float(gain.std() / math.sqrt(len(gain)))
    return replace(
        outcome, values={**outcome.values, "gain": float(gain.mean()), "gain_error": error,
                         "reference": float(reference.mean())}
    )  # fmt: skip


def _summary(outcome: Outcome) -> str:
    if outcome.state != DONE:
        return outcome.reason or outcome.state
    values = outcome.values or {}
    parts = [f"{values['seconds']:.2f} s"]
    if values.get("rf") is not None:
        parts.append(f"RF {values['rf']:.3f}")
    if values.get("gain") is not None:
        parts.append(f"held out {values['gain']:+.4f} nats a sample to the reference")
    return ", ".join([*parts, f"peak {values['peak_bytes'] / 2**20:,.0f} MiB"])


# ---- over the seeds ------------------------------------------------------------------------------

MEANS = ("seconds", *SCORES, "held_out", "training", "gain", "reference", "bic", "n_parameters")


def row_of(contest: Contest, rival: Rival, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Means over the seeds that were finished, the largest memory; what stopped the others."""
    done = [o.values for o in outcomes if o.state == DONE and o.values is not None]
    stopped = next((o for o in outcomes if o.state != DONE), None)
    peaks = [o.values["peak_bytes"] for o in outcomes if o.values and o.values.get("peak_bytes")]
    row: dict[str, Any] = {
        "label": contest.label_of(rival.name),
        "work": contest.label,
        "part": contest.part,
        "rival": rival.name,
        "given": rival.given,
        "reference_name": contest.reference,
        "state": DONE if stopped is None else stopped.state,
        "failure": None if stopped is None else stopped.reason,
        "n_seeds": len(done),
        "peak_bytes": max(peaks, default=None),
        "stopped": next((v["more"]["stopped"] for v in done if v["more"].get("stopped")), None),
        "runs": done,
    }
    for name in MEANS:
        row[name] = _mean([values.get(name) for values in done])
    errors = [v["gain_error"] for v in done if v.get("gain_error") is not None]
    row["gain_error"] = math.sqrt(sum(e * e for e in errors)) / len(errors) if errors else None
    for name in ("n_samples", "n_held_out", "n_vars"):
        row[name] = done[0][name] if done else None
    return row


def _mean(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return float(np.mean(known)) if known else None
