package rewindmq.race;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.locks.ReadWriteLock;
import org.apache.rocketmq.client.consumer.store.ReadOffsetType;
import org.apache.rocketmq.client.impl.consumer.DefaultMQPushConsumerImpl;
import org.apache.rocketmq.client.impl.consumer.ProcessQueue;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Inspects a push consumer, every other millisecond and at each call of its listener. It reports changes: new and
 * dropped ProcessQueues, the pause, offsets in memory. It changes nothing in the consumer.
 */
final class Watch {
    private static final class Known {
        final int chain;
        final MessageQueue queue;
        final ProcessQueue process;
        boolean isDropped;

        Known(int chain, MessageQueue queue, ProcessQueue process) {
            this.chain = chain;
            this.queue = queue;
            this.process = process;
        }
    }

    // A later release renamed the lock of the messages.
    private static final Field LOCK = field("treeMapLock", "lockTreeMap");
    private static final Field WAITING = field("msgTreeMap");
    private static final Field IN_ORDER = field("consumingMsgOrderlyTreeMap");

    private final String consumer;
    private final String topic;
    private final DefaultMQPushConsumerImpl impl;
    private final Told told;
    private final List<Known> known = new ArrayList<>();
    private final Map<MessageQueue, Long> offsets = new HashMap<>();
    private boolean isPaused;

    Watch(String consumer, String topic, DefaultMQPushConsumerImpl impl, Told told) {
        this.consumer = consumer;
        this.topic = topic;
        this.impl = impl;
        this.told = told;
    }

    synchronized void look() {
        if (impl.getOffsetStore() == null) {
            return;
        }
        lookAtPause();
        for (Known one : known) {
            if (!one.isDropped && one.process.isDropped()) {
                one.isDropped = true;
                tell("client.queue_dropped", one, offset(one.queue));
            }
        }
        for (Map.Entry<MessageQueue, ProcessQueue> entry : impl.getRebalanceImpl().getProcessQueueTable().entrySet()) {
            MessageQueue queue = entry.getKey();
            if (queue.getTopic().equals(topic)) {
                lookAtQueue(queue, entry.getValue());
            }
        }
    }

    /** Returns the number of the ProcessQueue that holds this message object, null if none does. */
    synchronized Integer chain(MessageQueue queue, MessageExt message) {
        look();
        for (int index = known.size() - 1; index >= 0; index--) {
            Known one = known.get(index);
            if (one.queue.equals(queue) && holds(one.process, message)) {
                return one.chain;
            }
        }
        return null;
    }

    JsonObject details(MessageQueue queue, long offset) {
        JsonObject details = new JsonObject();
        details.addProperty("topic", queue.getTopic());
        details.addProperty("broker_name", queue.getBrokerName());
        details.addProperty("queue_id", queue.getQueueId());
        details.addProperty("offset", offset);
        return details;
    }

    void listener(String kind, MessageQueue queue, Integer chain, long offset) {
        JsonObject details = details(queue, offset);
        JsonArray list = new JsonArray();
        list.add(offset);
        details.add("offsets", list);
        details.addProperty("count", 1);
        details.addProperty("chain", chain);
        told.point(consumer, kind, details);
    }

    private void lookAtPause() {
        boolean paused = impl.isPause();
        if (paused != isPaused) {
            isPaused = paused;
            told.point(consumer, paused ? "client.suspended" : "client.resumed", new JsonObject());
        }
    }

    private void lookAtQueue(MessageQueue queue, ProcessQueue process) {
        long offset = offset(queue);
        if (known.stream().noneMatch(one -> one.process == process)) {
            Known one = new Known(known.size() + 1, queue, process);
            known.add(one);
            tell("client.queue_added", one, offset);
        }
        Long before = offsets.put(queue, offset);
        if (before == null || before != offset) {
            told.point(consumer, "client.offset_updated", details(queue, offset));
        }
    }

    private long offset(MessageQueue queue) {
        return impl.getOffsetStore().readOffset(queue, ReadOffsetType.READ_FROM_MEMORY);
    }

    private void tell(String kind, Known one, long offset) {
        JsonObject details = details(one.queue, offset);
        details.addProperty("chain", one.chain);
        told.point(consumer, kind, details);
    }

    private static boolean holds(ProcessQueue process, MessageExt message) {
        try {
            ReadWriteLock lock = (ReadWriteLock) LOCK.get(process);
            lock.readLock().lock();
            try {
                long offset = message.getQueueOffset();
                return ((TreeMap<?, ?>) WAITING.get(process)).get(offset) == message
                    || ((TreeMap<?, ?>) IN_ORDER.get(process)).get(offset) == message;
            } finally {
                lock.readLock().unlock();
            }
        } catch (IllegalAccessException error) {
            throw new IllegalStateException(error);
        }
    }

    private static Field field(String... names) {
        for (String name : names) {
            try {
                Field field = ProcessQueue.class.getDeclaredField(name);
                field.setAccessible(true);
                return field;
            } catch (NoSuchFieldException error) {
                // Try the next name.
            }
        }
        throw new IllegalStateException("a ProcessQueue without " + String.join(", ", names));
    }
}
