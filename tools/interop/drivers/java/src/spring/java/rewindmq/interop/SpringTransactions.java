package rewindmq.interop;

import com.google.gson.JsonObject;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.spring.annotation.RocketMQTransactionListener;
import org.apache.rocketmq.spring.core.RocketMQLocalTransactionListener;
import org.apache.rocketmq.spring.core.RocketMQLocalTransactionState;
import org.apache.rocketmq.spring.support.RocketMQHeaders;
import org.springframework.messaging.Message;
import org.springframework.messaging.MessageHeaders;

/** Ends each transaction as its message's {@code local} says; a transaction check gets its {@code check}. */
@RocketMQTransactionListener
final class SpringTransactions implements RocketMQLocalTransactionListener {
    private final String producer;
    private final Map<String, RocketMQLocalTransactionState> checks = new ConcurrentHashMap<>();

    SpringTransactions(Fields request) {
        producer = request.text("name");
    }

    @Override
    public RocketMQLocalTransactionState executeLocalTransaction(Message message, Object argument) {
        Fields fields = (Fields) argument;
        checks.put(text(message, RocketMQHeaders.TRANSACTION_ID), state(fields.text("check", "unknown")));
        return state(fields.text("local"));
    }

    @Override
    public RocketMQLocalTransactionState checkLocalTransaction(Message message) {
        JsonObject event = new JsonObject();
        event.addProperty("event", "checked");
        event.addProperty("producer", producer);
        event.add("message", checked(message));
        LineProtocol.say(event);
        String transaction = text(message, RocketMQHeaders.TRANSACTION_ID);
        return checks.getOrDefault(transaction, RocketMQLocalTransactionState.UNKNOWN);
    }

    private static RocketMQLocalTransactionState state(String name) {
        return RocketMQLocalTransactionState.valueOf(name.toUpperCase());
    }

    /** Returns what Spring's message has of the checked one; its properties are the headers. */
    private static JsonObject checked(Message<?> message) {
        MessageHeaders headers = message.getHeaders();
        Map<String, String> properties = new TreeMap<>();
        headers.forEach((name, value) -> properties.put(name, String.valueOf(value)));
        JsonObject json = new JsonObject();
        json.addProperty("topic", text(message, RocketMQHeaders.TOPIC));
        json.addProperty("queue", Integer.valueOf(text(message, RocketMQHeaders.QUEUE_ID)));
        json.addProperty("id", text(message, RocketMQHeaders.MESSAGE_ID));
        json.addProperty("body", new String((byte[]) message.getPayload(), StandardCharsets.UTF_8));
        json.addProperty("tags", text(message, RocketMQHeaders.TAGS));
        json.addProperty("keys", text(message, RocketMQHeaders.KEYS));
        json.add("properties", LineProtocol.GSON.toJsonTree(properties));
        json.addProperty("reconsume_times", (Number) null);
        json.addProperty("sys_flag", Integer.valueOf(text(message, RocketMQHeaders.SYS_FLAG)));
        return json;
    }

    private static String text(Message<?> message, String name) {
        Object value = message.getHeaders().get(RocketMQHeaders.PREFIX + name);
        return value == null ? null : String.valueOf(value);
    }
}
