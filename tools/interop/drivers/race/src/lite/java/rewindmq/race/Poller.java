package rewindmq.race;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.util.List;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.common.message.MessageExt;

/** A lite pull consumer and the application that polls it. */
final class Poller implements Actor {
    private static final long POLL_MILLIS = 1000;
    private static final int ONLY_CHAIN = 1;
    private final DefaultLitePullConsumer consumer;
    private final String name;
    private final String topic;
    private final Told told;

    Poller(JsonObject how, Told told) {
        this.told = told;
        name = how.get("name").getAsString();
        topic = how.get("topic").getAsString();
        consumer = new DefaultLitePullConsumer(how.get("group").getAsString());
        Main.configure(consumer, how);
    }

    @Override
    public void start() throws Exception {
        consumer.subscribe(topic, "*");
        consumer.start();
    }

    @Override
    @SuppressWarnings("deprecation")
    public JsonObject act(String what, JsonObject how) {
        if (what.equals("poll")) {
            int missing = how.get("count").getAsInt();
            while (missing > 0) {
                List<MessageExt> messages = consumer.poll(POLL_MILLIS);
                messages.forEach(this::tell);
                missing -= messages.size();
            }
        } else if (what.equals("commit")) {
            consumer.commitSync();
        } else {
            throw new IllegalArgumentException("a lite pull consumer cannot " + what);
        }
        return new JsonObject();
    }

    @Override
    public void stop() {
        consumer.shutdown();
    }

    /** Polled messages count as consumed. */
    private void tell(MessageExt message) {
        JsonObject details = new JsonObject();
        details.addProperty("topic", message.getTopic());
        details.addProperty("broker_name", message.getBrokerName());
        details.addProperty("queue_id", message.getQueueId());
        details.addProperty("offset", message.getQueueOffset());
        JsonArray offsets = new JsonArray();
        offsets.add(message.getQueueOffset());
        details.add("offsets", offsets);
        details.addProperty("count", 1);
        details.addProperty("chain", ONLY_CHAIN);
        told.point(name, "client.listener_called", details);
        told.point(name, "client.listener_returned", details);
    }
}
