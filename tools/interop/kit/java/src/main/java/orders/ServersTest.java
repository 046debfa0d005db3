package orders;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(RewindMQ.class)
class ServersTest {
    private static final int PATIENCE_MS = 60_000;
    private static final int SERVICE_NOT_AVAILABLE = 14;
    private static final int TWO_HOURS_LEVEL = 18;
    private final BlockingQueue<String> received = new LinkedBlockingQueue<>();

    @Test
    void aBillIsRefusedRestoredAndDueLater(RewindMQ.Cluster rmq) throws Exception {
        rmq.createTopic("java-bills", 1);
        DefaultMQProducer producer = new DefaultMQProducer("java-office");
        producer.setNamesrvAddr(rmq.addressFor("office"));
        producer.setInstanceName("office");
        producer.setMqClientApiTimeout(PATIENCE_MS);
        producer.setSendMsgTimeout(PATIENCE_MS);
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("java-payers");
        consumer.setNamesrvAddr(rmq.addressFor("payers"));
        consumer.setInstanceName("payers");
        consumer.setMqClientApiTimeout(PATIENCE_MS);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe("java-bills", "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> take(messages));
        try {
            producer.start();
            rmq.diskFull("broker-a", true);
            MQClientException refused =
                    assertThrows(MQClientException.class, () -> producer.send(bill("refused", 0)));
            assertEquals(SERVICE_NOT_AVAILABLE, refused.getResponseCode());
            rmq.diskFull("broker-a", false);

            producer.send(bill("bill 1", 0));
            rmq.snapshot("java-backlog");
            rmq.saveSnapshot("java-backlog", "java-backlog.tar");
            producer.send(bill("bill 2", 0));
            rmq.loadSnapshot("java-copy", "java-backlog.tar");
            rmq.restore("java-copy");

            producer.send(bill("bill 3", TWO_HOURS_LEVEL));
            consumer.start();
            assertEquals("bill 1", received.poll(2, TimeUnit.MINUTES));
            rmq.travel(Duration.ofHours(2));
            assertEquals("bill 3", received.poll(2, TimeUnit.MINUTES));
        } finally {
            consumer.shutdown();
            producer.shutdown();
        }
    }

    private static Message bill(String text, int delayLevel) {
        Message message = new Message("java-bills", text.getBytes());
        message.setDelayTimeLevel(delayLevel);
        return message;
    }

    private ConsumeConcurrentlyStatus take(List<MessageExt> messages) {
        messages.forEach(message -> received.add(new String(message.getBody())));
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
    }
}
