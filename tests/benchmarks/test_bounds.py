"""The lower bound of the moments by hand, and the machine's rates that it is made of."""

from __future__ import annotations

from benchmarks.bounds import Shape, lower_bound, operations
from benchmarks.machine import Peaks, measure_peaks

PEAKS = Peaks(n_jobs=1, multiply_adds=100.0, bytes=50.0, increments=10.0, bit_words=20.0)


def test_operations_by_hand() -> None:
    # p = 4 variables with k - 1 = 2 features: w = 8, 8 * 9 / 2 = 36 products a sample; 6 pairs of
    # variables; 130 samples are three words of 64 bits
    shape = Shape(n_samples=130, n_vars=4, n_directions=2, n_bytes=0.0)
    assert operations(shape) == {"products": 130 * 36, "increments": 130 * 6}
    binary = Shape(130, 4, 1, 0.0, present_pairs=77.0, is_binary=True)
    assert operations(binary) == {"products": 130 * 10, "increments": 77.0, "bits": 6 * 3}


def test_the_bound_is_the_cheapest_way_or_the_reading() -> None:
    # products 1,300 / 100 = 13 s, increments 77 / 10 = 7.7 s, bits 18 / 20 = 0.9 s; reading 0.2 s
    found = lower_bound(Shape(130, 4, 1, 10.0, 77.0, True), PEAKS)
    assert (found.way, found.operations, found.seconds) == ("bits", 18, 0.9)
    # 500 bytes at 50 a second take longer than all of it
    assert lower_bound(Shape(130, 4, 1, 500.0, 77.0, True), PEAKS).seconds == 10.0
    assert lower_bound(Shape(130, 4, 1, 10.0), PEAKS).way == "products"


def test_peaks_of_this_machine() -> None:
    found = measure_peaks(1, scale=0.01)
    # any machine of this century does more than a million of anything in a second
    assert min(found[1:]) > 1e6
