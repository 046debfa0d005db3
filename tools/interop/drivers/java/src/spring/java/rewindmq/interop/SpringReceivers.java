package rewindmq.interop;

import com.google.gson.JsonObject;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.spring.core.RocketMQTemplate;

/** The lite pull consumers, with {@link RocketMQTemplate#receive}; they commit only when told to. */
final class SpringReceivers {
    private final SpringApplications applications = new SpringApplications(SpringMain.NAME_SERVER);

    void register(Map<String, Op> ops) {
        ops.put("lite.start", this::start);
        ops.put("lite.poll", this::poll);
        ops.put("lite.commit", fields -> {
            template(fields).getConsumer().commitSync();
            return new JsonObject();
        });
        ops.put("lite.stop", fields -> {
            applications.stop(fields.text("consumer"));
            return new JsonObject();
        });
    }

    void shutdown() {
        applications.shutdown();
    }

    private RocketMQTemplate template(Fields fields) {
        return applications.bean(fields.text("consumer"), RocketMQTemplate.class);
    }

    private JsonObject start(Fields fields) {
        Map<String, Object> properties = Map.of(
            "rocketmq.pull-consumer.group", fields.text("group"),
            "rocketmq.pull-consumer.topic", fields.text("topic"),
            "rocketmq.pull-consumer.selector-expression", fields.text("expression", "*"));
        applications.start(fields, properties, List.of());
        return new JsonObject();
    }

    private JsonObject poll(Fields fields) {
        List<MessageExt> messages = template(fields).receive(MessageExt.class, fields.position("timeout_ms"));
        JsonObject answer = new JsonObject();
        answer.add("messages", Messages.delivered(messages));
        return answer;
    }
}
