"""The files of a deleted topic's queues: a worker thread deletes them, whatever the queues do meanwhile."""

from __future__ import annotations

import threading
from pathlib import Path

from rewindmq.broker.store import MessageStore
from rewindmq.broker.store.files.disk import OsDisk
from rewindmq.protocol.remoting.slices.run import run_at_once
from tests.broker.store.store_box import StoreBox
from tests.support.process import TIMEOUT

QUEUES = 20


class NotingDisk(OsDisk):
    """Notes which thread deletes a file of a queue, and lets the first deletion wait."""

    def __init__(self) -> None:
        self.deleted: list[tuple[Path, int]] = []
        self.begun = threading.Event()
        self.may_go_on = threading.Event()

    def remove(self, path: Path) -> None:
        if "consumequeue" in path.parts:
            self.deleted.append((path, threading.get_ident()))
            self.begun.set()
            assert self.may_go_on.wait(TIMEOUT)
        super().remove(path)


def _filled(box: StoreBox, disk: NotingDisk) -> MessageStore:
    store = box.open(disk)
    for queue_id in range(QUEUES):
        box.put(store, queue_id=queue_id)
    store.cleaner.end_topic("T")
    return store


def _worker(store: MessageStore) -> threading.Thread:
    worker = threading.Thread(target=store.cleaner.delete_former_files)
    worker.start()
    return worker


def test_the_loops_thread_deletes_nothing_after_the_worker(box: StoreBox) -> None:
    disk = NotingDisk()
    disk.may_go_on.set()
    store = _filled(box, disk)
    worker = _worker(store)
    worker.join(TIMEOUT)
    assert run_at_once(store.cleaner.delete_former()) == QUEUES
    assert len({path for path, _ in disk.deleted}) == len(disk.deleted) == QUEUES
    assert {thread for _, thread in disk.deleted} == {worker.ident}
    assert not store.cleaner.has_former


def test_a_message_of_the_new_topic_stays_while_the_worker_deletes_the_old_file(box: StoreBox) -> None:
    """Both files have one name. The new one is made when the old one is gone, and is not deleted."""
    disk = NotingDisk()
    store = _filled(box, disk)
    worker = _worker(store)
    assert disk.begun.wait(TIMEOUT)
    release = threading.Timer(0.0, disk.may_go_on.set)
    release.start()
    results = [box.put(store, queue_id=queue_id, body=b"new") for queue_id in range(QUEUES)]
    worker.join(TIMEOUT)
    release.join()
    run_at_once(store.cleaner.delete_former())
    assert [result.queue_offset for result in results] == [0] * QUEUES
    assert len(disk.deleted) == QUEUES
    store.close()
    again = box.open()
    for queue_id, result in enumerate(results):
        found = again.entry("T", queue_id, 0)
        assert found is not None
        assert found[0] == result.physical_offset
        assert again.max_offset("T", queue_id) == 1
