"""A server handles the requests of the release that it imitates, and no others."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rewindmq.broker.handlers import HANDLERS
from rewindmq.namesrv.handlers import HANDLERS as NAMESRV_HANDLERS
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.profile import RELEASES, Profile
from rewindmq.protocol.remoting.handler_table import SINCE
from tests.support.fixtures import played
from tests.support.stage import SimStage

# By the constants of ``RequestCode`` in the published jars of rocketmq-common 4.2.0 and 4.9.7.
POP = {200050, 200051, 200052, 200053, 200054, 200055, 200151}
NOT_IN_42 = {18, 60, 225, 322, 324, 325, 327, 328, 329, 351, 352, 361, 370, 400, 401, 513, 907, 908} | POP
NOT_IN_49 = {18, 60, 225, 351, 352, 361, 370, 400, 401, 513, 907, 908} | POP
UNKNOWN: Mapping[Profile, set[int]] = {Profile.V42: NOT_IN_42, Profile.V49: NOT_IN_49, Profile.V53: set()}


async def unsupported(stage: SimStage, codes: Mapping[RequestCode, object], address: str) -> set[int]:
    """Return the codes that the server does not know."""
    found = set()
    for code in codes:
        # A connection for each, because a bad request may end it.
        response = await stage.peer(f"c{code}", address).ask(code, timeout=60.0)
        if response.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
            found.add(int(code))
    return found


@pytest.mark.parametrize("profile", RELEASES)
@played()
async def test_a_server_refuses_the_requests_of_later_releases(stage: SimStage, profile: Profile) -> None:
    assert await unsupported(stage, HANDLERS, stage.broker.address) == UNKNOWN[profile] & HANDLERS.keys()
    served = await unsupported(stage, NAMESRV_HANDLERS, stage.namesrv)
    assert served == UNKNOWN[profile] & NAMESRV_HANDLERS.keys()


def test_every_request_of_the_table_has_a_handler() -> None:
    assert SINCE.keys() <= HANDLERS.keys() | NAMESRV_HANDLERS.keys()
