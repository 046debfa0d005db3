"""Computes the hashes of index keys (docs/spec/store.md 5.3) for many messages at once."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rewindmq.protocol.text import java_hash

_FACTOR: Final = 31
_ASCII_LIMIT: Final = 0x80
_SEPARATOR: Final = "#"
_MASK: Final = 0xFFFF_FFFF

_Uint32s = npt.NDArray[np.uint32]
_Ints = npt.NDArray[np.int64]


def entry_hashes(topics: pa.Array, unique_keys: pa.Array, keys: pa.Array) -> tuple[_Ints, _Ints]:
    """Return the index entries of these messages, in the order in which a broker makes them.

    Args:
        topics: string, shape (n,).
        unique_keys: UNIQ_KEY, string; null if a message has none.
        keys: the parts of KEYS, list<string>; no part is empty.

    Returns:
        For each entry, shape (m,): the index of its message, and its keyHash.
    """
    flat = keys.flatten()
    has_unique = pc.is_valid(unique_keys).to_numpy(zero_copy_only=False)
    counts = np.diff(keys.offsets.to_numpy()).astype(np.int64) + has_unique
    messages = np.repeat(np.arange(len(topics)), counts)
    is_unique = np.zeros(len(messages), np.bool_)
    is_unique[(np.cumsum(counts) - counts)[has_unique]] = True
    hashes, lengths = np.empty(len(messages), np.uint32), np.empty(len(messages), np.int64)
    for chosen, texts in ((is_unique, unique_keys.drop_null()), (~is_unique, flat)):
        hashes[chosen], lengths[chosen] = java_hashes(texts)
    distinct = topics.dictionary_encode()
    prefixes = [java_hash(f"{topic}{_SEPARATOR}") & _MASK for topic in distinct.dictionary.to_pylist()]
    prefix = np.asarray(prefixes, np.uint32)[distinct.indices.to_numpy()][messages]
    combined = prefix * _powers(int(lengths.max(initial=0)))[lengths] + hashes
    return messages, _positive(combined)


def _positive(hashes: _Uint32s) -> _Ints:
    """Return ``broker.store.layout.index.key_hash``: never negative, 0 where Java's ``abs`` overflows."""
    signed = hashes.view(np.int32).astype(np.int64)
    signed[signed == np.iinfo(np.int32).min] = 0
    return np.abs(signed)


def _powers(highest: int) -> _Uint32s:
    powers = np.empty(highest + 1, np.uint32)
    powers[0] = 1
    powers[1:] = _FACTOR
    return np.multiply.accumulate(powers, dtype=np.uint32)


def java_hashes(texts: pa.Array) -> tuple[_Uint32s, _Ints]:
    """Return ``String.hashCode`` as unsigned, and the length in UTF-16 units, of non-empty texts."""
    count = len(texts)
    if not count:
        return np.empty(0, np.uint32), np.empty(0, np.int64)
    offsets, data = _buffers(texts)
    ends = offsets[1:]
    lengths = np.diff(offsets)
    assert lengths.min() > 0
    powers = _powers(int(lengths.max()))
    places = np.repeat(ends, lengths) - 1 - np.arange(len(data))
    hashes = np.add.reduceat(data.astype(np.uint32) * powers[places], offsets[:-1], dtype=np.uint32)
    is_other = np.maximum.reduceat(data, offsets[:-1]) >= _ASCII_LIMIT
    for number in np.flatnonzero(is_other).tolist():
        text = texts[number].as_py()
        hashes[number] = java_hash(text) & _MASK
        lengths[number] = len(text.encode("utf-16-be")) // 2
    return hashes, lengths


def _buffers(texts: pa.Array) -> tuple[_Ints, npt.NDArray[Any]]:
    """Return the starts of the texts, then the end of the last, and the bytes of all texts."""
    _, places, data = texts.buffers()
    offsets = np.frombuffer(places, np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    octets = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]]
    return offsets - offsets[0], octets
