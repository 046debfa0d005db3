"""A process that is killed while it stores: nothing acknowledged is lost, nothing torn is served."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rewindmq.broker.store import GetMessageStatus
from rewindmq.protocol.message.record import crc_ok, decode_records
from tests.broker.store.store_box import StoreBox

WRITER = """
import sys
from pathlib import Path
from rewindmq.broker.store import BatchEntry, MessageStore, PutStatus, StoreConfig, StoredMessage
config = StoreConfig(mapped_file_size_commit_log=65536, mapped_file_size_consume_queue=6000)
store = MessageStore(Path(sys.argv[1]), config, lambda: 1000)
store.open()
number = 0
while True:
    bodies = [b"%06d" % (number + index) * 50 for index in range(3)]
    first = store.put_message(StoredMessage("T", 0, bodies[0]))
    rest = store.put_batch(StoredMessage("T", 0, b""), [BatchEntry(body, b"") for body in bodies[1:]])
    assert first.status is rest.status is PutStatus.PUT_OK
    number += 3
    print(number, flush=True)
"""


@pytest.mark.parametrize("acknowledged", [3, 600, 3_000])
def test_a_killed_writer_loses_nothing_it_acknowledged(box: StoreBox, acknowledged: int) -> None:
    command = [sys.executable, "-c", WRITER, str(box.root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        count = 0
        while count < acknowledged:
            count = int(writer.stdout.readline())
        writer.kill()
        # Messages that it printed before the signal were acknowledged, too.
        lines = writer.stdout.read().splitlines(keepends=True)
    count = max([count] + [int(line) for line in lines if line.endswith(b"\n")])
    assert (box.root / "abort").exists()
    store = box.open()
    maximum = store.max_offset("T", 0)
    assert count <= maximum <= count + 3
    bodies: list[bytes] = []
    while len(bodies) < maximum:
        result = store.get_message("T", 0, len(bodies), 32, None)
        assert result.status is GetMessageStatus.FOUND
        records = decode_records(result.body)
        assert all(crc_ok(record) for record in records)
        bodies += [record.stored_body for record in records]
    assert bodies == [b"%06d" % number * 50 for number in range(maximum)]
    assert box.put(store).queue_offset == maximum
