"""Consumer offsets: each group's next offset to consume in each queue.

Specification: docs/spec/broker.md B.8, docs/spec/store.md 8.4.

Each offset has an epoch: the number of resets of the queue in fenced mode (docs/spec/races.md E.18, F12).
Both are in one file, so a crash cannot separate them. The epochs are in a separate field, ``epochTable``,
which RocketMQ ignores. The field is missing while there are no epochs. The field ``lastRemovedEpoch`` has the
highest epoch of the removed offsets: the first reset of a queue in a new topic or group of the same name gets
a higher one, so the broker still recognises commits from before the removal.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from rewindmq.broker.store.errors import StoreError
from rewindmq.broker.store.files.disk import Disk, OsDisk
from rewindmq.broker.store.tables.config_file import ConfigFile
from rewindmq.broker.store.tables.config_json import format_config

NO_OFFSET: Final = -1
# RocketMQ 4.x has no limit, and accepts any topic, group and queue id.
MAX_OFFSETS: Final = 500_000
_SEPARATOR: Final = "@"
# A key is a topic and a group.
_PARTS: Final = 2
_MAX_EPOCH: Final = 2**63 - 1
_OS_DISK: Final = OsDisk()
# Keys copied at once: about 1 ms. Copying this many queues of a key takes as long as copying a key.
_SLICE: Final = 2_000
# Groups searched for a topic at once: about 1 ms.
_GROUPS_PER_SLICE: Final = 10_000
_QUEUES_PER_KEY: Final = 16
# Keys copied for one write of the file: about 10 ms.
_CHANGES_PER_WRITE: Final = 10_000

# topic@group to queue to number.
_Table = dict[str, dict[int, int]]


class OffsetChanges(NamedTuple):
    """Copies of the entries that changed since the last write, by key; None for an entry that was removed.

    A worker thread writes them while the table changes. They take as long to copy as the changes since the
    last write, not as the table.
    """

    offsets: dict[str, dict[int, int] | None]
    epochs: dict[str, dict[int, int] | None]
    last_removed_epoch: int


class OffsetRecord(NamedTuple):
    """Stored offset and epoch of a group in a queue.

    Attributes:
        offset: the next offset to consume, ``NO_OFFSET`` if none is stored.
        epoch: number of resets of the queue in fenced mode; 0 if no offset is stored.
    """

    offset: int
    epoch: int


class ConsumerOffsetTable:
    """``topic@group`` to queue to next offset to consume (ConsumerOffsetManager). The last writer wins.

    Args:
        before_save: called on the thread that writes the file, before each write; None: nothing. The broker
            makes the log durable there: offsets of messages that a power failure takes would make their
            group skip the messages that take their places.
    """

    def __init__(
        self, path: Path, disk: Disk = _OS_DISK, before_save: Callable[[], object] | None = None
    ) -> None:
        self._file = ConfigFile(path, disk)
        self._before_save = before_save
        self._offsets: _Table = {}
        # Only epochs above 0.
        self._epochs: _Table = {}
        self._last_removed_epoch = 0
        # The topics of each group, in order of their first offsets.
        self._topics: dict[str, dict[str, None]] = {}
        # The file's ``dataVersion``: 5.x writes and uses it; RewindMQ only preserves it.
        self._version: Any = None
        self._count = 0
        # The keys that changed since the last copy, and those of the copy that could not be written.
        self._unsaved: dict[str, None] = {}
        self._refused: Collection[str] = ()
        self._has_more = False
        # What the file contains; used by ``load`` and ``save`` only.
        self._written: tuple[_Table, _Table] = ({}, {})

    def __len__(self) -> int:
        return self._count

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> int:
        """Store an offset, higher or lower than the one before.

        Returns:
            The previous offset, ``NO_OFFSET`` if none; RocketMQ warns if it was greater.

        Raises:
            StoreError: the queue has no offset and ``MAX_OFFSETS`` are stored already; nothing has changed.
        """
        previous = self.update(group, topic, queue_id, offset)
        if previous is not None:
            return previous
        if offset != NO_OFFSET:
            if self._count >= MAX_OFFSETS:
                raise StoreError(f"there are {MAX_OFFSETS} consumer offsets already")
            key = topic + _SEPARATOR + group
            if key not in self._offsets:
                self._offsets[key] = {}
                self._add_key(key)
            self._offsets[key][queue_id] = offset
            self._count += 1
            self._unsaved[key] = None
        return NO_OFFSET

    def update(self, group: str, topic: str, queue_id: int, offset: int) -> int | None:
        """Replace an offset, and return the previous one; None if there is none, and none is stored."""
        key = topic + _SEPARATOR + group
        offsets = self._offsets.get(key)
        previous = None if offsets is None else offsets.get(queue_id)
        if offsets is not None and previous is not None and previous != offset:
            offsets[queue_id] = offset
            self._unsaved[key] = None
        return previous

    def query(self, group: str, topic: str, queue_id: int) -> int:
        """Return the stored offset, ``NO_OFFSET`` if there is none."""
        offsets = self._offsets.get(topic + _SEPARATOR + group)
        return NO_OFFSET if offsets is None else offsets.get(queue_id, NO_OFFSET)

    def replace(self, group: str, offsets: Mapping[str, Mapping[int, int]]) -> None:
        """Replace a group's offsets in the given topics; none of these may have epochs.

        Args:
            offsets: topic to queue to offset.

        Raises:
            StoreError: there would be more than ``MAX_OFFSETS``; nothing has changed.
        """
        fresh = {topic + _SEPARATOR + group: dict(queues) for topic, queues in offsets.items()}
        growth = sum(len(queues) - len(self._offsets.get(key, ())) for key, queues in fresh.items())
        if growth > 0 and self._count + growth > MAX_OFFSETS:
            raise StoreError(f"there are {self._count} consumer offsets already")
        self._offsets.update(fresh)
        for key in fresh:
            self._add_key(key)
            self._unsaved[key] = None
        self._count += growth

    def remove_group(self, group: str) -> list[str]:
        """Remove a group's offsets and epochs, and return their keys."""
        return [self._remove(topic + _SEPARATOR + group) for topic in self.topics_of(group)]

    def remove_topic(self, topic: str) -> Generator[None, None, list[str]]:
        """Remove the offsets and epochs of all groups in a topic, and return their keys.

        Yields after each slice.
        """
        keys = []
        for number, group in enumerate(list(self._topics), 1):
            if topic in self._topics.get(group, ()):
                keys.append(self._remove(topic + _SEPARATOR + group))
            if number % _GROUPS_PER_SLICE == 0:
                yield
        return keys

    def _remove(self, key: str) -> str:
        self._count -= len(self._offsets.pop(key))
        self._last_removed_epoch = max((self._last_removed_epoch, *self._epochs.pop(key, {}).values()))
        parts = key.split(_SEPARATOR)
        if len(parts) == _PARTS:
            topic, group = parts
            del self._topics[group][topic]
            if not self._topics[group]:
                del self._topics[group]
        self._unsaved[key] = None
        return key

    def epoch(self, group: str, topic: str, queue_id: int) -> int:
        """Return the queue's number of resets in fenced mode; called for every commit and pull."""
        if not self._epochs:
            return 0
        epochs = self._epochs.get(topic + _SEPARATOR + group)
        return 0 if epochs is None else epochs.get(queue_id, 0)

    def record(self, group: str, topic: str, queue_id: int) -> OffsetRecord:
        """Return offset and epoch together."""
        return OffsetRecord(self.query(group, topic, queue_id), self.epoch(group, topic, queue_id))

    def has_epochs(self, group: str, topic: str) -> bool:
        """Return True if any of the group's queues in the topic was ever reset in fenced mode."""
        return topic + _SEPARATOR + group in self._epochs

    def offsets_of(self, group: str, topic: str) -> dict[int, int]:
        """Return a copy of the group's offsets in the topic, by queue id."""
        return dict(self._offsets.get(topic + _SEPARATOR + group, ()))

    def topics_of(self, group: str) -> list[str]:
        """Return the group's topics with offsets. As in RocketMQ, keys with a second ``@`` are ignored."""
        return list(self._topics.get(group, ()))

    def groups_of(self, topic: str) -> list[str]:
        """Return the groups that have offsets for the topic."""
        return [group for group, topics in self._topics.items() if topic in topics]

    def _add_key(self, key: str) -> None:
        parts = key.split(_SEPARATOR)
        if len(parts) == _PARTS:
            topic, group = parts
            self._topics.setdefault(group, {})[topic] = None

    def load(self) -> None:
        """Read the file, see ``ConfigFile.load``. Raise StoreError if it cannot be read."""
        read = self._file.load(_read_document) or ({}, {}, 0, None)
        self._offsets, self._epochs, self._last_removed_epoch, self._version = read
        self._count = sum(map(len, self._offsets.values()))
        self._topics = {}
        for key in self._offsets:
            self._add_key(key)
        self._unsaved, self._refused = {}, ()
        self._written = (
            {key: dict(queues) for key, queues in self._offsets.items()},
            {key: dict(queues) for key, queues in self._epochs.items()},
        )

    def persist(self) -> bool:
        """Write the file if anything changed since it was last written.

        Returns:
            True if the file was written.

        Raises:
            StoreError: the disk failed; the next call tries again.
        """
        self._note_refused()
        if not self._unsaved:
            return False
        self.save(self._take(len(self._unsaved)))
        return True

    def take(self, first: Iterable[str] = ()) -> OffsetChanges | None:
        """Return what ``save`` has to write; None if nothing has changed since the last call.

        Every copy must be saved before the next one is taken. After very many changes it is only a part of
        them: then ``has_more`` is True.

        Args:
            first: keys whose changes it has in any case.
        """
        self._note_refused()
        urgent = [key for key in first if key in self._unsaved]
        return self._take(_CHANGES_PER_WRITE, urgent) if self._unsaved else None

    @property
    def has_more(self) -> bool:
        """Return True if the last copy was only a part of the changes."""
        return self._has_more

    def _note_refused(self) -> None:
        for key in self._refused:
            self._unsaved[key] = None
        self._refused = ()

    def _take(self, limit: int, urgent: Iterable[str] = ()) -> OffsetChanges:
        changed = dict.fromkeys((*urgent, *islice(self._unsaved, limit)))
        for key in changed:
            del self._unsaved[key]
        self._has_more = bool(self._unsaved)
        return OffsetChanges(
            _copies(self._offsets, changed), _copies(self._epochs, changed), self._last_removed_epoch
        )

    def check_room(self, group: str, topic: str, queue_ids: Collection[int]) -> None:
        """Check that offsets for all these queues can be stored.

        Raises:
            StoreError: new offsets would exceed ``MAX_OFFSETS``.
        """
        offsets = self._offsets.get(topic + _SEPARATOR + group, {})
        if self._count + sum(queue_id not in offsets for queue_id in queue_ids) > MAX_OFFSETS:
            raise StoreError(f"there are {self._count} consumer offsets already")

    def take_reset(self, group: str, topic: str, targets: Mapping[int, int]) -> OffsetChanges:
        """Return what ``save`` has to write before ``reset`` with the same arguments; nothing is reset yet.

        The broker must write a reset to disk before it sends the reset's epoch. Otherwise, after a crash, the
        next reset would use the same epoch again, for other deliveries.

        Args:
            targets: queue to offset.

        Raises:
            StoreError: see ``check_room``.
        """
        self.check_room(group, topic, targets)
        key = topic + _SEPARATOR + group
        self._note_refused()
        changes = self._take(_CHANGES_PER_WRITE)
        changes.offsets[key] = {**self._offsets.get(key, {}), **targets}
        changes.epochs[key] = {**self._epochs.get(key, {}), **self._next_epochs(key, targets)}
        return changes

    def reset(self, group: str, topic: str, targets: Mapping[int, int]) -> dict[int, int]:
        """Store offsets and raise their epochs, once ``take_reset`` is on disk.

        No other copy may be taken between ``take_reset`` and this call.

        Returns:
            Queue to new epoch.
        """
        key = topic + _SEPARATOR + group
        epochs = self._next_epochs(key, targets)
        offsets = self._offsets.setdefault(key, {})
        self._add_key(key)
        self._count += len(targets.keys() - offsets.keys())
        offsets.update(targets)
        self._epochs.setdefault(key, {}).update(epochs)
        return epochs

    def drop_reset(self, group: str, topic: str) -> None:
        """Let the next write undo ``take_reset``, which is on disk and does not take effect."""
        self._unsaved[topic + _SEPARATOR + group] = None

    def _next_epochs(self, key: str, targets: Mapping[int, int]) -> dict[int, int]:
        known = self._epochs.get(key, {})
        return {queue_id: known.get(queue_id, self._last_removed_epoch) + 1 for queue_id in targets}

    def copy_in_slices(self) -> Generator[None, None, tuple[_Table, _Table]]:
        """Copy all offsets and all epochs: ``topic@group`` to queue to number.

        Yields after each slice. Offsets and epochs of one key are copied together; keys may change between
        two slices.
        """
        offsets: _Table = {}
        epochs: _Table = {}
        left = _SLICE
        for key in list(self._offsets):
            queues = self._offsets.get(key)
            if queues is None:
                continue
            offsets[key] = dict(queues)
            if key in self._epochs:
                epochs[key] = dict(self._epochs[key])
            left -= 1 + len(queues) // _QUEUES_PER_KEY
            if left <= 0:
                left = _SLICE
                yield
        return offsets, epochs

    def take_over(
        self,
        offsets: Mapping[str, Mapping[int, int]],
        epochs: Mapping[str, Mapping[int, int]],
        *,
        removes: bool = False,
    ) -> None:
        """Replace offsets and epochs by the master's, one whole ``topic@group`` at a time.

        Args:
            removes: remove what the master does not have.

        Raises:
            StoreError: there would be more than ``MAX_OFFSETS``, or an epoch is invalid; nothing has changed.
        """
        kept = sum(len(queues) for key, queues in self._offsets.items() if key not in offsets)
        count = (0 if removes else kept) + sum(map(len, offsets.values()))
        if count > MAX_OFFSETS:
            raise StoreError(f"a master has {count} consumer offsets, the limit is {MAX_OFFSETS}")
        for key, queues in epochs.items():
            if not all(
                0 < epoch <= _MAX_EPOCH and queue in offsets.get(key, {}) for queue, epoch in queues.items()
            ):
                raise StoreError(f"a master has invalid epochs of {key}")
        if removes and kept:
            for key in [key for key in self._offsets if key not in offsets]:
                self._remove(key)
        for key, offsets_of_key in offsets.items():
            epochs_of_key = dict(epochs.get(key, {}))
            if self._offsets.get(key) != offsets_of_key or self._epochs.get(key, {}) != epochs_of_key:
                self._offsets[key] = dict(offsets_of_key)
                self._add_key(key)
                self._epochs.pop(key, None)
                if epochs_of_key:
                    self._epochs[key] = epochs_of_key
                self._unsaved[key] = None
        self._count = count

    def save(self, changes: OffsetChanges) -> None:
        """Write the file; may run on a worker thread while offsets are stored.

        Raises:
            StoreError: the disk failed, also for the log; the changes are part of the next copy.
        """
        offsets, epochs = self._written
        _apply(offsets, changes.offsets)
        _apply(epochs, changes.epochs)
        try:
            if self._before_save is not None:
                self._before_save()
            self._file.save(self._document(offsets, epochs, changes.last_removed_epoch))
        except BaseException:
            self._refused = changes.offsets.keys()
            raise

    def text(self) -> str:
        """Return the present table as the file's text."""
        return format_config(self._document(self._offsets, self._epochs, self._last_removed_epoch))

    def _document(self, offsets: _Table, epochs: _Table, last_removed_epoch: int) -> dict[str, Any]:
        return {
            "dataVersion": self._version,
            "offsetTable": offsets,
            "epochTable": epochs or None,
            "lastRemovedEpoch": last_removed_epoch or None,
        }


