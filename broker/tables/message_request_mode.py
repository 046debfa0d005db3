"""How the consumers of a group read a topic, in ``config/messageRequestMode.json``; v53 only.

RocketMQ 5 (``MessageRequestModeManager``) stores there what mqadmin's setConsumeMode sets: by topic and
group, without a data version. QUERY_ASSIGNMENT (400) reads it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from rewindmq.broker.limits import MAX_REQUEST_MODES, check_room
from rewindmq.broker.store.tables.config_file import ConfigFile
from rewindmq.broker.tables.config_table import ConfigTable, TableContent, ignore_unsaved
from rewindmq.protocol.body.group import SetMessageRequestModeRequestBody

_KEY: Final = "messageRequestModeMap"
_VERSION: Final = "dataVersion"
# Between topic and group in a name of the table; in no name of either.
_BETWEEN: Final = "@"


class MessageRequestModeManager(ConfigTable[SetMessageRequestModeRequestBody]):
    """The modes by topic and group. RocketMQ never removes one, also not with its topic or group."""

    def __init__(
        self,
        file: ConfigFile,
        now_ms: Callable[[], int],
        on_unsaved: Callable[[], None] = ignore_unsaved,
    ) -> None:
        super().__init__(
            file,
            now_ms,
            key=_KEY,
            entry=SetMessageRequestModeRequestBody,
            built_in={},
            on_unsaved=on_unsaved,
        )

    def _check_room(self, count: int) -> None:
        check_room("message request modes", count, MAX_REQUEST_MODES)

    def get(self, topic: str, group: str) -> SetMessageRequestModeRequestBody | None:
        """Return what was set for this topic and group, None if nothing was."""
        return self._entries.get(f"{topic}{_BETWEEN}{group}")

    def update(self, mode: SetMessageRequestModeRequestBody) -> None:
        """Set the mode of its topic and group.

        Raises:
            RequestError: SYSTEM_ERROR (1), it is new and there are too many; nothing has changed.
        """
        self._update(f"{mode.topic}{_BETWEEN}{mode.consumer_group}", mode)

    def _read(self, content: Any) -> None:
        by_topic = content.get(_KEY) or {}
        flat = {
            f"{topic}{_BETWEEN}{group}": entry
            for topic, modes in by_topic.items()
            for group, entry in modes.items()
        }
        super()._read({**content, _KEY: flat})

    def _document(self, content: TableContent[SetMessageRequestModeRequestBody]) -> dict[str, Any]:
        document = super()._document(content)
        by_topic: dict[str, dict[str, Any]] = {}
        for name, entry in document[_KEY].items():
            topic, _, group = name.partition(_BETWEEN)
            by_topic.setdefault(topic, {})[group] = entry
        others = {key: value for key, value in document.items() if key != _VERSION}
        return {**others, _KEY: by_topic}
