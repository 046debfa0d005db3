"""The files of timer messages: wheel, log and checkpoint (docs/spec/timers.md 4).

Source: RocketMQ 5.5.1 ``TimerWheel``, ``Slot``, ``TimerLog`` and ``TimerCheckpoint``.

``timerwheel``: slots of 32 bytes, as many as two times 7 days have seconds, whatever the precision. The slot
of a time is ``time / precision`` modulo their number. It holds that quotient, the positions of its first and
last unit in the timer log, and the number of its messages.

``timerlog/``: files of units of 52 bytes, one for each message that waits. A unit names the previous unit of
its slot, so a slot is a chain that begins with its last unit. A blank unit ends a file.

``config/timercheck``: 4096 bytes with the times and positions up to which the other files count.
"""

from __future__ import annotations

import struct
from typing import Final

WHEEL_FILE: Final = "timerwheel"
LOG_FOLDER: Final = "timerlog"
CHECKPOINT_FILE: Final = "timercheck"

# Time by precision, position of the first unit, of the last unit, number of messages, magic (unused).
SLOT: Final = struct.Struct(">qqqii")
SLOT_BYTES: Final = SLOT.size
# Of half a wheel: 7 days at the default precision of 1 s.
WHEEL_SLOTS: Final = 7 * 24 * 3_600

# Size, position of the slot's previous unit, magic, write time, due time less write time, the record's log
# position and size, hash of the real topic, reserved.
UNIT: Final = struct.Struct(">iqiqiqiiq")
UNIT_BYTES: Final = UNIT.size
NO_UNIT: Final = -1
MAGIC_DEFAULT: Final = 1
MAGIC_ROLL: Final = 2
MAGIC_DELETE: Final = 4
MAGIC_MASK: Final = 0xF
BLANK: Final = struct.Struct(">iqi")
BLANK_MAGIC: Final = -875_286_124

# Time of the next slot to deliver, end of the durable timer log, and queue offsets: up to which the timer log
# holds the messages, and up to which the master has taken them; then the data version: state version,
# timestamp, counter.
CHECKPOINT: Final = struct.Struct(">qqqqqqq")
CHECKPOINT_BYTES: Final = 4_096
# RewindMQ's own, behind the fields: CRC of the fields. RocketMQ leaves it there and changes the fields.
SEAL_AT: Final = 1_024
SEAL: Final = struct.Struct(">4sI")
SEAL_MAGIC: Final = b"RwTm"
