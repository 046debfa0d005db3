package rewindmq.interop;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** The requests of applications: producers and consumers of every kind. */
final class GoldenClients {
    private static final int PATIENCE_MILLIS = 20_000;

    private final GoldenPlaces places;
    private final List<Runnable> closers = new ArrayList<>();
    private final Set<String> consumed = ConcurrentHashMap.newKeySet();
    DefaultMQProducer producer;
    DefaultMQPushConsumer consumer;
    MessageExt some;
    String uniqueId = "";

    GoldenClients(GoldenPlaces places) {
        this.places = places;
    }

    void sendSome() throws Exception {
        producer = new DefaultMQProducer("golden-producers");
        producer.setNamesrvAddr(places.namesrv);
        producer.setSendMsgTimeout(PATIENCE_MILLIS);
        producer.start();
        closers.add(producer::shutdown);
        Message full = message("one", "TagA", "key-1");
        full.putUserProperty("size", "3");
        full.putUserProperty("note", "gr\u00fc\u00df dich \u4f60\u597d");
        full.setFlag(7);
        uniqueId = producer.send(full).getMsgId();
        producer.sendOneway(message("oneway", "TagB", "key-2"));
        producer.send(message("x".repeat(5_000), "TagA", "key-3"));
        Message later = message("later", "TagA", "key-4");
        later.setDelayTimeLevel(1);
        producer.send(later);
        List<Message> batch = new ArrayList<>();
        for (int number = 0; number < 3; number++) {
            batch.add(message("batch-" + number, "TagB", "key-b" + number));
        }
        producer.send(batch);
        for (MessageQueue queue : producer.fetchPublishMessageQueues(GoldenTraffic.ORDERED)) {
            for (int number = 0; number < 3; number++) {
                byte[] body = GoldenTraffic.bytes("ordered-" + number);
                producer.send(new Message(GoldenTraffic.ORDERED, "TagA", "", body), queue);
            }
        }
        GoldenTraffic.step("send to a topic that is created for it", () ->
            producer.send(new Message("GoldenNew", GoldenTraffic.bytes("new"))));
        MessageQueue closed = new MessageQueue("GoldenReadOnly", "broker-a", 0);
        GoldenTraffic.step("send without permission (refused)", () ->
            producer.send(new Message("GoldenReadOnly", GoldenTraffic.bytes("no")), closed));
    }

    private static Message message(String body, String tag, String key) {
        return new Message(GoldenTraffic.TOPIC, tag, key, GoldenTraffic.bytes(body));
    }

