package rewindmq.interop;

import com.google.gson.JsonObject;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Ends each transaction as its message's {@code local} says; a transaction check gets its {@code check}. */
final class Transactions implements TransactionListener {
    private static final Map<String, LocalTransactionState> STATES = Map.of(
        "commit", LocalTransactionState.COMMIT_MESSAGE,
        "rollback", LocalTransactionState.ROLLBACK_MESSAGE,
        "unknown", LocalTransactionState.UNKNOW);

    private final String producer;
    private final Map<String, LocalTransactionState> checks = new ConcurrentHashMap<>();

    Transactions(String producer) {
        this.producer = producer;
    }

    SendResult send(DefaultMQProducer sender, Message message, Fields fields) throws Exception {
        return sender.sendMessageInTransaction(message, fields);
    }

    @Override
    public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
        Fields fields = (Fields) argument;
        checks.put(message.getTransactionId(), STATES.get(fields.text("check", "unknown")));
        return STATES.get(fields.text("local"));
    }

    @Override
    public LocalTransactionState checkLocalTransaction(MessageExt message) {
        JsonObject event = new JsonObject();
        event.addProperty("event", "checked");
        event.addProperty("producer", producer);
        event.add("message", Messages.delivered(message));
        LineProtocol.say(event);
        return checks.getOrDefault(message.getTransactionId(), LocalTransactionState.UNKNOW);
    }
}
