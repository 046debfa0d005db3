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
        more_processes: how many processes more than cores a spread group has: their tests wait, too.
        is_beside: whether it runs beside the groups that are not, from their beginning on.
        niceness: lowers the priority of its processes: 0 to 19.
    """

    name: str
    marker: str
    needs: tuple[Tool, ...] = ()
    is_spread: bool = False
    more_processes: int = 0
    is_beside: bool = False
    niceness: int = 0


DEFAULT: Final = (Group("default", "not long and not interop", is_spread=True, more_processes=1),)
# What waits for nothing takes only the time that is left over.
_COMPUTING: Final = 19
_SPARK: Final = 10
_WAITING: Final = 5
_INTEROP_NEEDS: Final = (JDK, MAVEN, GO, NODE)
LONG: Final = (
    Group("long, computing", "long and computing", is_beside=True, niceness=_COMPUTING),
    Group("long, waiting", "long and not computing and not spark"),
    Group("long, Spark", "long and spark", (JAVA,)),
)
INTEROP: Final = (Group("interop", "interop", _INTEROP_NEEDS),)
# Time counts here, and these tests mostly wait: two of the interop group's files and one of each other group
# are under way at the same time. Clients have limits of their own, as short as 3 s: they come first.
CHOSEN: Final = (
    Group("long, computing (chosen)", "long and computing and chosen", is_beside=True, niceness=_COMPUTING),
    Group(
        "long, waiting (chosen)",
        "long and chosen and not computing and not spark",
        is_beside=True,
        niceness=_WAITING,
    ),
    Group("long, Spark (chosen)", "long and chosen and spark", (JAVA,), is_beside=True, niceness=_SPARK),
    Group("interop (chosen)", "interop and chosen", _INTEROP_NEEDS, is_spread=True),
)
FULL: Final = (*DEFAULT, *LONG[:1], *INTEROP, *LONG[1:])
