package rewindmq.interop;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionSendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageClientExt;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Converts messages, queues and send results from and to the objects of the lines. */
final class Messages {
    private Messages() {
    }

    static Message toSend(Fields fields) {
        byte[] body = fields.text("body").getBytes(StandardCharsets.UTF_8);
        Message message = new Message(fields.text("topic"), body);
        if (fields.has("tags")) {
            message.setTags(fields.text("tags"));
        }
        if (fields.has("keys")) {
            message.setKeys(fields.text("keys"));
        }
        Fields properties = fields.object("properties");
        for (String name : properties.names()) {
            message.putUserProperty(name, properties.text(name));
        }
        return message;
    }

    static JsonObject sent(SendResult result) {
        JsonObject json = new JsonObject();
        MessageQueue queue = result.getMessageQueue();
        json.addProperty("status", result.getSendStatus().name());
        json.addProperty("id", result.getMsgId());
        json.addProperty("offset_id", result.getOffsetMsgId());
        json.addProperty("broker", queue == null ? null : queue.getBrokerName());
        json.addProperty("queue", queue == null ? null : queue.getQueueId());
        json.addProperty("offset", result.getQueueOffset());
        json.addProperty("region", result.getRegionId());
        if (result instanceof TransactionSendResult) {
            String state = ((TransactionSendResult) result).getLocalTransactionState().name();
            json.addProperty("transaction_state", state);
        }
        return json;
    }

    static JsonArray delivered(List<MessageExt> messages) {
        JsonArray array = new JsonArray();
        messages.forEach(message -> array.add(delivered(message)));
        return array;
    }

    static JsonObject delivered(MessageExt message) {
        JsonObject json = new JsonObject();
        json.addProperty("topic", message.getTopic());
        json.addProperty("broker", message.getBrokerName());
        json.addProperty("queue", message.getQueueId());
        json.addProperty("offset", message.getQueueOffset());
        json.addProperty("id", message.getMsgId());
        if (message instanceof MessageClientExt) {
            json.addProperty("offset_id", ((MessageClientExt) message).getOffsetMsgId());
        }
        json.addProperty("body", text(message));
        json.addProperty("tags", message.getTags());
        json.addProperty("keys", message.getKeys());
        json.add("properties", LineProtocol.GSON.toJsonTree(message.getProperties()));
        json.addProperty("reconsume_times", message.getReconsumeTimes());
        json.addProperty("born_ms", message.getBornTimestamp());
        json.addProperty("store_ms", message.getStoreTimestamp());
        json.addProperty("store_host", message.getStoreHost().toString().replaceFirst(".*/", ""));
        json.addProperty("sys_flag", message.getSysFlag());
        return json;
    }

    static String text(MessageExt message) {
        return new String(message.getBody(), StandardCharsets.UTF_8);
    }

    static JsonObject queue(MessageQueue queue) {
        JsonObject json = new JsonObject();
        json.addProperty("topic", queue.getTopic());
        json.addProperty("broker", queue.getBrokerName());
        json.addProperty("queue", queue.getQueueId());
        return json;
    }

    static MessageQueue queue(Fields fields) {
        return new MessageQueue(fields.text("topic"), fields.text("broker"), fields.number("queue", 0));
    }
}
