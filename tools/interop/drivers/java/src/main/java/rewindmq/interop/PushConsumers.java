package rewindmq.interop;

import com.google.gson.JsonObject;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;

/** The push consumers, by the names that the suite gave them. */
final class PushConsumers {
    private final Map<String, DefaultMQPushConsumer> consumers = new ConcurrentHashMap<>();
    private final Map<String, Listener> listeners = new ConcurrentHashMap<>();

    void register(Map<String, Op> ops) {
        ops.put("consume.concurrent", fields -> start(fields, false));
        ops.put("consume.orderly", fields -> start(fields, true));
        ops.put("consume.release", fields -> {
            listeners.get(fields.text("consumer")).release();
            return new JsonObject();
        });
        ops.put("consume.stop", fields -> {
            consumers.remove(fields.text("consumer")).shutdown();
            return new JsonObject();
        });
    }

    void shutdown() {
        listeners.values().forEach(Listener::release);
        consumers.values().forEach(DefaultMQPushConsumer::shutdown);
    }

    static ConsumeFromWhere from(Fields fields) {
        return fields.text("from", "first").equals("last")
            ? ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
            : ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET;
    }

    /** Applies the settings that do not depend on how the consumer is created. */
    static void configure(DefaultMQPushConsumer consumer, Fields fields) {
        Setup.apply(consumer, fields);
        consumer.setConsumeFromWhere(from(fields));
        consumer.setMaxReconsumeTimes(fields.number("max_reconsume_times", consumer.getMaxReconsumeTimes()));
        int threads = fields.number("threads", consumer.getConsumeThreadMin());
        consumer.setConsumeThreadMin(threads);
        consumer.setConsumeThreadMax(threads);
    }

    /**
     * Raises the time limit of a started consumer's own producer. An orderly consumer sends its dead letters with it,
     * and a time-out would deliver them once more.
     */
    static void setSendPatience(DefaultMQPushConsumer consumer) {
        consumer.getDefaultMQPushConsumerImpl().getmQClientFactory().getDefaultMQProducer()
            .setSendMsgTimeout(Setup.PATIENCE_MS);
    }

    private JsonObject start(Fields fields, boolean isOrderly) throws Exception {
        String name = fields.text("name");
        DefaultMQPushConsumer consumer =
            new DefaultMQPushConsumer(fields.text("group"), fields.flag("trace"), null);
        configure(consumer, fields);
        Branch.setModel(consumer, fields.text("model", "CLUSTERING"));
        consumer.subscribe(fields.text("topic"), selector(fields));
        Listener listener = new Listener(fields);
        if (isOrderly) {
            consumer.registerMessageListener((MessageListenerOrderly) listener::orderly);
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) listener::concurrently);
        }
        listeners.put(name, listener);
        consumers.put(name, consumer);
        consumer.start();
        setSendPatience(consumer);
        return new JsonObject();
    }

    private static MessageSelector selector(Fields fields) {
        String expression = fields.text("expression", "*");
        return fields.text("expression_type", "TAG").equals("SQL92")
            ? MessageSelector.bySql(expression)
            : MessageSelector.byTag(expression);
    }
}
