package rewindmq.interop;

import com.google.gson.JsonObject;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.spring.annotation.ConsumeMode;
import org.apache.rocketmq.spring.annotation.MessageModel;
import org.apache.rocketmq.spring.annotation.RocketMQMessageListener;
import org.apache.rocketmq.spring.annotation.SelectorType;
import org.apache.rocketmq.spring.core.RocketMQListener;
import org.apache.rocketmq.spring.core.RocketMQPushConsumerLifecycleListener;
import org.apache.rocketmq.spring.support.DefaultRocketMQListenerContainer;

/**
 * The push consumers: an application with one annotated bean each. The annotation's texts come from the request;
 * its other values are constants, so every combination that a scenario uses has a class.
 */
final class SpringListeners {
    private static final String GROUP = "${suite.group}";
    private static final String TOPIC = "${suite.topic}";
    private static final String EXPRESSION = "${suite.expression}";

    private final SpringApplications applications = new SpringApplications(SpringMain.NAME_SERVER);
    private final Map<String, Listener> listeners = new ConcurrentHashMap<>();

    void register(Map<String, Op> ops) {
        ops.put("consume.concurrent", fields -> start(fields, kind(fields)));
        ops.put("consume.orderly", fields -> start(fields, Orderly.class));
        ops.put("consume.release", fields -> {
            listeners.get(fields.text("consumer")).release();
            return new JsonObject();
        });
        ops.put("consume.stop", fields -> {
            applications.stop(fields.text("consumer"));
            return new JsonObject();
        });
    }

    void shutdown() {
        listeners.values().forEach(Listener::release);
        applications.shutdown();
    }

    private static Class<? extends Bean> kind(Fields fields) {
        if (fields.text("expression_type", "TAG").equals("SQL92")) {
            return Sql.class;
        }
        if (fields.text("model", "CLUSTERING").equals("BROADCASTING")) {
            return Broadcasting.class;
        }
        return fields.flag("trace") ? Traced.class : Concurrent.class;
    }

    private JsonObject start(Fields fields, Class<? extends Bean> kind) {
        Map<String, Object> properties = Map.of(
            "suite.group", fields.text("group"),
            "suite.topic", fields.text("topic"),
            "suite.expression", fields.text("expression", "*"));
        String name = fields.text("name");
        applications.start(fields, properties, List.of(kind));
        listeners.put(name, applications.bean(name, Bean.class).listener);
        PushConsumers.setSendPatience(applications.bean(name, DefaultRocketMQListenerContainer.class).getConsumer());
        return new JsonObject();
    }

    abstract static class Bean implements RocketMQListener<MessageExt>, RocketMQPushConsumerLifecycleListener {
        private final Fields request;
        private final Listener listener;

        Bean(Fields request) {
            this.request = request;
            listener = new Listener(request);
        }

        @Override
        public void onMessage(MessageExt message) {
            if (!listener.take(List.of(message))) {
                throw new IllegalStateException("the suite asked for a failure");
            }
        }

        @Override
        public void prepareStart(DefaultMQPushConsumer consumer) {
            PushConsumers.configure(consumer, request);
        }
    }

    @RocketMQMessageListener(consumerGroup = GROUP, topic = TOPIC, selectorExpression = EXPRESSION)
    static final class Concurrent extends Bean {
        Concurrent(Fields request) {
            super(request);
        }
    }

    @RocketMQMessageListener(
        consumerGroup = GROUP, topic = TOPIC, selectorExpression = EXPRESSION, consumeMode = ConsumeMode.ORDERLY)
    static final class Orderly extends Bean {
        Orderly(Fields request) {
            super(request);
        }
    }

    @RocketMQMessageListener(
        consumerGroup = GROUP, topic = TOPIC, selectorExpression = EXPRESSION, selectorType = SelectorType.SQL92)
    static final class Sql extends Bean {
        Sql(Fields request) {
            super(request);
        }
    }

    @RocketMQMessageListener(
        consumerGroup = GROUP, topic = TOPIC, selectorExpression = EXPRESSION, messageModel = MessageModel.BROADCASTING)
    static final class Broadcasting extends Bean {
        Broadcasting(Fields request) {
            super(request);
        }
    }

    @RocketMQMessageListener(
        consumerGroup = GROUP, topic = TOPIC, selectorExpression = EXPRESSION, enableMsgTrace = true)
    static final class Traced extends Bean {
        Traced(Fields request) {
            super(request);
        }
    }
}
