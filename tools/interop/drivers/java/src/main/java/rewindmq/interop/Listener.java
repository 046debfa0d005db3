package rewindmq.interop;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.common.message.MessageExt;

/** Reports every message to the suite; blocks or fails if the suite asked for that. */
final class Listener {
    private final String consumer;
    private final int failTimes;
    private final CountDownLatch released;

    Listener(Fields fields) {
        consumer = fields.text("name");
        failTimes = fields.number("fail_times", 0);
        released = new CountDownLatch(fields.flag("hold") ? 1 : 0);
    }

    void release() {
        released.countDown();
    }

    ConsumeConcurrentlyStatus concurrently(List<MessageExt> messages, ConsumeConcurrentlyContext context) {
        return take(messages) ? ConsumeConcurrentlyStatus.CONSUME_SUCCESS : ConsumeConcurrentlyStatus.RECONSUME_LATER;
    }

    ConsumeOrderlyStatus orderly(List<MessageExt> messages, ConsumeOrderlyContext context) {
        return take(messages) ? ConsumeOrderlyStatus.SUCCESS : ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
    }

    /** Reports the messages; returns false if the suite asked for their failure. */
    boolean take(List<MessageExt> messages) {
        return take(messages, Messages.delivered(messages));
    }

    /** As the other, for a library that passes the application something else than its messages. */
    boolean take(List<MessageExt> messages, JsonArray seen) {
        JsonObject event = new JsonObject();
        event.addProperty("event", "delivered");
        event.addProperty("consumer", consumer);
        event.add("messages", seen);
        LineProtocol.say(event);
        try {
            released.await();
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
        return messages.stream().noneMatch(message -> message.getReconsumeTimes() < failTimes);
    }
}
