"""The allocator of a server process; each case has a process of its own, as the setting stays."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

_PROGRAM = """\
import resource
{begin}
def page_faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def handle_reads():
    # Three objects as of a read of 256 KiB: its bytes, the records and the responses.
    for _ in range(100):
        read = b"x" * 262_144
        records = b"x" * 300_000
        responses = b"x" * 60_000
        del read, records, responses
handle_reads()
before = page_faults()
handle_reads()
print(page_faults() - before)
"""
_KEEP = "from rewindmq.protocol.remoting.process.allocator import keep_freed_memory\nkeep_freed_memory()"


def page_faults(begin: str) -> int:
    """Return the page faults of a hundred reads."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(begin=begin)], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has mallopt")
def test_the_memory_of_one_read_serves_the_next_without_page_faults() -> None:
    assert page_faults(_KEEP) < 100


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has mallopt")
def test_without_the_setting_each_read_has_page_faults() -> None:
    """If this fails, glibc has changed its default, and the setting may be unnecessary."""
    assert page_faults("") > 1_000


def test_a_system_without_mallopt_keeps_its_allocator() -> None:
    page_faults("import ctypes\nctypes.CDLL = lambda name: object()\n" + _KEEP)


def test_a_python_without_ctypes_keeps_its_allocator() -> None:
    page_faults("import sys\nsys.modules['ctypes'] = None\n" + _KEEP)
