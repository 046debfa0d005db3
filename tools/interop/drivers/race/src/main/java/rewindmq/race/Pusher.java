package rewindmq.race;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.lang.reflect.Method;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** A push consumer whose listener follows a plan. */
final class Pusher implements Actor {
    private static final int CALLBACK_THREADS = 4;
    private final DefaultMQPushConsumer consumer;
    private final Plan plan;
    private final Watch watch;
    private final Watcher watcher;

    Pusher(JsonObject how, Told told, Watcher watcher) throws Exception {
        this.watcher = watcher;
        String topic = how.get("topic").getAsString();
        plan = new Plan(how.getAsJsonObject("listener"));
        consumer = new DefaultMQPushConsumer(how.get("group").getAsString());
        Main.configure(consumer, how);
        // Fixed, not the number of cores, because the number of threads decides how a race ends.
        consumer.setClientCallbackExecutorThreads(CALLBACK_THREADS);
        boolean isOrderly = false;
        for (Map.Entry<String, JsonElement> option : how.getAsJsonObject("options").entrySet()) {
            if (option.getKey().equals("orderly")) {
                isOrderly = option.getValue().getAsBoolean();
            } else {
                set(option.getKey(), option.getValue());
            }
        }
        consumer.subscribe(topic, how.get("tags").getAsString());
        watch = new Watch(how.get("name").getAsString(), topic, consumer.getDefaultMQPushConsumerImpl(), told);
        if (isOrderly) {
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                consume(messages, context.getMessageQueue());
                return ConsumeOrderlyStatus.SUCCESS;
            });
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                consume(messages, context.getMessageQueue());
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
        }
    }

    @Override
    public void start() throws Exception {
        watcher.add(watch);
        consumer.start();
    }

    @Override
    public JsonObject act(String what, JsonObject how) {
        switch (what) {
            case "suspend":
                consumer.suspend();
                break;
            case "resume":
                consumer.resume();
                break;
            case "release":
                plan.release(how.get("offset").getAsLong());
                break;
            default:
                throw new IllegalArgumentException("a push consumer cannot " + what);
        }
        return new JsonObject();
    }

    @Override
    public void stop() {
        consumer.shutdown();
        watch.look();
        watcher.remove(watch);
    }

    private void consume(List<MessageExt> messages, MessageQueue queue) {
        for (MessageExt message : messages) {
            long offset = message.getQueueOffset();
            Integer chain = watch.chain(queue, message);
            watch.listener("client.listener_called", queue, chain, offset);
            try {
                plan.takeTime(queue.toString(), offset);
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
                return;
            }
            watch.listener("client.listener_returned", queue, chain, offset);
        }
    }

    private void set(String option, JsonElement value) throws Exception {
        switch (option) {
            case "consume_thread_max":
                // The minimum, too: the pool's queue is unbounded, so the pool would never grow beyond its minimum.
                consumer.setConsumeThreadMin(value.getAsInt());
                consumer.setConsumeThreadMax(value.getAsInt());
                break;
            case "pull_batch_size":
                consumer.setPullBatchSize(value.getAsInt());
                break;
            case "pull_threshold_for_queue":
                consumer.setPullThresholdForQueue(value.getAsInt());
                break;
            case "client_callback_executor_threads":
                consumer.setClientCallbackExecutorThreads(value.getAsInt());
                break;
            case "message_model":
                setModel(value.getAsString());
                break;
            default:
                throw new IllegalArgumentException("no option " + option);
        }
    }

    /** Sets the model by reflection, because the enum moved to another package in 5.0. */
    @SuppressWarnings({"unchecked", "rawtypes"})
    private void setModel(String name) throws Exception {
        for (Method method : DefaultMQPushConsumer.class.getMethods()) {
            if (method.getName().equals("setMessageModel")) {
                method.invoke(consumer, Enum.valueOf((Class) method.getParameterTypes()[0], name));
            }
        }
    }
}
