package rewindmq.interop;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
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
        ops.put("send.reply", this::reply);
    }

    private JsonObject request(Fields fields) throws Exception {
        Message message = Messages.toSend(fields.object("message"));
        Message reply = producers.producer(fields).request(message, fields.position("timeout_ms"));
        JsonObject answer = new JsonObject();
        answer.add("message", Messages.delivered((MessageExt) reply));
        return answer;
    }

    private JsonObject reply(Fields fields) throws Exception {
        byte[] body = fields.text("body").getBytes(StandardCharsets.UTF_8);
        Message reply = MessageUtil.createReplyMessage(received(fields.object("request")), body);
        JsonArray results = new JsonArray();
        results.add(Messages.sent(producers.producer(fields).send(reply)));
        JsonObject answer = new JsonObject();
        answer.add("results", results);
        return answer;
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
