package rewindmq.interop;

import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.common.protocol.heartbeat.MessageModel;

/** What 4.x has in a package of its own. */
final class Branch {
    private Branch() {
    }

    static void setModel(DefaultMQPushConsumer consumer, String model) {
        consumer.setMessageModel(MessageModel.valueOf(model));
    }
}
