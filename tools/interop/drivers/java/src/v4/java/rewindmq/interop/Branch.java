package rewindmq.interop;

import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.common.protocol.heartbeat.MessageModel;

/** Uses classes that have another package in 5.x. */
final class Branch {
    private Branch() {
    }

    static void setModel(DefaultMQPushConsumer consumer, String model) {
        consumer.setMessageModel(MessageModel.valueOf(model));
    }
}
