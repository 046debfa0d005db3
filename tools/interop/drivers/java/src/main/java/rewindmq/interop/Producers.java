package rewindmq.interop;

import com.google.gson.JsonObject;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.impl.producer.DefaultMQProducerImpl;
import org.apache.rocketmq.client.impl.producer.TopicPublishInfo;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.TransactionMQProducer;

/** The producers, by the names that the suite gave them. */
final class Producers {
    private static final int ROUTE_ASK_MS = 50;

    private final Map<String, DefaultMQProducer> producers = new ConcurrentHashMap<>();
    private final Map<String, Transactions> transactions = new ConcurrentHashMap<>();

    void register(Map<String, Op> ops) {
        ops.put("producer.start", this::start);
        ops.put("producer.stop", fields -> {
            producers.remove(fields.text("producer")).shutdown();
            return new JsonObject();
        });
        new Sending(this).register(ops);
        new Requests(this).register(ops);
    }

    DefaultMQProducer producer(Fields fields) {
        return producers.get(fields.text("producer"));
    }

    Transactions transactions(Fields fields) {
        return transactions.get(fields.text("producer"));
    }

    void shutdown() {
        producers.values().forEach(DefaultMQProducer::shutdown);
    }

    private JsonObject start(Fields fields) throws Exception {
        String name = fields.text("name");
        DefaultMQProducer producer = create(name, fields);
        Setup.apply(producer, fields);
        producer.setMaxMessageSize(fields.number("max_message_size", producer.getMaxMessageSize()));
        int limit = fields.number("compress_over", producer.getCompressMsgBodyOverHowmuch());
        producer.setCompressMsgBodyOverHowmuch(limit);
        producer.setSendMsgTimeout(Setup.PATIENCE_MS);
        producer.start();
        awaitRoutes(producer, fields);
        producers.put(name, producer);
        return new JsonObject();
    }

    /** Waits until a started producer knows the routes that it will need. */
    static void awaitRoutes(DefaultMQProducer producer, Fields fields) throws InterruptedException {
        awaitRoute(producer, producer.getCreateTopicKey());
        for (String topic : fields.texts("topics")) {
            awaitRoute(producer, topic);
        }
    }

    /**
     * Waits until the producer knows a topic's route. The library looks for routes from its start on, but a first send
     * waits only 3 s for that. After that it would use the queues of the default topic instead.
     */
    static void awaitRoute(DefaultMQProducer producer, String topic) throws InterruptedException {
        DefaultMQProducerImpl inner = producer.getDefaultMQProducerImpl();
        while (true) {
            inner.getMqClientFactory().updateTopicRouteInfoFromNameServer(topic);
            TopicPublishInfo known = inner.getTopicPublishInfoTable().get(topic);
            // A topic that may only be read has a route and no queue to send to.
            if (known != null && known.isHaveTopicRouterInfo()) {
                return;
            }
            Thread.sleep(ROUTE_ASK_MS);
        }
    }

    private DefaultMQProducer create(String name, Fields fields) {
        boolean isTraced = fields.flag("trace");
        String group = fields.text("group");
        if (!fields.flag("transactional")) {
            return new DefaultMQProducer(group, isTraced, null);
        }
        TransactionMQProducer producer = new TransactionMQProducer(null, group, null, isTraced, null);
        Transactions listener = new Transactions(name);
        producer.setTransactionListener(listener);
        transactions.put(name, listener);
        return producer;
    }
}
