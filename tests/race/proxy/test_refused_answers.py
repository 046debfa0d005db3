"""Responses that a hold turns into refusals."""

from __future__ import annotations

import pytest

from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import FLAG_RESPONSE, RemotingCommand, SerializeType
from rewindmq.protocol.frame import FrameDecoder, encode_frame
from rewindmq.race.errors import RaceError
from rewindmq.race.history import Lab
from rewindmq.race.proxy.frame import as_refusal
from rewindmq.race.proxy.pattern import Form, FramePattern
from rewindmq.race.stage.stage import Stage
from tests.race.stages import simulate

QUERY = RequestCode.QUERY_CONSUMER_OFFSET


@pytest.mark.parametrize("codec", SerializeType)
def test_a_refusal_answers_the_same_request_in_the_same_codec(codec: SerializeType) -> None:
    answer = RemotingCommand(0, body=b"x", opaque=77, flag=FLAG_RESPONSE, ext_fields={"offset": "5"})
    (refusal,) = FrameDecoder().feed(as_refusal(encode_frame(answer, codec), 2, "busy"))
    assert (refusal.code, refusal.remark, refusal.opaque) == (2, "busy", 77)
    assert refusal.is_response
    assert refusal.serialize_type is codec
    assert not refusal.ext
    assert not refusal.body


def test_the_consumer_gets_the_refusal_and_the_history_records_it() -> None:
    async def play(stage: Stage) -> None:
        await stage.open()
        hold = stage.hold(FramePattern(QUERY, Form.RESPONSE), consumer="A")
        await stage.consumer("A")
        await hold.wait()
        hold.refuse(ResponseCode.SYSTEM_BUSY, "busy")
        await stage.sleep(1)

    arrived = simulate(play).of(Lab.FRAME_ARRIVED, process="consumer-A", code=int(QUERY), form="response")
    assert arrived[0].details["response_code"] == ResponseCode.SYSTEM_BUSY
    assert "offset" not in arrived[0].details["fields"]


def test_a_request_cannot_be_refused() -> None:
    async def play(stage: Stage) -> None:
        await stage.open()
        hold = stage.hold(FramePattern(QUERY, Form.REQUEST), consumer="A")
        await stage.consumer("A")
        await hold.wait()
        with pytest.raises(RaceError, match="only responses can be turned into refusals"):
            hold.refuse(ResponseCode.SYSTEM_BUSY, "busy")
        hold.release()

    simulate(play)
