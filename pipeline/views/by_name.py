"""The readers of the views by the views' names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from rewindmq.pipeline.options import ReadOptions
from rewindmq.pipeline.views.consume_queue import ConsumeQueueReader
from rewindmq.pipeline.views.damage import DamageReader
from rewindmq.pipeline.views.in_flight import InFlightReader
from rewindmq.pipeline.views.index import IndexViewReader
from rewindmq.pipeline.views.messages import LogRowReader
from rewindmq.pipeline.views.offsets import OffsetsReader
from rewindmq.pipeline.views.open_timers import OpenTimersReader
from rewindmq.pipeline.views.reader import StoreReader

READERS: Final[Mapping[str, Callable[[ReadOptions, Sequence[str]], StoreReader]]] = MappingProxyType(
    {
        "messages": LogRowReader,
        "consumequeue": ConsumeQueueReader,
        "index": IndexViewReader,
        "offsets": OffsetsReader,
        "damage": DamageReader,
        "open_timers": OpenTimersReader,
        "in_flight": InFlightReader,
    }
)
