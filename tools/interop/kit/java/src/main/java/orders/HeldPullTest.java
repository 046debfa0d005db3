package orders;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(RewindMQ.class)
class HeldPullTest {
    private static final int PATIENCE_MS = 60_000;
    private final BlockingQueue<String> received = new LinkedBlockingQueue<>();

    @Test
    void messagesWaitWhilePullsAreHeld(RewindMQ.Cluster rmq) throws Exception {
        rmq.createTopic("java-orders", 1);
        RewindMQ.Rule held = rmq.on("PULL_MESSAGE")
                .where("topic", "java-orders")
                .where("client", "billing")
                .queue(0)
                .everyTime()
                .hold();
        DefaultMQProducer producer = new DefaultMQProducer("java-shop");
        producer.setNamesrvAddr(rmq.addressFor("shop"));
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("java-billing");
        consumer.setNamesrvAddr(rmq.addressFor("billing"));
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe("java-orders", "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> take(messages));
        // Two clients of one process that have one name would share their connections.
        producer.setInstanceName("shop");
        consumer.setInstanceName("billing");
        // The clients' own limit is 3 s, which is short on a busy machine.
        producer.setMqClientApiTimeout(PATIENCE_MS);
        producer.setSendMsgTimeout(PATIENCE_MS);
        consumer.setMqClientApiTimeout(PATIENCE_MS);
        try {
            producer.start();
            consumer.start();
            assertEquals(0, RewindMQ.number(held.met(Duration.ofMinutes(2)), "queueOffset"));
            producer.send(new Message("java-orders", "order 1".getBytes()));
            assertTrue(received.isEmpty());
            held.release();
            assertEquals("order 1", received.poll(2, TimeUnit.MINUTES));
        } finally {
            consumer.shutdown();
            producer.shutdown();
        }
    }

    private ConsumeConcurrentlyStatus take(List<MessageExt> messages) {
        messages.forEach(message -> received.add(new String(message.getBody())));
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
    }
}
