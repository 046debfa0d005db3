package rewindmq.interop;

import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.protocol.heartbeat.MessageModel;

/** Uses classes that have another package in 5.x, and leaves out what only 5.x has. */
final class Branch {
    private Branch() {
    }

    static void setModel(DefaultMQPushConsumer consumer, String model) {
        consumer.setMessageModel(MessageModel.valueOf(model));
    }

    /** Ignores the type: topics of 4.x have none. */
    static void setType(TopicConfig topic, String type) {
    }

    static Map<String, String> attributes(TopicConfig topic) {
        return Map.of();
    }
}
