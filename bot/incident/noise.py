"""Numbers that look drawn and are computed: the same seed, name and moment give the same number for ever."""

from __future__ import annotations

import random
from functools import lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


@lru_cache(maxsize=8_192)
def key_of(seed: int, name: str) -> int:
    """64 bits that stand for one name under one seed."""
    return int.from_bytes(blake2b(f"{seed}/{name}".encode(), digest_size=8).digest(), "big")


def uniform(key: int, index: Ints) -> Floats:
    """Evenly spread over [0, 1), one number for each index (splitmix64)."""
    mixed = index.astype(np.uint64) * _GOLDEN + np.array([key], dtype=np.uint64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
    mixed ^= mixed >> np.uint64(31)
    spread: Floats = (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return spread


def wobble(key: int, at: Floats, every_s: float = 60.0) -> Floats:
    """Between -1 and 1, a new value each minute and a straight line from one to the next."""
    place = at / every_s
    minute = np.floor(place).astype(np.int64)
    before, after = uniform(key, minute), uniform(key, minute + 1)
    smooth: Floats = 2.0 * (before + (after - before) * (place - minute)) - 1.0
    return smooth


def dice(seed: int, name: str, index: int) -> random.Random:
    """A generator of its own for one thing at one moment."""
    return random.Random(key_of(seed, name) ^ (index * 0x9E3779B97F4A7C15 & (2**64 - 1)))