def _copies(table: _Table, keys: Iterable[str]) -> dict[str, dict[int, int] | None]:
    return {key: dict(table[key]) if key in table else None for key in keys}


def _apply(table: _Table, changes: Mapping[str, dict[int, int] | None]) -> None:
    for key, queues in changes.items():
        if queues is None:
            table.pop(key, None)
        else:
            table[key] = queues


def _read_document(document: Any) -> tuple[_Table, _Table, int, Any]:
    """Return offsets, epochs, the last removed epoch and the version of a parsed file.

    5.x's other fields derive from the offsets.
    """
    offsets = _read_table(document, "offsetTable", "offset")
    epochs = _read_table(document, "epochTable", "epoch")
    for key, queues in epochs.items():
        for queue_id, epoch in queues.items():
            if not 0 < epoch <= _MAX_EPOCH:
                raise ValueError(f"epoch {epoch} of queue {queue_id} of {key} is out of range")
            if offsets.get(key, {}).get(queue_id, NO_OFFSET) < 0:
                raise ValueError(f"queue {queue_id} of {key} has an epoch but no offset")
    removed = document.get("lastRemovedEpoch")
    if removed is not None and not (type(removed) is int and 0 < removed <= _MAX_EPOCH):
        raise ValueError(f"lastRemovedEpoch {removed!r} is out of range")
    epochs = {key: queues for key, queues in epochs.items() if queues}
    return offsets, epochs, removed or 0, document.get("dataVersion")


def _read_table(document: Any, member: str, what: str) -> _Table:
    table = document.get(member)
    if table is None:
        return {}
    if not isinstance(table, dict):
        raise ValueError(f"{member} is not an object")
    for key, queues in table.items():
        if not isinstance(queues, dict):
            raise ValueError(f"{member}: {key} is not an object of queues")
    return {key: _read_queues(queues, what) for key, queues in table.items()}


def _read_queues(queues: Mapping[Any, Any], what: str) -> dict[int, int]:
    read = {}
    for queue_id, number in queues.items():
        if type(number) is not int:
            raise ValueError(f"{what} {number!r} of queue {queue_id} is not a whole number")
        read[int(queue_id)] = number
    return read
