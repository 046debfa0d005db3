package rewindmq.interop;

import com.google.gson.JsonObject;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;

/** The lite pull consumers, by the names that the suite gave them; they commit only when told to. */
final class LitePullConsumers {
    private final Map<String, DefaultLitePullConsumer> consumers = new ConcurrentHashMap<>();

    void register(Map<String, Op> ops) {
        ops.put("lite.start", this::start);
        ops.put("lite.poll", this::poll);
        ops.put("lite.commit", fields -> {
            consumers.get(fields.text("consumer")).commitSync();
            return new JsonObject();
        });
        ops.put("lite.stop", fields -> {
            consumers.remove(fields.text("consumer")).shutdown();
            return new JsonObject();
        });
    }

    void shutdown() {
        consumers.values().forEach(DefaultLitePullConsumer::shutdown);
    }

    private JsonObject start(Fields fields) throws Exception {
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer(fields.text("group"));
        Setup.apply(consumer, fields);
        consumer.setAutoCommit(false);
        consumer.setConsumeFromWhere(PushConsumers.from(fields));
        consumer.subscribe(fields.text("topic"), fields.text("expression", "*"));
        consumer.start();
        consumers.put(fields.text("name"), consumer);
        return new JsonObject();
    }

    private JsonObject poll(Fields fields) {
        DefaultLitePullConsumer consumer = consumers.get(fields.text("consumer"));
        JsonObject answer = new JsonObject();
        answer.add("messages", Messages.delivered(consumer.poll(fields.position("timeout_ms"))));
        return answer;
    }
}
