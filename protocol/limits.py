"""Limits on the frames and values that a peer may send (RocketMQ 4.9.4 unless said otherwise)."""

# NettySystemConfig.com.rocketmq.remoting.frameMaxLength; includes the 4-byte length field.
MAX_FRAME_BYTES = 16_777_216
# Header of a request: properties have up to 32 767 bytes, and JSON escapes a control character in six bytes.
# Responses have no such limit, because a batch's has an id of 33 or 57 bytes for each message.
MAX_HEADER_BYTES = 262_144
# The largest body whose frame has room for any header.
MAX_RESPONSE_BODY_BYTES = MAX_FRAME_BYTES - MAX_HEADER_BYTES
MAX_EXT_FIELDS = 512
# Values, commas and escapes in a header that only the tolerant JSON reader takes: some 10 ms.
MAX_HEADER_VALUES = 10_000
# Nesting of a structured body; RocketMQ's deepest, that of REGISTER_BROKER (103), has seven levels.
MAX_BODY_DEPTH = 32
# MessageStoreConfig.maxMessageSize.
MAX_MESSAGE_BODY_BYTES = 4_194_304
# Limit of an inflated body: a few kilobytes can hold gigabytes. RocketMQ has no limit.
MAX_INFLATED_BODY_BYTES = 67_108_864
# A signed byte holds the topic's length on disk (CommitLog, Validators.TOPIC_MAX_LENGTH).
MAX_TOPIC_LENGTH = 127
MAX_GROUP_LENGTH = 255
# Queues of a topic at one broker; RocketMQ has no limit. It keeps loops over a topic's queues short
# (GET_TOPIC_STATS_INFO, INVOKE_BROKER_TO_RESET_OFFSET).
MAX_QUEUE_NUMS = 65_535
# A signed int16 holds the length of the properties text.
MAX_PROPERTIES_BYTES = 32_767
# PullMessageProcessor: the most messages that one request may ask for.
MAX_PULL_MESSAGES = 1_024
# How a server process divides its file descriptors. A store maps at most one file for every fourth
# descriptor. The reserve is for 64 slaves, listening sockets, name servers, and files that are open for a
# moment. The rest is for accepted connections.
MAPPED_FILES_SHARE = 4
RESERVED_DESCRIPTORS = 128
# Default of serverMaxConnections, if the descriptors permit as many.
MAX_CONNECTIONS = 65_536
