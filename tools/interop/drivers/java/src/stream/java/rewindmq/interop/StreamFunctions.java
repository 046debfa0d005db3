package rewindmq.interop;

import com.alibaba.cloud.stream.binder.rocketmq.constant.RocketMQConst;
import com.alibaba.cloud.stream.binder.rocketmq.integration.inbound.RocketMQInboundChannelAdapter;
import com.alibaba.cloud.stream.binder.rocketmq.support.RocketMQMessageConverterSupport;
import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.hook.ConsumeMessageContext;
import org.apache.rocketmq.client.hook.ConsumeMessageHook;
import org.apache.rocketmq.common.message.MessageExt;
import org.springframework.context.Lifecycle;
import org.springframework.messaging.Message;
import org.springframework.stereotype.Component;

/** The push consumers: an application with one function each. */
final class StreamFunctions {
    private static final String FUNCTION = "receiver";
    private static final String BINDING = FUNCTION + "-in-0";
    private static final String INPUT = "spring.cloud.stream.bindings." + BINDING + ".";
    private static final String ROCKETMQ = "spring.cloud.stream.rocketmq.bindings." + BINDING + ".consumer.";
    // The client's own default. The binder's is 0: the first failure makes a dead letter.
    private static final int CLIENTS_CHOICE = -1;

    private final SpringApplications applications = new SpringApplications(StreamMain.NAME_SERVER);
    private final Map<String, Listener> listeners = new ConcurrentHashMap<>();

    void register(Map<String, Op> ops) {
        ops.put("consume.concurrent", fields -> start(fields, false));
        ops.put("consume.orderly", fields -> start(fields, true));
        ops.put("consume.release", fields -> {
            listeners.get(fields.text("consumer")).release();
            return new JsonObject();
        });
        ops.put("consume.stop", fields -> {
            applications.stop(fields.text("consumer"));
            return new JsonObject();
        });
    }

    void shutdown() {
        listeners.values().forEach(Listener::release);
        applications.shutdown();
    }

    private JsonObject start(Fields fields, boolean isOrderly) {
        String name = fields.text("name");
        Map<String, Object> properties = properties(fields);
        properties.put(ROCKETMQ + "push.orderly", isOrderly);
        applications.start(fields, properties, List.of(Receiver.class));
        Receiver receiver = applications.bean(name, Receiver.class);
        listeners.put(name, receiver.listener);
        Lifecycle adapter = StreamBindings.lifecycle(applications.context(name), BINDING);
        DefaultMQPushConsumer consumer = StreamBindings.read(
            RocketMQInboundChannelAdapter.class, "pushConsumer", adapter, DefaultMQPushConsumer.class);
        StreamBindings.setPatience(consumer, fields);
        consumer.getDefaultMQPushConsumerImpl().registerConsumeMessageHook(receiver.new Originals());
        adapter.start();
        PushConsumers.setSendPatience(consumer);
        return new JsonObject();
    }

    private static Map<String, Object> properties(Fields fields) {
        Map<String, Object> properties = new HashMap<>();
        String expression = fields.text("expression", "*");
        boolean isSql = fields.text("expression_type", "TAG").equals("SQL92");
        properties.put("spring.cloud.function.definition", FUNCTION);
        properties.put(INPUT + "destination", fields.text("topic"));
        properties.put(INPUT + "group", fields.text("group"));
        // Otherwise the body is read as JSON.
        properties.put(INPUT + "consumer.use-native-decoding", true);
        properties.put(INPUT + "consumer.auto-startup", false);
        // Otherwise the binding calls a failed function again itself, three times by default.
        properties.put(INPUT + "consumer.max-attempts", 1);
        properties.put(INPUT + "consumer.concurrency", fields.number("threads", 1));
        properties.put(ROCKETMQ + "subscription", isSql ? "sql:" + expression : expression);
        properties.put(ROCKETMQ + "message-model", fields.text("model", "CLUSTERING"));
        properties.put(ROCKETMQ + "consume-from-where", PushConsumers.from(fields));
        properties.put(ROCKETMQ + "enable-msg-trace", fields.flag("trace"));
        properties.put(
            ROCKETMQ + "push.max-reconsume-times", fields.number("max_reconsume_times", CLIENTS_CHOICE));
        return properties;
    }

    @Component(FUNCTION)
    static final class Receiver implements Consumer<Message<byte[]>> {
        private final Listener listener;
        private final ThreadLocal<MessageExt> original = new ThreadLocal<>();

        Receiver(Fields request) {
            listener = new Listener(request);
        }

        @Override
        public void accept(Message<byte[]> message) {
            JsonArray seen = new JsonArray();
            seen.add(delivered(message));
            if (!listener.take(List.of(original.get()), seen)) {
                throw new IllegalStateException("the suite asked for a failure");
            }
        }

        /** Returns what the function gets; an offset, a count of deliveries and times are not part of it. */
        private JsonObject delivered(Message<byte[]> message) {
            JsonObject json = Messages.delivered(original.get());
            json.addProperty("topic", header(message, RocketMQConst.Headers.TOPIC));
            json.addProperty("id", header(message, RocketMQConst.Headers.MESSAGE_ID));
            json.addProperty("body", new String(message.getPayload(), StandardCharsets.UTF_8));
            json.addProperty("tags", header(message, RocketMQConst.Headers.TAGS));
            json.addProperty("keys", header(message, RocketMQConst.Headers.KEYS));
            return json;
        }

        private static String header(Message<?> message, String name) {
            return (String) message.getHeaders().get(RocketMQMessageConverterSupport.toRocketHeaderKey(name));
        }

        /** Keeps the message that the binder converts next: the client calls a hook in the listener's thread. */
        private final class Originals implements ConsumeMessageHook {
            @Override
            public String hookName() {
                return "originals";
            }

            @Override
            public void consumeMessageBefore(ConsumeMessageContext context) {
                // The binder takes one message at a time.
                original.set(context.getMsgList().get(0));
            }

            @Override
            public void consumeMessageAfter(ConsumeMessageContext context) {
                original.remove();
            }
        }
    }
}
