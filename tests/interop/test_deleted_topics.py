"""A store whose topic was deleted and created again, opened by RocketMQ and RewindMQ in turn.

RewindMQ ends a topic's life with a record in the log, which RocketMQ passes over. A log of RocketMQ has no
such record: the queue offsets tell the lives apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.admin import DeleteTopicRequestHeader
from rewindmq.protocol.header.send import SendMessageRequestHeaderV2, SendMessageResponseHeader
from rewindmq.protocol.message.record import decode_records
from tools.interop.raw import ask, create_topic
from tools.interop.rewindmq_servers import RewindMQBroker, RewindMQNamesrv
from tools.interop.servers import RocketMQBroker
from tools.interop.store_chain import OF_RELEASE, PROFILES, AnyBroker
from tools.interop.store_fill import CONFIG
from tools.interop.store_view import Peer, wait_dispatched
from tools.interop.versions import SERVER_4, SERVER_5

SECONDS: Final = 60.0


class Store:
    """One store that brokers of both kinds open in turn."""

    def __init__(self, release: str, folder: Path, namesrv: str) -> None:
        self._release = release
        self._folder = folder
        self._namesrv = namesrv
        self._expected: list[tuple[int, bytes]] = []
        self._number = 0

    @contextmanager
    def opened(self, *, by_rocketmq: bool) -> Iterator[AnyBroker]:
        store, namesrv = self._folder / "store", self._namesrv
        (self._folder / "real").mkdir(exist_ok=True)
        broker: Any
        if by_rocketmq:
            config = CONFIG | OF_RELEASE[self._release]
            broker = RocketMQBroker(self._release, namesrv, self._folder / "real", store, config)
        else:
            broker = RewindMQBroker(
                PROFILES[self._release], namesrv, self._folder / "rewindmq", store, CONFIG
            )
        try:
            wait_dispatched(broker.address)
            self._check(broker.address)
            yield broker
        finally:
            broker.stop()

    def send(self, broker: AnyBroker, count: int) -> None:
        """Send messages to the topic, and one to another topic."""
        for topic in [*["Again"] * count, "Kept"]:
            body = b"%d" % self._number
            self._number += 1
            header = SendMessageRequestHeaderV2("PG", topic, "TBW102", 4, 0, 0, 1, 0)
            command = RemotingCommand(RequestCode.SEND_MESSAGE_V2, header, body)
            stored = ask(broker.address, command, seconds=SECONDS).require_success()
            if topic == "Again":
                offset = stored.decode_header(SendMessageResponseHeader).queue_offset
                assert offset == len(self._expected)
                self._expected.append((offset, body))
        wait_dispatched(broker.address)

    def renew(self, broker: AnyBroker) -> None:
        """Delete the topic and create it again."""
        header = DeleteTopicRequestHeader("Again")
        command = RemotingCommand(RequestCode.DELETE_TOPIC_IN_BROKER, header)
        ask(broker.address, command, seconds=SECONDS).require_success()
        create_topic(broker.address, "Again", 1)
        self._expected = []

    def _check(self, address: str) -> None:
        """Check that the topic has the messages of its present life."""
        with Peer(address) as peer:
            assert peer.max_offset("Again", 0) == len(self._expected)
            records = peer.records("Again", 0) if self._expected else b""
        assert isinstance(records, bytes)
        assert [(message.queue_offset, message.stored_body) for message in decode_records(records)] == (
            self._expected
        )


@pytest.mark.interop(full_only="tests/broker/store has the lives of a topic")
@pytest.mark.parametrize("release", [SERVER_4, SERVER_5])
def test_lives_of_a_topic_stay_apart_from_broker_to_broker(tmp_path: Path, release: str) -> None:
    namesrv = RewindMQNamesrv(PROFILES[release], tmp_path / "namesrv")
    try:
        store = Store(release, tmp_path, namesrv.address)
        with store.opened(by_rocketmq=False) as broker:
            for topic in ("Again", "Kept"):
                create_topic(broker.address, topic, 1)
            store.send(broker, 5)
            store.renew(broker)
            store.send(broker, 3)
            broker.kill()
        with store.opened(by_rocketmq=True) as broker:
            store.send(broker, 2)
            store.renew(broker)
            store.send(broker, 4)
            broker.kill()
        with store.opened(by_rocketmq=False) as broker:
            store.send(broker, 1)
            store.renew(broker)
            broker.kill()
        with store.opened(by_rocketmq=False) as broker:
            store.send(broker, 1)
            broker.stop()
        with store.opened(by_rocketmq=True) as broker:
            store.send(broker, 2)
            broker.stop()
        with store.opened(by_rocketmq=False) as broker:
            store.send(broker, 1)
    finally:
        namesrv.stop()
