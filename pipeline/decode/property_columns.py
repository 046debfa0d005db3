"""Parses the properties texts of many records into maps, and single properties into columns.

The rules are those of ``protocol.message.properties.parse_properties``: pieces without a name or value are
skipped, a value may contain further 0x01 bytes, and the last of several values for one name counts.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rewindmq.pipeline.decode.gather import gather, texts
from rewindmq.pipeline.decode.record_block import Int64s

_NAME_VALUE: Final = 1
_PROPERTY: Final = 2
# 1 << code is summed over the pairs of a text. With codes below 48 and fewer than 2**14 pairs, the sum fits
# into an int64.
_CODE_LIMIT: Final = 48


class _Pairs(NamedTuple):
    """All pairs of name and value, in the order of the texts, shape (m,).

    Attributes:
        starts, middle, ends: start of the name, position of the 0x01 after it, end of the value.
        bounds: index of each record's first pair; the last bound is the number of pairs; shape (n + 1,).
    """

    starts: Int64s
    middle: Int64s
    ends: Int64s
    bounds: Int64s

    @property
    def records(self) -> Int64s:
        """Return the index of the record that each pair belongs to, shape (m,)."""
        return np.repeat(np.arange(len(self.bounds) - 1), np.diff(self.bounds))


class PropertyColumns:
    """The properties texts of the records of a block, shape (n,)."""

    def __init__(self, data: Any, starts: Int64s, ends: Int64s) -> None:
        """Take text i from ``data[starts[i]:ends[i]]``; ``starts[i]`` is at least 1."""
        self._count = len(starts)
        # The byte before each text is overwritten with a separator, so that a separator precedes every piece.
        _, offsets, gathered = gather(data, starts - 1, ends).buffers()
        self._octets = np.empty(0, np.uint8)
        self._heads: npt.NDArray[np.int32] = np.empty(0, np.int32)
        if self._count:
            bounds = np.frombuffer(offsets, np.int32)[: self._count + 1]
            self._heads = bounds[:-1]
            self._octets = np.frombuffer(gathered, np.uint8)[: bounds[-1]].copy()
            self._octets[self._heads] = _PROPERTY

    @cached_property
    def _pairs(self) -> _Pairs:
        octets = self._octets
        places = np.flatnonzero((octets == _NAME_VALUE) | (octets == _PROPERTY))
        begins = np.flatnonzero(octets[places] == _PROPERTY)
        # The end of the data ends the last piece.
        places = np.append(places, len(octets))
        starts = places[begins] + 1
        ends = places[np.append(begins[1:], len(places) - 1)] if len(begins) else places[:0]
        # The first separator of either kind after a piece's start. If it is not 0x01, the piece has no value.
        middle = places[begins + 1]
        kept = (middle > starts) & (middle + 1 < ends)
        counts = np.concatenate(([0], np.cumsum(kept)))
        bounds = counts[np.append(np.searchsorted(starts, self._heads + 1), len(starts))]
        if not kept.all():
            starts, middle, ends = starts[kept], middle[kept], ends[kept]
        return _Pairs(starts, middle, ends, bounds)

    @cached_property
    def maps(self) -> pa.MapArray:
        """Return all properties, map<string, string>."""
        pairs = self._pairs
        names = texts(gather(self._octets, pairs.starts, pairs.middle))
        values = texts(gather(self._octets, pairs.middle + 1, pairs.ends))
        bounds = pairs.bounds
        kept = self._last_of_each_name(names)
        if kept is not None:
            names, values = names.take(pa.array(kept)), values.take(pa.array(kept))
            bounds = np.searchsorted(kept, bounds)
        return pa.MapArray.from_arrays(pa.array(bounds, pa.int32()), names, values)

    def _last_of_each_name(self, names: pa.Array) -> Int64s | None:
        """Return the indexes of the pairs to keep; None if no record has a name twice."""
        encoded = names.dictionary_encode()
        codes = encoded.indices.to_numpy().astype(np.int64)
        if not len(codes) or (len(encoded.dictionary) <= _CODE_LIMIT and self._all_differ(codes)):
            return None
        identity = self._pairs.records * len(encoded.dictionary) + codes
        # unique() keeps the first of equal values: the last pair, as the order is reversed.
        _, last = np.unique(identity[::-1], return_index=True)
        return np.sort(len(identity) - 1 - last) if len(last) < len(identity) else None

    def _all_differ(self, codes: Int64s) -> bool:
        """Whether no record has a code twice; adding its bits then gives the same as or-ing them."""
        filled = self._pairs.bounds[:-1][np.diff(self._pairs.bounds) > 0]
        bits = np.left_shift(1, codes)
        return bool((np.add.reduceat(bits, filled) == np.bitwise_or.reduceat(bits, filled)).all())

    def column(self, name: str) -> pa.Array:
        """Return one property as strings; null for records that lack it."""
        pairs = self._pairs
        found = self._named(name.encode())
        where = np.full(self._count, -1, np.int64)
        # numpy keeps the last assignment to an index: the last of several values of one name.
        where[np.searchsorted(pairs.bounds, found, side="right") - 1] = np.arange(len(found))
        values = texts(gather(self._octets, pairs.middle[found] + 1, pairs.ends[found]))
        return values.take(pa.array(where, mask=where < 0))

    def _named(self, name: bytes) -> Int64s:
        """Return the indexes of the pairs with this name."""
        pairs = self._pairs
        candidates = np.flatnonzero(pairs.middle - pairs.starts == len(name))
        for place, octet in enumerate(name):
            candidates = candidates[self._octets[pairs.starts[candidates] + place] == octet]
        return candidates


def split_keys(keys: pa.Array) -> pa.Array:
    """Return KEYS split on spaces, without empty pieces; an empty list for records without KEYS."""
    lists = pc.split_pattern(pc.fill_null(keys, ""), " ")
    flat = lists.flatten()
    filled = pc.not_equal(flat, "")
    counts: npt.NDArray[Any] = np.concatenate(([0], np.cumsum(filled.to_numpy(zero_copy_only=False))))
    bounds = counts[lists.offsets.to_numpy()]
    return pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), flat.filter(filled))