    void transact() throws Exception {
        TransactionMQProducer transactions = new TransactionMQProducer("golden-transactions");
        AtomicInteger checks = new AtomicInteger();
        transactions.setNamesrvAddr(places.namesrv);
        transactions.setSendMsgTimeout(PATIENCE_MILLIS);
        transactions.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message message, Object state) {
                return (LocalTransactionState) state;
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                checks.incrementAndGet();
                return LocalTransactionState.COMMIT_MESSAGE;
            }
        });
        transactions.start();
        closers.add(transactions::shutdown);
        for (LocalTransactionState state : LocalTransactionState.values()) {
            transactions.sendMessageInTransaction(message("transaction-" + state, "TagA", "key-t"), state);
        }
        GoldenTraffic.await("a check back", () -> checks.get() > 0);
    }

    void consume() throws Exception {
        consumer = push(GoldenTraffic.GROUP);
        consumer.subscribe(GoldenTraffic.TOPIC, "TagA || TagB");
        consumer.registerMessageListener((List<MessageExt> messages, ConsumeConcurrentlyContext context) -> {
            for (MessageExt message : messages) {
                some = message;
                consumed.add(new String(message.getBody()));
            }
            boolean isFirst = messages.get(0).getReconsumeTimes() == 0 && messages.get(0).getKeys().startsWith("key-1");
            return isFirst ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        Set<String> ordered = ConcurrentHashMap.newKeySet();
        DefaultMQPushConsumer orderly = push("golden-orderly");
        orderly.subscribe(GoldenTraffic.ORDERED, "*");
        orderly.registerMessageListener((List<MessageExt> messages, ConsumeOrderlyContext context) -> {
            messages.forEach(message -> ordered.add(message.getMsgId()));
            return ConsumeOrderlyStatus.SUCCESS;
        });
        orderly.start();
        GoldenTraffic.step("a subscription in SQL", () -> {
            DefaultMQPushConsumer filtering = push("golden-sql");
            filtering.subscribe(GoldenTraffic.TOPIC, MessageSelector.bySql("size > 2"));
            filtering.registerMessageListener((List<MessageExt> messages, ConsumeConcurrentlyContext context) ->
                ConsumeConcurrentlyStatus.CONSUME_SUCCESS);
            filtering.start();
        });
        GoldenTraffic.step("a subscription in bad SQL (refused)", () -> {
            DefaultMQPushConsumer filtering = push("golden-bad-sql");
            filtering.subscribe(GoldenTraffic.TOPIC, MessageSelector.bySql("size >"));
            filtering.registerMessageListener((List<MessageExt> messages, ConsumeConcurrentlyContext context) ->
                ConsumeConcurrentlyStatus.CONSUME_SUCCESS);
            filtering.start();
        });
        GoldenTraffic.step("broadcasting", () -> {
            DefaultMQPushConsumer broadcasting = push("golden-broadcasting");
            GoldenRaw.setEnum(broadcasting, "setMessageModel", "BROADCASTING");
            broadcasting.subscribe(GoldenTraffic.TOPIC, "*");
            broadcasting.registerMessageListener((List<MessageExt> messages, ConsumeConcurrentlyContext context) ->
                ConsumeConcurrentlyStatus.CONSUME_SUCCESS);
            broadcasting.start();
        });
        GoldenTraffic.step("a consumer joins", () -> {
            DefaultMQPushConsumer second = push(GoldenTraffic.GROUP);
            second.subscribe(GoldenTraffic.TOPIC, "TagA || TagB");
            second.registerMessageListener((List<MessageExt> messages, ConsumeConcurrentlyContext context) ->
                ConsumeConcurrentlyStatus.CONSUME_SUCCESS);
            second.start();
            Thread.sleep(1_000);
            second.shutdown();
        });
        GoldenTraffic.await("messages", () -> consumed.size() >= 6 && ordered.size() >= 3);
    }

    private DefaultMQPushConsumer push(String group) {
        DefaultMQPushConsumer made = new DefaultMQPushConsumer(group);
        made.setNamesrvAddr(places.namesrv);
        made.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        made.setPersistConsumerOffsetInterval(1_000);
        made.setConsumeThreadMin(1);
        made.setConsumeThreadMax(1);
        closers.add(made::shutdown);
        return made;
    }

    @SuppressWarnings("deprecation")
    void pull() throws Exception {
        DefaultMQPullConsumer puller = new DefaultMQPullConsumer("golden-pullers");
        puller.setNamesrvAddr(places.namesrv);
        puller.start();
        closers.add(puller::shutdown);
        for (MessageQueue queue : new HashSet<>(puller.fetchSubscribeMessageQueues(GoldenTraffic.TOPIC))) {
            puller.fetchConsumeOffset(queue, true);
            puller.searchOffset(queue, 0);
            long max = puller.maxOffset(queue);
            puller.minOffset(queue);
            puller.earliestMsgStoreTime(queue);
            puller.pull(queue, "*", 0, 3);
            puller.pull(queue, "TagNone", 0, 3);
            puller.pull(queue, "*", max, 3);
            puller.pull(queue, "*", max + 100, 3);
            puller.updateConsumeOffset(queue, max);
            puller.getOffsetStore().persist(queue);
            puller.fetchConsumeOffset(queue, true);
        }
        puller.queryMessage(GoldenTraffic.TOPIC, "key-1", 4, 0, System.currentTimeMillis() + 1_000);
    }

    void litePull() throws Exception {
        DefaultLitePullConsumer lite = new DefaultLitePullConsumer("golden-lite");
        lite.setNamesrvAddr(places.namesrv);
        lite.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        lite.subscribe(GoldenTraffic.TOPIC, "*");
        lite.start();
        closers.add(lite::shutdown);
        AtomicInteger polled = new AtomicInteger();
        GoldenTraffic.await("a lite message", () -> polled.addAndGet(lite.poll(100).size()) > 2);
    }

    void requestAndReply() throws Exception {
        DefaultMQProducer asking = new DefaultMQProducer("golden-asking");
        asking.setNamesrvAddr(places.namesrv);
        asking.setSendMsgTimeout(PATIENCE_MILLIS);
        asking.start();
        closers.add(asking::shutdown);
        DefaultMQPushConsumer answering = push("golden-answering");
        answering.subscribe(GoldenTraffic.REQUESTS, "*");
        answering.registerMessageListener((List<MessageExt> messages, ConsumeConcurrentlyContext context) -> {
            for (MessageExt message : messages) {
                GoldenTraffic.step("reply", () ->
                    asking.send(MessageUtil.createReplyMessage(message, GoldenTraffic.bytes("reply")), 3_000));
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        answering.start();
        // The first one may be sent before the answering consumer has its queue.
        AtomicInteger answers = new AtomicInteger();
        for (int number = 0; number < 5 && answers.get() == 0; number++) {
            GoldenTraffic.step("request", () -> {
                asking.request(new Message(GoldenTraffic.REQUESTS, GoldenTraffic.bytes("request")), 8_000);
                answers.incrementAndGet();
            });
        }
    }

    void close() {
        for (int index = closers.size() - 1; index >= 0; index--) {
            Runnable closer = closers.get(index);
            GoldenTraffic.step("shutdown", closer::run);
        }
    }
}
