"""Fixtures of the endpoints' tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from rewindmq.protocol.remoting.runtime import system_runtime
from rewindmq.race.sim import World
from tests.protocol.remoting.remoting_stage import RemotingStage


@pytest.fixture
def world() -> World:
    return World(seed=1)


@pytest.fixture
async def stage() -> AsyncIterator[RemotingStage]:
    async with AsyncExitStack() as exits:
        yield RemotingStage(system_runtime(seed=1), exits)
