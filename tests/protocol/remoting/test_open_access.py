"""Protected by default: which hosts only this machine can connect to."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from rewindmq.protocol.errors import ConfigError
from rewindmq.protocol.remoting.process.open_access import is_loopback, refuse_open_access

LOOPBACK = ("127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1", "localhost")
OPEN = ("0.0.0.0", "::", "", "192.0.2.1", "10.0.0.1", "2001:db8::1", "::ffff:192.0.2.1", "0", "fe80::1")


@pytest.mark.parametrize("host", LOOPBACK)
def test_a_loopback_host_needs_no_permission(host: str) -> None:
    assert is_loopback(host)
    refuse_open_access(host, allow_open_access=False)


@pytest.mark.parametrize("host", OPEN)
def test_any_other_host_is_refused_unless_allowed(host: str) -> None:
    with pytest.raises(ConfigError, match=r"allowOpenAccess=true"):
        refuse_open_access(host, allow_open_access=False)
    refuse_open_access(host, allow_open_access=True)


@pytest.mark.parametrize(
    ("addresses", "is_safe"),
    [(["127.0.0.1"], True), (["127.0.0.1", "192.0.2.1"], False), (["192.0.2.1"], False)],
)
def test_a_name_is_safe_if_all_its_addresses_are(
    monkeypatch: pytest.MonkeyPatch, addresses: list[str], is_safe: bool
) -> None:
    def resolve(*_: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    assert is_loopback("broker.example") is is_safe


def test_a_name_that_does_not_resolve_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    assert not is_loopback("nowhere.example")
