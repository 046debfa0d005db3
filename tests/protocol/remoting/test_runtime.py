"""The runtime of a real process."""

from __future__ import annotations

import asyncio
import threading

import pytest

from rewindmq.protocol.remoting.address import format_address, parse_address
from rewindmq.protocol.remoting.runtime import system_runtime


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "0.0.0.0"])
async def test_a_listener_has_one_ipv4_address(host: str) -> None:
    network = system_runtime().network
    listener = await network.listen(asyncio.Protocol, host, 0)
    transport, _ = await network.connect(asyncio.Protocol, "127.0.0.1", listener.port)
    assert listener.host in ("127.0.0.1", "0.0.0.0")
    transport.abort()
    listener.close()


async def test_scaled_timers_shorten_waits_but_not_bounds_on_answers() -> None:
    runtime = system_runtime(time_scale=0.001)
    loop = asyncio.get_running_loop()
    start, protocol_start = loop.time(), runtime.clock.monotonic()
    bound = runtime.timers.call_timeout(30.0, pytest.fail, "fired")
    await runtime.timers.sleep(20.0)
    assert 0.019 < loop.time() - start < 20.0
    assert runtime.clock.monotonic() - protocol_start >= 19.9
    bound.cancel()


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan")])
def test_a_time_scale_is_greater_than_0(scale: float) -> None:
    with pytest.raises(ValueError, match="time_scale must be greater than 0"):
        system_runtime(time_scale=scale)


async def test_workers_run_off_the_event_loop() -> None:
    workers = system_runtime(max_workers=1).workers
    assert await workers.run(threading.get_ident) != threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        await workers.run(divmod, 1, 0)
    workers.close()


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:9876", "127.0.0.1", 9876),
        (" broker-a.example:10911 ", "broker-a.example", 10911),
        ("[::1]:9876", "::1", 9876),
        ("::1:9876", "::1", 9876),
    ],
)
def test_addresses_are_host_and_port(text: str, host: str, port: int) -> None:
    assert parse_address(text) == (host, port)
    assert parse_address(format_address((host, port))) == (host, port)


@pytest.mark.parametrize("text", ["", ":9876", "host", "host:", "host:0", "host:65536", "host:-1", "host:٣"])
def test_other_texts_are_no_addresses(text: str) -> None:
    with pytest.raises(ValueError, match="is not of the form host:port"):
        parse_address(text)


def test_a_socket_that_is_gone_has_no_address() -> None:
    assert format_address(None) == "unknown"
