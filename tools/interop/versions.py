"""The releases of unmodified software that the suite runs, each by the coordinates of its own registry."""

from __future__ import annotations

from typing import Final

# org.apache.rocketmq:rocketmq-client and rocketmq-tools.
JAVA_CLIENTS: Final = ("4.9.8", "5.5.0")
# org.apache.rocketmq:rocketmq-namesrv and rocketmq-broker. Neither was published for 4.9.8: between the two
# tags both modules differ in access control and in what a configuration may not change, nowhere else.
SERVER_4: Final = "4.9.7"
SERVER_5: Final = "5.5.0"
