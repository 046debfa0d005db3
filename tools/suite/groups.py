"""The groups of tests: what each holds and needs, and which part of it CI runs (``docs/testing.md``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tools.suite.machine import GO, JAVA, JDK, MAVEN, NODE, Tool


@dataclass(frozen=True, slots=True)
class SuiteGroup:
    """Tests that one pytest process runs.

    Attributes:
        name: the name in summaries and the documentation.
        marker: pytest's ``-m`` expression.
        needs: tools; a machine that lacks one does not run the group.
        is_spread: whether the tests of several files run at the same time, in a process for each core.
        more_processes: how many processes a spread group has beyond the cores, because its tests also wait.
        is_beside: whether the group runs at the same time as the other groups, from the start.
        niceness: lowers the priority of its processes: 0 to 19.
        ignores: folders without tests of the group; not importing them saves each process a second or more.
    """

    name: str
    marker: str
    needs: tuple[Tool, ...] = ()
    is_spread: bool = False
    more_processes: int = 0
    is_beside: bool = False
    niceness: int = 0
    ignores: tuple[str, ...] = ()


# ``tests/interop/conftest.py`` makes every test there one of the interop group.
DEFAULT: Final = (
    SuiteGroup(
        "default",
        "not long and not interop",
        is_spread=True,
        more_processes=1,
        ignores=("tests/interop",),
    ),
)
# Tests that compute take only the processor time that tests with time limits leave over.
_COMPUTING: Final = 19
_SPARK: Final = 10
_WAITING: Final = 5
_INTEROP_NEEDS: Final = (JDK, MAVEN, GO, NODE)
LONG: Final = (
    SuiteGroup("long, computing", "long and computing", is_beside=True, niceness=_COMPUTING),
    SuiteGroup("long, waiting", "long and not computing and not spark"),
    SuiteGroup("long, Spark", "long and spark", (JAVA,)),
)
INTEROP: Final = (SuiteGroup("interop", "interop", _INTEROP_NEEDS),)
# Wall-clock time counts here, and these tests mostly wait. So two files of the interop group and one of each
# other group run at the same time. The servers of the interop group have the highest priority: the clients
# wait only 3 s for them.
CHOSEN: Final = (
    SuiteGroup(
        "long, computing (chosen)", "long and computing and chosen", is_beside=True, niceness=_COMPUTING
    ),
    SuiteGroup(
        "long, waiting (chosen)",
        "long and chosen and not computing and not spark",
        is_beside=True,
        niceness=_WAITING,
    ),
    SuiteGroup("long, Spark (chosen)", "long and chosen and spark", (JAVA,), is_beside=True, niceness=_SPARK),
    SuiteGroup("interop (chosen)", "interop and chosen", _INTEROP_NEEDS, is_spread=True),
)
FULL: Final = (*DEFAULT, *LONG[:1], *INTEROP, *LONG[1:])
