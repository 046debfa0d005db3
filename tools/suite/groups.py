"""The groups of tests: what each holds, what it needs, which part of it CI runs (``docs/testing.md``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tools.suite.machine import GO, JAVA, JDK, MAVEN, NODE, Tool


@dataclass(frozen=True, slots=True)
class Group:
    """Tests that one pytest runs.

    Attributes:
        name: as summaries and the documentation call it.
        marker: pytest's ``-m`` expression.
        needs: a machine without one of these does not run the group.
        is_spread: whether the tests of several files run at the same time, in a process for each core.
        is_beside: whether it runs beside the groups that are not, from their beginning on.
        niceness: lowers the priority of its processes: 0 to 19.
    """

    name: str
    marker: str
    needs: tuple[Tool, ...] = ()
    is_spread: bool = False
    is_beside: bool = False
    niceness: int = 0


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of tests, in any group, that needs a tool."""

    path: str
    needs: tuple[Tool, ...]


PIPELINE: Final = Folder("tests/pipeline", (JAVA,))

DEFAULT: Final = (Group("default", "not long and not interop", is_spread=True),)
# What waits for nothing takes only the time that is left over. What waits comes after the interop group:
# clients have limits of their own, as short as 3 s.
_COMPUTING: Final = 19
_WAITING: Final = 5
_INTEROP_NEEDS: Final = (JDK, MAVEN, GO, NODE)
LONG: Final = (
    Group("long, computing", "long and computing", is_beside=True, niceness=_COMPUTING),
    Group("long, waiting", "long and not computing"),
)
INTEROP: Final = (Group("interop", "interop", _INTEROP_NEEDS),)
# Time counts here, and these tests mostly wait: two of the interop group's files and one of the long group's
# are under way at the same time.
CHOSEN: Final = (
    Group("long, computing (chosen)", "long and computing and chosen", is_beside=True, niceness=_COMPUTING),
    Group("long, waiting (chosen)", "long and chosen and not computing", is_beside=True, niceness=_WAITING),
    Group("interop (chosen)", "interop and chosen", _INTEROP_NEEDS, is_spread=True),
)
FULL: Final = (*DEFAULT, *LONG[:1], *INTEROP, *LONG[1:])
