"""Passes: pieces in order, the same whatever the threads; errors come out; stages are timed."""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from latenttree.engine import (
    BLOCK,
    Progress,
    blocks,
    parallel,
    pools,
    resolve_jobs,
    single_threaded_blas,
)
from latenttree.engine.progress import tell_number, tell_share
from latenttree.errors import DataError


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 3 * BLOCK + 1])
def test_blocks_cut_a_range_into_pieces_of_one_size(n: int) -> None:
    pieces = list(blocks(n, 8))
    assert [i for start, stop in pieces for i in range(start, stop)] == list(range(n))
    assert all(stop - start == 8 for start, stop in pieces[:-1])
    assert list(blocks(n))[:1] == [(0, min(n, BLOCK))][: min(n, 1)]


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_results_come_in_the_order_of_the_items(n_jobs: int) -> None:
    delays = np.random.default_rng(0).uniform(0, 2e-3, 40)

    def work(start: int, stop: int) -> list[int]:
        time.sleep(delays[start])
        return list(range(start, stop))

    pieces = parallel(work, 40, n_jobs, 3)
    assert [i for piece in pieces for i in piece] == list(range(40))


@pytest.mark.parametrize("n_items", [0, 1, 63, 64, 65, 1000])
def test_pieces_do_not_depend_on_the_number_of_threads(n_items: int) -> None:
    pieces = [parallel(lambda a, b: (a, b), n_items, n_jobs) for n_jobs in (1, 2, 7)]
    assert pieces[0] == pieces[1] == pieces[2]
    assert [i for a, b in pieces[0] for i in range(a, b)] == list(range(n_items))


@pytest.mark.parametrize("n_jobs", [1, 2, 16])
@pytest.mark.parametrize("n_items", [0, 1])
def test_the_first_call_of_a_process_may_have_nothing_to_do(
    n_items: int, n_jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "_shared", pools._Shared())
    assert parallel(lambda a, b: (a, b), n_items, n_jobs) == [(0, 1)][:n_items]
    assert pools.helpers(lambda: None, 0) == []


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_exception_is_raised_and_stops_the_rest(n_jobs: int) -> None:
    begun = []

    def work(start: int, stop: int) -> None:
        begun.append(start)
        if start == 3:
            raise KeyError("piece 3")
        time.sleep(1e-3)

    with pytest.raises(KeyError, match="piece 3"):
        parallel(work, 500, n_jobs, 1)
    # the pieces begun before the failure was seen: a handful, not the 500
    assert len(begun) < 100


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_is_raised_too(n_jobs: int) -> None:
    def work(start: int, stop: int) -> None:
        if start == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        parallel(work, 10, n_jobs, 1)


def test_two_jobs_run_at_once() -> None:
    meeting = threading.Barrier(2, timeout=10)  # broken unless both threads are inside
    assert sorted(parallel(lambda a, b: meeting.wait(), 2, 2, 1)) == [0, 1]


def test_a_call_inside_a_piece_runs_where_it_is() -> None:
    def work(start: int, stop: int) -> list[str]:
        own = threading.current_thread().name
        inner = parallel(lambda a, b: threading.current_thread().name, 20, 4, 1)
        assert set(inner) == {own}
        return inner

    assert len(parallel(work, 50, 4, 1)) == 50


def test_threads_stay_for_the_next_call_and_grow_with_what_is_asked() -> None:
    def names(n_jobs: int) -> set[str]:
        meeting = threading.Barrier(n_jobs, timeout=10)
        return set(parallel(lambda a, b: (meeting.wait(), name())[1], n_jobs, n_jobs, 1))

    def name() -> str:
        return f"{threading.current_thread().name} {threading.get_ident()}"

    most = names(20)  # no test before asks for as many
    assert len(most) == 20
    assert names(20) == most
    assert names(3) <= most
    assert len(names(21)) == 21


