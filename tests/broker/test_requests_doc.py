"""docs/requests.md matches the handler tables, and the handlers' docstrings have what it needs."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from unittest.mock import Mock

import pytest

from rewindmq.broker.handlers import HANDLERS
from rewindmq.client.core.broker_requests import BrokerRequests
from rewindmq.namesrv.handlers import HANDLERS as NAMESRV_HANDLERS
from rewindmq.protocol.code import RequestCode

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def requests_doc() -> ModuleType:
    spec = importlib.util.spec_from_file_location("requests_doc", ROOT / "scripts" / "requests_doc.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_committed_document_is_current(requests_doc: ModuleType) -> None:
    committed = requests_doc.TARGET.read_text()
    assert committed == requests_doc.render(), "run ./scripts/generate_requests_doc"


def test_no_code_is_both_served_and_refused(requests_doc: ModuleType) -> None:
    assert not HANDLERS.keys() & requests_doc.REFUSED.keys()


def test_what_clients_serve_is_what_the_broker_sends_them(requests_doc: ModuleType) -> None:
    served = BrokerRequests(Mock()).handlers()
    assert served.keys() == requests_doc.TO_CLIENTS.keys()


def test_what_the_broker_sends_to_servers_they_serve(requests_doc: ModuleType) -> None:
    assert requests_doc.TO_SERVERS.keys() <= HANDLERS.keys() | NAMESRV_HANDLERS.keys()


def test_no_served_code_is_listed_as_unsupported(requests_doc: ModuleType) -> None:
    unserved = requests_doc.render().partition("## Neither served nor sent")[2]
    for code in (*HANDLERS, *NAMESRV_HANDLERS, *requests_doc.TO_CLIENTS, *requests_doc.REFUSED):
        assert f" {code.name}," not in unserved


@pytest.mark.parametrize("code", sorted(HANDLERS), ids=lambda code: code.name)
def test_each_handler_has_a_module_that_names_its_code_and_what_is_kept(code: RequestCode) -> None:
    text = sys.modules[HANDLERS[code].__module__].__doc__
    assert text is not None
    assert text.startswith(f"{code.name} ({code.value}): ")
    for word in ("Kept", "efused"):
        assert word in text
