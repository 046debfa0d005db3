"""What the tests of the kernels share: a broker with two topics, and reads of two connections."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st

from rewindmq.protocol.frame import FrameDecoder
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.speedups import SpeedupsModule
from tests.speedups.requests import create_topic, frames, heartbeat, send
from tests.speedups.twins import Encoded, TwinState, TwinStep, play_twice

PROFILES: Final = (Profile.V42, Profile.V49, Profile.V53)
# A topic's first send makes it, and the response waits for the disk.
BEGIN: Final = (
    TwinStep(create_topic("T") + create_topic("U") + heartbeat(), seconds=1.0),
    *(TwinStep(b"".join(send(topic, queue) for topic in "TU"), seconds=1.0) for queue in range(4)),
)


def play(speedups: SpeedupsModule, *steps: TwinStep, **more: Any) -> tuple[TwinState, Encoded]:
    """Play the steps after ``BEGIN``; return what came of them, and what the kernels encoded."""
    pure, native, encoded = play_twice(speedups, (*BEGIN, *steps), **more)
    assert native == pure
    return native, encoded


def answers(outcome: TwinState, connection: int = 0) -> list[Any]:
    return FrameDecoder().feed(outcome.sent[connection])


@st.composite
def reads(draw: st.DrawFn) -> tuple[TwinStep, ...]:
    """Reads of two connections: their frames, cut anywhere, in turns."""
    steps = []
    left = [b"".join(draw(st.lists(frames, max_size=14))) for _ in range(2)]
    while any(left):
        connection = draw(st.sampled_from([number for number in range(2) if left[number]]))
        size = draw(st.one_of(st.just(1 << 20), st.integers(1, 600)))
        data, left[connection] = left[connection][:size], left[connection][size:]
        steps.append(
            TwinStep(
                data,
                connection,
                draw(st.sampled_from((0, 0, 1, 1_000, -10))),
                draw(st.sampled_from((0.0, 0.0, 0.0, 1.0))),
                draw(st.sampled_from((None,) * 12 + (True, False))),
            )
        )
    return tuple(steps)
