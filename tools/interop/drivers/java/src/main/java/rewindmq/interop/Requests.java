package rewindmq.interop;

import com.google.gson.JsonObject;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageExt;

/** The operations of requests and replies. */
final class Requests {
    private final Producers producers;

    Requests(Producers producers) {
        this.producers = producers;
    }

    void register(Map<String, Op> ops) {
        ops.put("send.request", this::request);
        ops.put("send.reply", fields -> reply(producers.producer(fields), fields));
    }

    private JsonObject request(Fields fields) throws Exception {
        Message message = Messages.toSend(fields.object("message"));
        Message reply = producers.producer(fields).request(message, fields.position("timeout_ms"));
        return answer((MessageExt) reply);
    }

    /** Returns the answer with the reply to a request. */
    static JsonObject answer(MessageExt reply) {
        JsonObject answer = new JsonObject();
        answer.add("message", Messages.delivered(reply));
        return answer;
    }

    /** Replies to the operation's request; returns the answer with the result. */
    static JsonObject reply(DefaultMQProducer producer, Fields fields) throws Exception {
        byte[] body = fields.text("body").getBytes(StandardCharsets.UTF_8);
        Message reply = MessageUtil.createReplyMessage(received(fields.object("request")), body);
        return Sending.results(Messages.sent(producer.send(reply)));
    }

    /** Returns what the library reads of a request that a listener received. */
    private static Message received(Fields request) {
        Fields properties = request.object("properties");
        Map<String, String> all = new HashMap<>();
        properties.names().forEach(name -> all.put(name, properties.text(name)));
        Message message = new Message();
        MessageAccessor.setProperties(message, all);
        return message;
    }
}
