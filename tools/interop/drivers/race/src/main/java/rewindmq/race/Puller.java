package rewindmq.race;

import com.google.gson.JsonObject;
import java.util.Collections;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.common.message.MessageQueue;

/** A pull consumer, whose application decides when to pull and keeps the offsets. */
@SuppressWarnings("deprecation")
final class Puller implements Actor {
    private static final int MAX_MESSAGES = 32;
    private final DefaultMQPullConsumer consumer;
    private final String topic;

    Puller(JsonObject how) {
        topic = how.get("topic").getAsString();
        consumer = new DefaultMQPullConsumer(how.get("group").getAsString());
        Main.configure(consumer, how);
        consumer.setRegisterTopics(Collections.singleton(topic));
    }

    @Override
    public void start() throws Exception {
        consumer.start();
    }

    @Override
    public JsonObject act(String what, JsonObject how) throws Exception {
        MessageQueue queue =
            new MessageQueue(topic, how.get("broker").getAsString(), how.get("queue").getAsInt());
        long offset = how.get("offset").getAsLong();
        JsonObject answer = new JsonObject();
        if (what.equals("pull")) {
            answer.addProperty("next", consumer.pull(queue, "*", offset, MAX_MESSAGES).getNextBeginOffset());
        } else if (what.equals("commit")) {
            consumer.updateConsumeOffset(queue, offset);
            consumer.getDefaultMQPullConsumerImpl().getOffsetStore()
                .persistAll(new java.util.HashSet<>(Collections.singleton(queue)));
        } else {
            throw new IllegalArgumentException("a pull consumer cannot " + what);
        }
        return answer;
    }

    @Override
    public void stop() {
        consumer.shutdown();
    }
}
