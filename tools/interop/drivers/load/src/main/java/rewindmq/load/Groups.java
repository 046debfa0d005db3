package rewindmq.load;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/** Push consumers with the library's default settings that run until they are told to leave, by group. */
final class Groups {
    private final Map<String, Group> groups = new HashMap<>();

    /** Starts {@code parallel} consumers of a new group. */
    Measured join(Order order) throws Exception {
        Group group = new Group();
        groups.put(order.group, group);
        for (int number = 0; number < order.parallel; number++) {
            group.consumers.add(started(order, number, group));
        }
        return new Measured(0, 0, 0, null);
    }

    /** From now on, messages below {@code ends} are those that come again. */
    Measured mark(Order order) {
        groups.get(order.group).mark(order.ends);
        return new Measured(0, 0, 0, null);
    }

    /** Returns how many messages came again, and the seconds since the last of them. */
    Measured again(Order order) {
        return groups.get(order.group).again();
    }

    Measured leave(Order order) {
        groups.remove(order.group).consumers.forEach(DefaultMQPushConsumer::shutdown);
        return new Measured(0, 0, 0, null);
    }

    private static DefaultMQPushConsumer started(Order order, int number, Group group) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(order.group);
        consumer.setNamesrvAddr(order.namesrv);
        consumer.setInstanceName(order.group + "-" + number);
        consumer.setMqClientApiTimeout(Order.TIMEOUT_MS);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(order.topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(group::note);
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        return consumer;
    }

    /** One group; its listeners call it from many threads. */
    private static final class Group {
        private final List<DefaultMQPushConsumer> consumers = new ArrayList<>();
        private final Map<Integer, BitSet> seen = new HashMap<>();
        private Map<Integer, Long> ends = Map.of();
        private long last;

        private synchronized void mark(Map<Integer, Long> offsets) {
            ends = offsets;
            seen.clear();
        }

        private synchronized void note(MessageExt message) {
            if (message.getQueueOffset() < ends.getOrDefault(message.getQueueId(), 0L)) {
                seen.computeIfAbsent(message.getQueueId(), id -> new BitSet()).set((int) message.getQueueOffset());
                last = System.nanoTime();
            }
        }

        private synchronized Measured again() {
            long count = seen.values().stream().mapToLong(BitSet::cardinality).sum();
            return new Measured(count, count == 0 ? 0 : (System.nanoTime() - last) / 1e9, 0, null);
        }
    }
}
