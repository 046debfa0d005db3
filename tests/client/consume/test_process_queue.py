"""ProcessQueue (docs/spec/client.md C.6)."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from rewindmq.client.consume.process_queue import ProcessQueue
from tests.client.client_records import message


def filled(*offsets: int) -> ProcessQueue:
    queue = ProcessQueue(0.0)
    queue.put_messages([message(offset) for offset in offsets])
    return queue


def test_progress_never_passes_an_unfinished_message() -> None:
    queue = filled(10, 11, 12)
    assert queue.remove_messages([message(11)]) == 10
    assert queue.remove_messages([message(10)]) == 12
    assert queue.remove_messages([message(12)]) == 13


def test_C11_nothing_is_committed_after_clear() -> None:
    queue = filled(10, 11)
    queue.clear()
    assert queue.remove_messages([message(10)]) == -1


def test_E04_a_response_after_clear_revives_the_commit() -> None:
    queue = filled(10, 11)
    queue.dropped = True
    queue.clear()
    queue.put_messages([message(12)])
    assert queue.remove_messages([message(10)]) == 12
    assert queue.dropped


def test_clear_leaves_dropped_alone() -> None:
    queue = filled(1)
    queue.clear()
    assert not queue.dropped
    assert (queue.cached_count, queue.cached_bytes, queue.highest_offset) == (0, 0, 0)


def test_pull_expires_after_more_than_120_seconds() -> None:
    queue = ProcessQueue(0.0)
    assert not queue.is_pull_expired(120.0)
    assert queue.is_pull_expired(120.1)


class Model:
    """A ProcessQueue that sorts everything at each step."""

    def __init__(self) -> None:
        self.cached: dict[int, int] = {}
        self.highest = 0

    def put(self, offsets: list[int]) -> None:
        for offset in offsets:
            if offset not in self.cached:
                self.highest = offset
            self.cached[offset] = offset % 7 + 1

    def remove(self, offsets: list[int]) -> int:
        if not self.cached:
            return -1
        for offset in offsets:
            self.cached.pop(offset, None)
        return min(self.cached) if self.cached else self.highest + 1


_OFFSETS = st.lists(st.integers(0, 60), min_size=1, max_size=12, unique=True)
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), _OFFSETS.map(sorted)),
        st.tuples(st.just("remove"), _OFFSETS),
        st.tuples(st.just("clear"), st.just([])),
    ),
    max_size=30,
)


@settings(derandomize=True, deadline=None)
@given(_STEPS)
def test_a_process_queue_behaves_like_its_model(steps: list[tuple[str, list[int]]]) -> None:
    queue, model = ProcessQueue(0.0), Model()
    for action, offsets in steps:
        if action == "put":
            queue.put_messages([message(offset, b"b" * (offset % 7 + 1)) for offset in offsets])
            model.put(offsets)
        elif action == "remove":
            removed = [message(offset) for offset in offsets]
            assert queue.remove_messages(removed) == model.remove(offsets)
        else:
            queue.clear()
            model.__init__()  # type: ignore[misc]
        assert queue.cached_count == len(model.cached)
        assert queue.cached_bytes == sum(model.cached.values())
        expected = max(model.cached) - min(model.cached) if model.cached else 0
        assert queue.span == expected
