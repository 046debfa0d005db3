"""The groups of tests: what each holds and needs, and how it runs beside the others (``docs/testing.md``)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from tools.suite.machine import GO, JAVA, JDK, MAVEN, NODE, Tool


@dataclass(frozen=True, slots=True)
class SuiteGroup:
    """Tests that one run of pytest has.

    Attributes:
        name: the name in summaries and the documentation.
        marker: pytest's ``-m`` expression.
        needs: tools; a machine that lacks one does not run the group.
        folder: the only folder with tests of the group; "" if there are several.
        ignores: folders without tests of the group; not importing them saves each process a second or more.
        is_spread: whether the tests of several files run at the same time, in a process for each core.
        more_processes: how many processes a spread group has beyond the cores, because its tests also wait.
        is_ordered: whether files start in pytest's order; otherwise those with the most tests start first.
        niceness: lowers the priority of its processes: 0 to 19.
    """

    name: str
    marker: str
    needs: tuple[Tool, ...] = ()
    folder: str = ""
    ignores: tuple[str, ...] = ()
    is_spread: bool = False
    more_processes: int = 0
    is_ordered: bool = False
    niceness: int = 0


_INTEROP_FOLDER: Final = "tests/interop"
_SPARK_FOLDER: Final = "tests/pipeline"

DEFAULT: Final = (
    SuiteGroup(
        "default",
        "not slow and not interop",
        ignores=(_INTEROP_FOLDER,),
        is_spread=True,
        more_processes=1,
    ),
)
# The servers of the interop group have the highest priority: the clients wait only 3 s for them. The tests of
# the pipeline share a Spark session, so they run in one process.
SLOW: Final = (
    SuiteGroup("slow, Spark", "slow", (JAVA,), folder=_SPARK_FOLDER, niceness=5),
    SuiteGroup(
        "slow",
        "slow",
        ignores=(_INTEROP_FOLDER, _SPARK_FOLDER),
        is_spread=True,
        more_processes=1,
        is_ordered=True,
        niceness=5,
    ),
)
INTEROP: Final = (
    SuiteGroup("interop", "interop", (JDK, MAVEN, GO, NODE), folder=_INTEROP_FOLDER, is_spread=True),
)


def in_full(groups: tuple[SuiteGroup, ...]) -> tuple[SuiteGroup, ...]:
    """Return the groups as a full run has them: it plays all clients in one process, beside nothing."""
    return tuple(replace(group, is_spread=group.is_spread and group not in INTEROP) for group in groups)
