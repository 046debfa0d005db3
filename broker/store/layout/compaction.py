"""The files of a compaction store, byte for byte (docs/spec/store.md 14.2; 5.3.3 CompactionLog)."""

from __future__ import annotations

import struct
from typing import Final

# phy, size, tagsCode, storeTime, msgBaseOffset, batchSize, compactedOffset, reserved.
ENTRY: Final = struct.Struct(">qiqqqhii")
ENTRY_BYTES: Final = 46
# An entry file ends with an entry that has this log position and size 0.
END_OF_FILE: Final = -1
BATCH_SIZE: Final = 1
NO_COMPACTED_OFFSET: Final = -1

# MessageStoreConfig: compactionCqMappedFileSize and compactionMappedFileSize, rounded as 5.3.3 does.
CQ_FILE_BYTES: Final = 10_485_760 // ENTRY_BYTES * ENTRY_BYTES
LOG_FILE_BYTES: Final = 104_857_460

FOLDER: Final = "compaction"
LOG_FOLDER: Final = "compactionLog"
CQ_FOLDER: Final = "compactionCq"
POSITION_FILE: Final = "position-checkpoint"
# The topic attribute, and its value, that mark a compaction topic.
CLEANUP_POLICY: Final = "cleanup.policy"
COMPACTION: Final = "COMPACTION"
