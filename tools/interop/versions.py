"""The releases of unmodified software that the suite runs, with the coordinates of their registries."""

from __future__ import annotations

from typing import Final

# org.apache.rocketmq:rocketmq-client and rocketmq-tools.
JAVA_CLIENTS: Final = ("4.9.8", "5.5.0")
# org.apache.rocketmq:rocketmq-spring-boot-starter, and the release of RocketMQ that it depends on.
SPRING: Final = "2.3.1"
SPRING_ROCKETMQ: Final = "5.3.0"
# com.alibaba.cloud:spring-cloud-starter-stream-rocketmq, and the release of RocketMQ that it depends on.
SPRING_STREAM: Final = "2023.0.3.3"
SPRING_STREAM_ROCKETMQ: Final = "5.3.1"
# org.apache.rocketmq:rocketmq-namesrv and rocketmq-broker. Neither was published for 4.9.8. Between the two
# tags both modules differ only in access control and in which configuration keys may not be changed.
SERVER_4: Final = "4.9.7"
SERVER_5: Final = "5.5.0"
