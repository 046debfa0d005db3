package rewindmq.interop;

import com.alibaba.cloud.stream.binder.rocketmq.constant.RocketMQConst;
import com.google.gson.JsonObject;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.springframework.messaging.Message;
import org.springframework.messaging.support.MessageBuilder;

/** The operations that send, with a {@link org.springframework.cloud.stream.function.StreamBridge} each. */
final class StreamBridges {
    private final Map<String, StreamProducer> producers = new ConcurrentHashMap<>();

    void register(Map<String, Op> ops) {
        ops.put("producer.start", fields -> {
            producers.put(fields.text("name"), new StreamProducer(fields));
            return new JsonObject();
        });
        ops.put("producer.stop", fields -> {
            producers.remove(fields.text("producer")).stop();
            return new JsonObject();
        });
        ops.put("send.sync", fields -> each(fields, StreamProducer.Kind.SYNC));
        ops.put("send.ordered", fields -> each(fields, StreamProducer.Kind.ORDERED));
        ops.put("send.delayed", fields -> each(fields, StreamProducer.Kind.SYNC));
        ops.put("send.transaction", fields -> each(fields, StreamProducer.Kind.SYNC));
        ops.put("send.async", fields -> Sending.allAtOnce(fields, (message, callback) ->
            producer(fields).sendAsync(message.text("topic"), content(message), callback)));
        ops.put("send.oneway", fields -> {
            for (Fields message : fields.objects("messages")) {
                producer(fields).send(StreamProducer.Kind.ONEWAY, message.text("topic"), content(message));
            }
            return new JsonObject();
        });
    }

    void shutdown() {
        producers.values().forEach(StreamProducer::stop);
    }

    private StreamProducer producer(Fields fields) {
        return producers.get(fields.text("producer"));
    }

    private JsonObject each(Fields fields, StreamProducer.Kind kind) {
        return Sending.oneByOne(fields, message ->
            producer(fields).send(kind, message.text("topic"), content(message)));
    }

    /** Returns a message; a binding's partition key, a delay level and a transaction's argument are headers. */
    private static Message<String> content(Fields message) {
        MessageBuilder<String> builder = MessageBuilder.withPayload(message.text("body"));
        header(builder, RocketMQConst.Headers.TAGS, message, "tags");
        header(builder, RocketMQConst.Headers.KEYS, message, "keys");
        header(builder, RocketMQConst.PROPERTY_DELAY_TIME_LEVEL, message, "delay_level");
        header(builder, StreamProducer.PARTITION_KEY, message, "sharding_key");
        if (message.has("local")) {
            builder.setHeader(RocketMQConst.USER_TRANSACTIONAL_ARGS, message);
        }
        Fields properties = message.object("properties");
        for (String name : properties.names()) {
            builder.setHeader(name, properties.text(name));
        }
        return builder.build();
    }

    private static void header(MessageBuilder<String> builder, String header, Fields message, String field) {
        if (message.has(field)) {
            builder.setHeader(header, message.text(field));
        }
    }
}
