package rewindmq.interop;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;

/** The operations that send. */
final class Sending {
    private final Producers producers;

    Sending(Producers producers) {
        this.producers = producers;
    }

    /** Sends one of a request's messages and waits for the result. */
    interface SyncSend {
        SendResult send(Fields message) throws Exception;
    }

    /** Sends one of a request's messages; the callback gets the result. */
    interface AsyncSend {
        void send(Fields message, SendCallback callback) throws Exception;
    }

    /** Sends a message with a producer and waits for the result. */
    private interface Send {
        SendResult send(DefaultMQProducer producer, Message message, Fields fields) throws Exception;
    }

    void register(Map<String, Op> ops) {
        ops.put("send.sync", fields -> each(fields, (producer, message, more) -> producer.send(message)));
        ops.put("send.ordered", fields -> each(fields, Sending::ordered));
        ops.put("send.delayed", fields -> each(fields, Sending::delayed));
        ops.put("send.async", this::async);
        ops.put("send.oneway", this::oneway);
        ops.put("send.batch", this::batch);
        ops.put("send.transaction", fields -> each(fields, producers.transactions(fields)::send));
    }

    private static SendResult ordered(DefaultMQProducer producer, Message message, Fields fields)
        throws Exception {
        int key = Integer.parseInt(fields.text("sharding_key"));
        return producer.send(message, (queues, to, argument) -> queues.get(key % queues.size()), key);
    }

    private static SendResult delayed(DefaultMQProducer producer, Message message, Fields fields)
        throws Exception {
        message.setDelayTimeLevel(fields.number("delay_level", 0));
        return producer.send(message);
    }

    private JsonObject each(Fields fields, Send send) {
        DefaultMQProducer producer = producers.producer(fields);
        return oneByOne(fields, message -> send.send(producer, Messages.toSend(message), message));
    }

    /** Sends the messages of a request one after another; returns the answer with their results. */
    static JsonObject oneByOne(Fields fields, SyncSend send) {
        JsonArray results = new JsonArray();
        for (Fields message : fields.objects("messages")) {
            try {
                results.add(Messages.sent(send.send(message)));
            } catch (Exception error) {
                results.add(failed(error));
            }
        }
        return results(results);
    }

    private JsonObject async(Fields fields) throws Exception {
        DefaultMQProducer producer = producers.producer(fields);
        return allAtOnce(fields, (message, callback) -> producer.send(Messages.toSend(message), callback));
    }

    /** Sends all messages of a request without waiting in between; returns the answer with their results. */
    static JsonObject allAtOnce(Fields fields, AsyncSend send) throws Exception {
        List<CompletableFuture<JsonObject>> answers = new ArrayList<>();
        for (Fields message : fields.objects("messages")) {
            CompletableFuture<JsonObject> answer = new CompletableFuture<>();
            answers.add(answer);
            send.send(message, new SendCallback() {
                @Override
                public void onSuccess(SendResult result) {
                    answer.complete(Messages.sent(result));
                }

                @Override
                public void onException(Throwable error) {
                    answer.complete(failed(error));
                }
            });
        }
        JsonArray results = new JsonArray();
        answers.forEach(answer -> results.add(answer.join()));
        return results(results);
    }

    private JsonObject oneway(Fields fields) throws Exception {
        DefaultMQProducer producer = producers.producer(fields);
        for (Fields message : fields.objects("messages")) {
            producer.sendOneway(Messages.toSend(message));
        }
        return new JsonObject();
    }

    private JsonObject batch(Fields fields) throws Exception {
        List<Message> messages = new ArrayList<>();
        fields.objects("messages").forEach(message -> messages.add(Messages.toSend(message)));
        return results(Messages.sent(producers.producer(fields).send(messages)));
    }

    /** Returns the answer with the result of a batch. */
    static JsonObject results(JsonObject result) {
        JsonArray results = new JsonArray();
        results.add(result);
        return results(results);
    }

    private static JsonObject failed(Throwable error) {
        JsonObject json = new JsonObject();
        json.add("error", Failure.describe(error));
        return json;
    }

    private static JsonObject results(JsonArray results) {
        JsonObject answer = new JsonObject();
        answer.add("results", results);
        return answer;
    }
}
