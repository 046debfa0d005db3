package rewindmq.interop;

import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;

/** Uses classes that have another package in 4.x. */
final class Branch {
    private Branch() {
    }

    static void setModel(DefaultMQPushConsumer consumer, String model) {
        consumer.setMessageModel(MessageModel.valueOf(model));
    }
}
