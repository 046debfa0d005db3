"""Makes the output of mqadmin comparable between two clusters.

A title line, which begins with ``#``, must be equal including its blanks. In other lines, a run of blanks
equals one blank, and a value that cannot be equal is replaced by its type: a time, an address, an id.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from tools.interop.mqadmin_tool import ToolOutput

_TYPES: Final = (
    (re.compile(r"\d{4}-\d\d-\d\d[ #]\d\d:\d\d:\d\d([,:]\d{3})?"), "<time>"),
    (re.compile(r"\b1[6-9]\d{11}\b"), "<ms>"),
    (re.compile(r"\b[0-9A-F]{56}\b|\b[0-9A-F]{32}\b"), "<id>"),
    (re.compile(r"\b\d+\.\d+\.\d+\.\d+@\d+#\d+"), "<client>"),
    (re.compile(r"\b\d+\.\d+\.\d+\.\d+:\d+"), "<address>"),
    (re.compile(r"\b\d+ms\b"), "<duration>"),
    # The rate of the last ten seconds depends on when the command runs.
    (re.compile(r"^Consume TPS: \d+\.\d\d$"), "Consume TPS: <rate>"),
    (re.compile(r"(\bV\d+_\d+_\d+ +(PUSH|PULL) +(CLUSTERING|BROADCASTING) +)\d+"), r"\1<rate>"),
    # The RocketMQ servers are of other releases than RewindMQ's profiles.
    (re.compile(r"\bV\d+_\d+_\d+\b"), "<version>"),
    # 4.x reads 8 MiB after the first record's start for this value, and has no value if the log is shorter.
    (re.compile(r"\b(earliestMessageTimeStamp +: )(-1|1[6-9]\d{11})$"), r"\1<ms>"),
    # Each broker flushes at its own times.
    (re.compile(r"\b(remainHowManyDataToFlush +: )(\d+ |\d+\.\d [KM]i)B$"), r"\1<size>"),
    # Rates of 10, 60 and 600 s, each shown once the broker is that old.
    (re.compile(r"\b((get|put)\w*Tps +:)[ \d.]*$"), r"\1 <rates>"),
    # Records of 5.x are longer because of the properties below.
    (
        re.compile(r"(storeSize|commitLogOffset|physicOffset|physicSize|CommitLog Offset)(=|: +)\d+"),
        r"\1=<place>",
    ),
    (re.compile(r"(@<id>@)\d+"), r"\1<place>"),
    (re.compile(r"\b(MSG_REGION=DefaultRegion|TRACE_ON=true|WAIT=true)(, )?"), ""),
)
_NUMBER: Final = re.compile(r"(?<![\w.])-?\d+(\.\d+)?(?![\w.])")
_BLANKS: Final = re.compile(r"\s+")


def comparable(
    printed: ToolOutput,
    names: Mapping[str, str],
    *,
    only_shape: bool = False,
    is_unordered: bool = False,
    ignored: Sequence[str] = (),
) -> list[str]:
    """Return the lines without the texts that belong to one cluster.

    Args:
        names: texts of this cluster, and what replaces them.
        only_shape: treat all numbers as equal.
        is_unordered: sort the lines, because the command prints them in hash order.
        ignored: patterns of lines to leave out.
    """
    lines = [
        _line(line, names, only_shape)
        for line in (*printed.output.splitlines(), *printed.errors.splitlines())
        if not any(re.search(pattern, line) for pattern in ignored)
    ]
    return sorted(lines) if is_unordered else lines


def _line(line: str, names: Mapping[str, str], only_shape: bool) -> str:
    if line.startswith("#"):
        return line
    # The longest first, because one text may be part of another.
    for text in sorted(names, key=len, reverse=True):
        line = line.replace(text, names[text])
    for pattern, kind in _TYPES:
        line = pattern.sub(kind, line)
    if only_shape:
        line = _NUMBER.sub("<number>", line)
    return _BLANKS.sub(" ", line).strip()