def test_many_callers_share_the_threads() -> None:
    def work(start: int, stop: int) -> int:
        time.sleep(1e-4)
        return start

    found: list[list[int]] = []
    callers = [
        threading.Thread(target=lambda n=n: found.append(parallel(work, 60, n, 1)))
        for n in (2, 3, 4, 5, 2, 3, 4, 5)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(timeout=30)
    assert found == [list(range(60))] * len(callers)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own() -> None:
    assert parallel(lambda a, b: a, 10, 3, 1) == list(range(10))
    child = os.fork()
    if not child:
        os._exit(int(parallel(lambda a, b: a, 10, 3, 1) != list(range(10))))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert parallel(lambda a, b: a, 10, 3, 1) == list(range(10))


def test_the_first_piece_that_fails_is_told_and_what_had_begun_is_done() -> None:
    meeting, done = threading.Barrier(2, timeout=10), []

    def work(start: int, stop: int) -> None:
        meeting.wait()
        if start == 1:
            raise KeyError("piece 1")
        time.sleep(0.02)
        done.append(start)
        raise ValueError("piece 0")

    with pytest.raises(ValueError, match="piece 0"):
        parallel(work, 2, 2, 1)
    assert done == [0]


def test_jobs_are_counted_as_joblib_does() -> None:
    cores = resolve_jobs(None)
    assert cores >= 1
    assert resolve_jobs(-1) == cores
    assert resolve_jobs(-2) == max(1, cores - 1)
    assert resolve_jobs(-10_000) == 1
    assert [resolve_jobs(n) for n in (1, 2, 64)] == [1, 2, 64]


@pytest.mark.parametrize("wrong", [0, "2", 1.5, 2.0])
def test_a_wrong_number_of_jobs_is_named(wrong: object) -> None:
    with pytest.raises(DataError, match="give a number of threads") as error:
        resolve_jobs(wrong)  # type: ignore[arg-type]
    assert (error.value.place.option, error.value.value) == ("n_jobs", wrong)


def test_blas_runs_on_one_thread_inside_and_as_before_outside() -> None:
    def threads() -> list[int]:
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    with threadpool_limits(limits=2, user_api="blas"):
        before = threads()
        with single_threaded_blas():
            assert set(threads()) == {1}
            with single_threaded_blas():
                assert set(threads()) == {1}
            assert set(threads()) == {1}
        assert threads() == before


def test_blas_stays_on_one_thread_while_anybody_needs_it() -> None:
    def threads() -> set[int]:
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    with threadpool_limits(limits=2, user_api="blas"):
        one, other = single_threaded_blas(), single_threaded_blas()
        one.__enter__()
        other.__enter__()
        one.__exit__(None, None, None)
        assert threads() == {1}
        other.__exit__(None, None, None)
        assert threads() == {2}


def test_progress_adds_up_the_times_of_a_stage(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress()
    for name in ("one", "two", "one"):
        with progress.stage(name):
            time.sleep(0.01)
    progress.note("nobody reads this")
    assert list(progress.seconds) == ["one", "two"]
    assert progress.seconds["one"] >= 0.02  # a sleep never returns early
    assert progress.seconds["two"] >= 0.01
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_how_far_a_stage_is_shows_when_verbose(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("latenttree.engine.progress.SECONDS", 0.0)
    monkeypatch.setattr("latenttree.engine.progress.SECONDS_APART", 0.0)
    tell_share("x.csv", 1, 2)  # no stage: nobody looks
    for verbose in (False, True):
        with Progress(verbose).stage("reading"):
            tell_share("x.csv", 3 << 20, 8 << 20)
            tell_number("coded", 12_000)
    shown = capsys.readouterr().err
    assert shown.count("x.csv: 3 of 8 MiB") == 1
    assert shown.count("coded: 12,000 rows") == 1


def test_looks_at_a_stage_are_apart(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("latenttree.engine.progress.SECONDS_APART", 1000.0)
    monkeypatch.setattr("latenttree.engine.progress.SECONDS", 1000.0)
    with Progress(True).stage("reading"):
        for i in range(1000):
            tell_number("read", i)
    assert "rows" not in capsys.readouterr().err


def test_verbose_progress_writes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress(verbose=True)
    with progress.stage("distances"):
        progress.note("3 rounds")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "distances" in captured.err
    assert "3 rounds" in captured.err


def test_an_exception_passes_through_a_stage() -> None:
    with pytest.raises(ZeroDivisionError), Progress().stage("bad"):
        _ = 1 / 0
