"""``import rewindmq``: its names, their list in docs/api.md, and the modules that it loads."""

from __future__ import annotations

import pydoc
import re
import subprocess
import sys

import pytest

import rewindmq
from tests.support.repository import ROOT

PAGE = (ROOT / "docs/api.md").read_text()


def test_the_page_lists_exactly_the_public_names() -> None:
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \|$", PAGE, re.MULTILINE)
    assert sorted(rows) == rewindmq.__all__


@pytest.mark.parametrize("name", rewindmq.__all__)
def test_each_public_name_exists_and_is_the_name_of_its_value(name: str) -> None:
    value = getattr(rewindmq, name)
    # An alias of a function type has no name of its own.
    assert getattr(value, "__name__", name) in (name, "Callable")
    assert name in dir(rewindmq)


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(rewindmq, "Consumer")
    with pytest.raises(ImportError, match="Consumer"):
        exec("from rewindmq import Consumer")


def test_help_shows_the_classes() -> None:
    text = pydoc.plain(pydoc.render_doc(rewindmq))
    assert "class PushConsumer(" in text
    assert "class LocalCluster(" in text


def modules_loaded_by(program: str) -> set[str]:
    code = f"import sys; before = set(sys.modules); {program}; print(*sorted(set(sys.modules) - before))"
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(outcome.stdout.split())


def test_importing_the_package_loads_no_event_loop_and_no_codec() -> None:
    loaded = modules_loaded_by("import rewindmq; dir(rewindmq)")
    assert not {"asyncio", "msgspec", "msgpack", "uvloop"} & loaded
    assert {name for name in loaded if name.startswith("rewindmq")} == {"rewindmq"}


def test_a_name_loads_only_the_modules_that_it_needs() -> None:
    loaded = modules_loaded_by("from rewindmq import ResetMode")
    assert "rewindmq.protocol.reset_mode" in loaded
    assert "asyncio" not in loaded
    assert not {name for name in modules_loaded_by("from rewindmq import LocalCluster") if "client." in name}


@pytest.mark.parametrize("package", ["client", "cluster"])
def test_the_packages_client_and_cluster_export_no_names(package: str) -> None:
    assert not hasattr(__import__(f"rewindmq.{package}", fromlist=["_"]), "__all__")
    with pytest.raises(ImportError):
        exec(f"from rewindmq.{package} import Producer, LocalCluster")
