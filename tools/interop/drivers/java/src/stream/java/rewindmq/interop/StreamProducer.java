package rewindmq.interop;

import com.alibaba.cloud.stream.binder.rocketmq.integration.outbound.RocketMQProducerMessageHandler;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.rocketmq.client.hook.SendMessageContext;
import org.apache.rocketmq.client.hook.SendMessageHook;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.springframework.cloud.stream.function.StreamBridge;
import org.springframework.context.Lifecycle;
import org.springframework.messaging.Message;

/**
 * An application that sends with a {@link StreamBridge}. It has a binding for each of its topics and each {@link Kind},
 * because the way to send is a property of a binding. Each binding has a RocketMQ producer of its own, which starts
 * when it is needed. Another topic, which does not exist yet, gets such an application, too: the client of a dynamic
 * destination would start with the library's time limits.
 */
final class StreamProducer {
    /** The header with the key that picks a queue. */
    static final String PARTITION_KEY = "sharding_key";

    private static final String BINDING = "spring.cloud.stream.bindings.";
    private static final String ROCKETMQ = "spring.cloud.stream.rocketmq.bindings.";
    private static final String DEFAULT = "spring.cloud.stream.rocketmq.default.producer.";
    // The queues of every topic that the suite sends to in order.
    private static final int PARTITIONS = 4;

    private final SpringApplications applications = new SpringApplications(StreamMain.NAME_SERVER);
    private final Fields request;
    private final List<String> topics;
    private final String beans;
    private final Map<String, StreamProducer> others = new ConcurrentHashMap<>();
    private final StreamBridge bridge;
    private final ThreadLocal<SendResult> result = new ThreadLocal<>();
    private final Queue<SendCallback> callbacks = new ConcurrentLinkedQueue<>();

    /** The binder's ways to send. */
    enum Kind {
        SYNC("Sync"), ORDERED("Sync"), ASYNC("Async"), ONEWAY("OneWay");

        private final String sendType;

        Kind(String sendType) {
            this.sendType = sendType;
        }

        private String binding(int place) {
            return name().toLowerCase(Locale.ROOT) + place;
        }
    }

    StreamProducer(Fields request) throws InterruptedException {
        this(request, request.texts("topics"), request.text("name"));
        for (String topic : topics) {
            binding(Kind.SYNC, topic);
        }
    }

    private StreamProducer(Fields request, List<String> topics, String beans) {
        this.request = request;
        this.topics = topics;
        this.beans = beans;
        String name = request.text("name");
        // The binder finds these beans by their names, which all applications of the process share.
        bridge = applications.start(request, properties(), List.of(), context -> {
            context.registerBean(beans + "-hook", Results.class, Results::new);
            context.registerBean(beans + "-callback", Callback.class, Callback::new);
            context.registerBean(beans + "-transactions", Transactions.class, () -> new Transactions(name));
        }).getBean(StreamBridge.class);
    }

    /** Sends a message; returns the result, which the binder itself keeps to itself, or null for {@code ONEWAY}. */
    SendResult send(Kind kind, String topic, Message<String> message) throws InterruptedException {
        if (!topics.contains(topic)) {
            return other(topic).send(kind, topic, message);
        }
        String binding = binding(kind, topic);
        result.remove();
        bridge.send(binding, message);
        return result.get();
    }

    /**
     * Sends a message without waiting. The binder's only callback is not told the message, so a callback of the request
     * may get the result of another of its messages.
     */
    void sendAsync(String topic, Message<String> message, SendCallback then) throws InterruptedException {
        String binding = binding(Kind.ASYNC, topic);
        callbacks.add(then);
        bridge.send(binding, message);
    }

    void stop() {
        others.values().forEach(StreamProducer::stop);
        applications.shutdown();
    }

    private StreamProducer other(String topic) {
        return others.computeIfAbsent(topic, name -> new StreamProducer(request, List.of(name), beans + "-" + name));
    }

    private Map<String, Object> properties() {
        Map<String, Object> properties = new HashMap<>();
        List<String> bindings = new ArrayList<>();
        for (int place = 0; place < topics.size(); place++) {
            for (Kind kind : Kind.values()) {
                bindings.add(kind.binding(place));
                properties.putAll(properties(kind, kind.binding(place), topics.get(place)));
            }
        }
        properties.put("spring.cloud.stream.output-bindings", String.join(";", bindings));
        // Otherwise a text becomes JSON: the binder's converters are the application's, too.
        properties.put("spring.cloud.stream.default.producer.use-native-encoding", true);
        properties.put(DEFAULT + "group", request.text("group"));
        // Long, because a busy machine may answer late.
        properties.put(DEFAULT + "send-msg-timeout", Setup.PATIENCE_MS);
        properties.put(DEFAULT + "enable-msg-trace", request.flag("trace"));
        properties.put(DEFAULT + "max-message-size", request.number("max_message_size", 4 << 20));
        properties.put(DEFAULT + "compress-msg-body-threshold", request.number("compress_over", 4 << 10));
        properties.put(DEFAULT + "send-message-hook", beans + "-hook");
        properties.put(DEFAULT + "producer-type", request.flag("transactional") ? "Trans" : "Normal");
        properties.put(DEFAULT + "transaction-listener", beans + "-transactions");
        return properties;
    }

    private Map<String, Object> properties(Kind kind, String binding, String topic) {
        Map<String, Object> properties = new HashMap<>();
        properties.put(BINDING + binding + ".destination", topic);
        properties.put(BINDING + binding + ".producer.auto-startup", false);
        properties.put(ROCKETMQ + binding + ".producer.send-type", kind.sendType);
        if (kind == Kind.ASYNC) {
            properties.put(ROCKETMQ + binding + ".producer.send-call-back", beans + "-callback");
        }
        if (kind == Kind.ORDERED) {
            properties.put(
                BINDING + binding + ".producer.partition-key-expression", "headers['" + PARTITION_KEY + "']");
            // The binder sets the number itself, but fails if it differs (partitioningInterceptor is null).
            properties.put(BINDING + binding + ".producer.partition-count", PARTITIONS);
        }
        return properties;
    }

    /** Returns the name of a binding whose producer runs. */
    private synchronized String binding(Kind kind, String topic) throws InterruptedException {
        String binding = kind.binding(topics.indexOf(topic));
        Lifecycle handler = StreamBindings.lifecycle(applications.context(request.text("name")), binding);
        if (!handler.isRunning()) {
            DefaultMQProducer producer = StreamBindings.read(
                RocketMQProducerMessageHandler.class, "defaultMQProducer", handler, DefaultMQProducer.class);
            StreamBindings.setPatience(producer, request);
            handler.start();
            Producers.awaitRoutes(producer, request);
        }
        return binding;
    }

    /** Keeps the result of a send that waits: the client calls a hook in the sending thread. */
    private final class Results implements SendMessageHook {
        @Override
        public String hookName() {
            return "results";
        }

        @Override
        public void sendMessageBefore(SendMessageContext context) {
            // Only the result is of interest.
        }

        @Override
        public void sendMessageAfter(SendMessageContext context) {
            result.set(context.getSendResult());
        }
    }

    /** Passes the result of a send that does not wait to a callback of the request. */
    private final class Callback implements SendCallback {
        @Override
        public void onSuccess(SendResult sent) {
            callbacks.remove().onSuccess(sent);
        }

        @Override
        public void onException(Throwable error) {
            callbacks.remove().onException(error);
        }
    }
}
