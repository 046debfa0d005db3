package rewindmq.interop;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.common.message.MessageQueue;

/** The pull consumers, by the names that the suite gave them. */
@SuppressWarnings("deprecation")
final class PullConsumers {
    private final Map<String, DefaultMQPullConsumer> consumers = new ConcurrentHashMap<>();

    void register(Map<String, Op> ops) {
        ops.put("pull.start", this::start);
        ops.put("pull.queues", this::queues);
        ops.put("pull.offsets", this::offsets);
        ops.put("pull.pull", this::pull);
        ops.put("pull.commit", this::commit);
        ops.put("pull.committed", this::committed);
        ops.put("pull.stop", fields -> {
            consumers.remove(fields.text("consumer")).shutdown();
            return new JsonObject();
        });
    }

    void shutdown() {
        consumers.values().forEach(DefaultMQPullConsumer::shutdown);
    }

    private DefaultMQPullConsumer consumer(Fields fields) {
        return consumers.get(fields.text("consumer"));
    }

    private JsonObject start(Fields fields) throws Exception {
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer(fields.text("group"));
        Setup.apply(consumer, fields);
        consumer.setConsumerPullTimeoutMillis(Setup.PATIENCE_MS);
        consumer.setAllocateMessageQueueStrategy(new NoQueue());
        consumer.start();
        consumers.put(fields.text("name"), consumer);
        return new JsonObject();
    }

    private JsonObject queues(Fields fields) throws Exception {
        JsonArray queues = new JsonArray();
        consumer(fields).fetchSubscribeMessageQueues(fields.text("topic")).stream()
            .sorted()
            .forEach(queue -> queues.add(Messages.queue(queue)));
        JsonObject answer = new JsonObject();
        answer.add("queues", queues);
        return answer;
    }

    private JsonObject offsets(Fields fields) throws Exception {
        DefaultMQPullConsumer consumer = consumer(fields);
        MessageQueue queue = Messages.queue(fields.object("queue"));
        JsonObject answer = new JsonObject();
        answer.addProperty("min", consumer.minOffset(queue));
        answer.addProperty("max", consumer.maxOffset(queue));
        if (fields.has("timestamp")) {
            answer.addProperty("searched", consumer.searchOffset(queue, fields.position("timestamp")));
        }
        return answer;
    }

    private JsonObject pull(Fields fields) throws Exception {
        MessageQueue queue = Messages.queue(fields.object("queue"));
        String expression = fields.text("expression", "*");
        int maximum = fields.number("max", 32);
        PullResult result = consumer(fields).pull(queue, expression, fields.position("offset"), maximum);
        JsonObject answer = new JsonObject();
        answer.addProperty("status", result.getPullStatus().name());
        answer.addProperty("next", result.getNextBeginOffset());
        answer.addProperty("min", result.getMinOffset());
        answer.addProperty("max", result.getMaxOffset());
        boolean isFound = result.getMsgFoundList() != null;
        answer.add("messages", Messages.delivered(isFound ? result.getMsgFoundList() : List.of()));
        return answer;
    }

    private JsonObject commit(Fields fields) throws Exception {
        MessageQueue queue = Messages.queue(fields.object("queue"));
        // The public method only changes the offset in memory.
        consumer(fields).getOffsetStore().updateConsumeOffsetToBroker(queue, fields.position("offset"), false);
        return new JsonObject();
    }

    private JsonObject committed(Fields fields) throws Exception {
        MessageQueue queue = Messages.queue(fields.object("queue"));
        JsonObject answer = new JsonObject();
        answer.addProperty("offset", consumer(fields).fetchConsumeOffset(queue, true));
        return answer;
    }

    /**
     * Allocates no queue, so that only pull.commit commits. For an allocated queue the library's timer commits the
     * offset that the last pull.committed left in memory, sometimes before pull.commit and sometimes after it.
     */
    private static final class NoQueue implements AllocateMessageQueueStrategy {
        @Override
        public List<MessageQueue> allocate(
            String group, String client, List<MessageQueue> queues, List<String> clients
        ) {
            return List.of();
        }

        @Override
        public String getName() {
            return "NONE";
        }
    }
}
