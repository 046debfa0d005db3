package rewindmq.interop;

import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;

/** Uses classes that have another package in 4.x, and what 4.x does not have. */
final class Branch {
    private Branch() {
    }

    static void setModel(DefaultMQPushConsumer consumer, String model) {
        consumer.setMessageModel(MessageModel.valueOf(model));
    }

    static void setType(TopicConfig topic, String type) {
        topic.setAttributes(Map.of("+message.type", type));
    }

    static Map<String, String> attributes(TopicConfig topic) {
        return topic.getAttributes();
    }
}
