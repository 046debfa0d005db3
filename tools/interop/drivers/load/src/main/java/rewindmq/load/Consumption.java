package rewindmq.load;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;

/** Consumes a backlog by push with the library's default settings; measures from the first message on. */
final class Consumption {
    private Consumption() {}

    static Measured measure(Order order, Runnable begin) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(order.group);
        consumer.setNamesrvAddr(order.namesrv);
        consumer.setInstanceName(order.namesrv);
        consumer.setMqClientApiTimeout(Order.TIMEOUT_MS);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(order.topic, "*");
        AtomicLong seen = new AtomicLong();
        AtomicLong started = new AtomicLong();
        AtomicLong ended = new AtomicLong();
        CountDownLatch all = new CountDownLatch(1);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            long before = seen.getAndAdd(messages.size());
            if (before == 0) {
                begin.run();
                started.set(System.nanoTime());
            }
            if (before < order.count && before + messages.size() >= order.count) {
                ended.set(System.nanoTime());
                all.countDown();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        try {
            if (!all.await((long) (order.seconds * 1e3), TimeUnit.MILLISECONDS)) {
                throw new IllegalStateException(
                    seen.get() + " of " + order.count + " messages in " + order.seconds + " s");
            }
            return new Measured(order.count, (ended.get() - started.get()) / 1e9, 0, null);
        } finally {
            consumer.shutdown();
        }
    }
}
