package rewindmq.interop;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.trace.TraceDataEncoder;
import org.apache.rocketmq.common.MixAll;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.common.topic.TopicValidator;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** The pages about producers and messages: by topic, key and id, tracks, dead letters, traces; consumes one again. */
@SuppressWarnings("deprecation")
final class DashboardMessagePages extends DashboardPage {
    private static final int MOST = 64;
    private static final int PULL = 32;
    // Of no message.
    private static final String NO_ID = "7F00000100002A139A3F000000000000";

    private final String id = fields.text("message_id");

    DashboardMessagePages(DefaultMQAdminExt admin, Fields fields) {
        super(admin, fields);
    }

    @Override
    void open() throws Exception {
        ask("producers", () -> producers(fields.text("producer")));
        ask("producers of none", () -> producers(group + "-none"));
        ask("by topic", () -> byTopic(topic));
        ask("by no topic", () -> byTopic(topic + "-none"));
        ask("by key", () -> bodies(query(topic, fields.text("key"))));
        ask("by no key", () -> bodies(query(topic, "none")));
        ask("by id", () -> Messages.text(view(id)));
        ask("by no id", () -> Messages.text(view(NO_ID)));
        ask("tracks", () -> {
            Map<String, Object> tracks = new TreeMap<>();
            for (var track : admin.messageTrackDetail(view(id))) {
                tracks.put(track.getConsumerGroup(), track.getTrackType());
            }
            return tracks;
        });
        ask("consume again", () -> {
            var result = admin.consumeMessageDirectly(group, client(), topic, id);
            return List.of(result.getConsumeResult(), result.isOrder(), result.isAutoCommit());
        });
        ask("consume again by no client", () -> admin.consumeMessageDirectly(group, "nobody", topic, id));
        deadLetters();
        ask("trace", this::trace);
    }

    private void deadLetters() {
        String letters = MixAll.DLQ_GROUP_TOPIC_PREFIX + fields.text("failing");
        ask("dead letters of a group that has none", () -> route(MixAll.DLQ_GROUP_TOPIC_PREFIX + group));
        ask("route of the dead letters", () -> route(letters));
        ask("dead letters", () -> byTopic(letters));
    }

    private Object producers(String name) throws Exception {
        return admin.examineProducerConnectionInfo(name, topic).getConnectionSet().stream()
            .map(one -> one.getLanguage()).toArray();
    }

    private MessageExt view(String messageId) throws Exception {
        admin.getTopicClusterList(topic);
        return admin.viewMessage(topic, messageId);
    }

    private List<MessageExt> query(String from, String key) throws Exception {
        return admin.queryMessage(from, key, MOST, 0, System.currentTimeMillis()).getMessageList();
    }

    /** Reads all queues between two times, as the query by topic and the page of dead letters do. */
    private Object byTopic(String from) throws Exception {
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer(MixAll.TOOLS_CONSUMER_GROUP);
        Setup.apply(consumer, fields);
        consumer.setInstanceName(fields.text("name") + "-reader");
        consumer.setMqClientApiTimeout(PATIENCE_MS);
        consumer.setConsumerPullTimeoutMillis(PATIENCE_MS);
        consumer.start();
        try {
            List<MessageExt> found = new ArrayList<>();
            for (MessageQueue queue : consumer.fetchSubscribeMessageQueues(from)) {
                read(consumer, queue, found);
            }
            return bodies(found);
        } finally {
            consumer.shutdown();
        }
    }

    private static void read(DefaultMQPullConsumer consumer, MessageQueue queue, List<MessageExt> found)
        throws Exception {
        long end = consumer.searchOffset(queue, System.currentTimeMillis());
        for (long offset = consumer.searchOffset(queue, 0); offset <= end;) {
            PullResult result = consumer.pull(queue, "*", offset, PULL);
            if (result.getPullStatus() != PullStatus.FOUND) {
                return;
            }
            found.addAll(result.getMsgFoundList());
            offset = result.getNextBeginOffset();
        }
    }

    /** Returns the kinds of records of the message; a library that did not hear of its send sends a record twice. */
    private Object trace() throws Exception {
        return query(TopicValidator.RMQ_SYS_TRACE_TOPIC, id).stream()
            .flatMap(message -> TraceDataEncoder.decoderFromTraceDataString(Messages.text(message)).stream())
            .filter(context -> context.getTraceBeans().stream().anyMatch(bean -> id.equals(bean.getMsgId())))
            .map(context -> context.getTraceType() + " " + context.isSuccess())
            .collect(Collectors.toCollection(TreeSet::new));
    }

    private static Object bodies(List<MessageExt> messages) {
        return messages.stream().map(Messages::text).collect(Collectors.toCollection(TreeSet::new));
    }
}
