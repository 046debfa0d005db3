package rewindmq.interop;

import com.google.gson.JsonObject;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.spring.core.RocketMQTemplate;
import org.apache.rocketmq.spring.support.RocketMQHeaders;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.messaging.Message;
import org.springframework.messaging.support.MessageBuilder;

/** The operations that send, with a {@link RocketMQTemplate} for each producer. */
final class SpringTemplates {
    private final SpringApplications applications = new SpringApplications(SpringMain.NAME_SERVER);

    void register(Map<String, Op> ops) {
        ops.put("producer.start", this::start);
        ops.put("producer.stop", fields -> {
            applications.stop(fields.text("producer"));
            return new JsonObject();
        });
        ops.put("send.sync", fields -> Sending.oneByOne(fields, message ->
            template(fields).syncSend(destination(message), content(message))));
        // The template takes the hash of the key modulo the number of queues: 48 to 51 for the keys 0 to 3.
        ops.put("send.ordered", fields -> Sending.oneByOne(fields, message ->
            template(fields).syncSendOrderly(destination(message), content(message), message.text("sharding_key"))));
        ops.put("send.delayed", fields -> Sending.oneByOne(fields, message -> template(fields).syncSend(
            destination(message), content(message), Setup.PATIENCE_MS, message.number("delay_level", 0))));
        ops.put("send.transaction", fields -> Sending.oneByOne(fields, message ->
            template(fields).sendMessageInTransaction(destination(message), content(message), message)));
        ops.put("send.async", fields -> Sending.allAtOnce(fields, (message, callback) ->
            template(fields).asyncSend(destination(message), content(message), callback)));
        ops.put("send.oneway", this::oneway);
        ops.put("send.batch", fields -> Sending.results(Messages.sent(batch(fields))));
        ops.put("send.request", this::request);
        // The template has no call for a reply that comes after the listener's return.
        ops.put("send.reply", fields -> Requests.reply(template(fields).getProducer(), fields));
    }

    void shutdown() {
        applications.shutdown();
    }

    private RocketMQTemplate template(Fields fields) {
        return applications.bean(fields.text("producer"), RocketMQTemplate.class);
    }

    private JsonObject start(Fields fields) throws InterruptedException {
        List<Class<?>> beans = fields.flag("transactional") ? List.of(SpringTransactions.class) : List.of();
        ConfigurableApplicationContext application = applications.start(fields, properties(fields), beans);
        Producers.awaitRoutes(application.getBean(RocketMQTemplate.class).getProducer(), fields);
        return new JsonObject();
    }

    private static Map<String, Object> properties(Fields fields) {
        return Map.of(
            "rocketmq.producer.group", fields.text("group"),
            // Long, because a busy machine may answer late.
            "rocketmq.producer.send-message-timeout", Setup.PATIENCE_MS,
            "rocketmq.producer.enable-msg-trace", fields.flag("trace"),
            "rocketmq.producer.max-message-size", fields.number("max_message_size", 4 << 20),
            "rocketmq.producer.compress-message-body-threshold", fields.number("compress_over", 4 << 10));
    }

    private JsonObject oneway(Fields fields) {
        for (Fields message : fields.objects("messages")) {
            template(fields).sendOneWay(destination(message), content(message));
        }
        return new JsonObject();
    }

    private SendResult batch(Fields fields) {
        List<Fields> messages = fields.objects("messages");
        List<Message<String>> contents = messages.stream().map(SpringTemplates::content).toList();
        return template(fields).syncSend(destination(messages.get(0)), contents);
    }

    private JsonObject request(Fields fields) {
        Fields message = fields.object("message");
        MessageExt reply = template(fields).sendAndReceive(
            destination(message), content(message), MessageExt.class, fields.position("timeout_ms"));
        return Requests.answer(reply);
    }

    private static String destination(Fields message) {
        return message.has("tags") ? message.text("topic") + ":" + message.text("tags") : message.text("topic");
    }

    private static Message<String> content(Fields message) {
        MessageBuilder<String> builder = MessageBuilder.withPayload(message.text("body"));
        if (message.has("keys")) {
            builder.setHeader(RocketMQHeaders.KEYS, message.text("keys"));
        }
        Fields properties = message.object("properties");
        for (String name : properties.names()) {
            builder.setHeader(name, properties.text(name));
        }
        return builder.build();
    }
}
