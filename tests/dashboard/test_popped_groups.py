"""The page of a group that pops: its messages in flight."""

from __future__ import annotations

import pytest

from rewindmq.protocol.body.stats import ConsumeStats, OffsetWrapper
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.remoting.runtime import system_runtime
from tests.dashboard.scripted import Answers, name_server, scripted
from tests.dashboard.site import dashboard


@pytest.mark.parametrize("counts", [(2, 1), (None, None)])
async def test_a_group_shows_its_messages_in_flight(counts: tuple[int | None, int | None]) -> None:
    rows = {
        MessageQueue("t", "b", queue_id): OffsetWrapper(9, 9, 1, pop_inflight=count)
        for queue_id, count in enumerate(counts)
    }
    answers: Answers = {
        RequestCode.GET_CONSUME_STATS: lambda _, request: RemotingCommand(
            ResponseCode.SUCCESS, None, ConsumeStats(rows)
        ),
        RequestCode.GET_CONSUMER_CONNECTION_LIST: lambda _, request: RemotingCommand(
            ResponseCode.CONSUMER_NOT_ONLINE
        ),
    }
    async with (
        scripted(system_runtime(), "127.0.0.1", answers) as broker,
        scripted(system_runtime(), "127.0.0.1", name_server({"b": broker.address})) as namesrv,
        dashboard(namesrv.address) as site,
    ):
        page = (await site.get("/groups/g")).text
    assert ("<dt>In flight</dt><dd>3 <small>popped</small>" in page) is (counts[0] is not None)
    assert ("In flight" in page) is (counts[0] is not None)
