package rewindmq.interop;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.MixAll;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** The topic page: list, status, route, consumers; creates a topic, changes it, sends to it and deletes it. */
final class DashboardTopicPage extends DashboardPage {
    private static final int LOOK_MS = 500;

    private final String none = topic + "-none";
    private final String made = topic + "-made";

    DashboardTopicPage(DefaultMQAdminExt admin, Fields fields) {
        super(admin, fields);
    }

    @Override
    void open() throws Exception {
        ask("list", () -> own(admin.fetchAllTopicList().getTopicList()));
        ask("list with types", () -> own(admin.getAllTopicConfig(broker(), PATIENCE_MS)
            .getTopicConfigTable().keySet()));
        ask("status", () -> status(topic));
        ask("status of none", () -> status(none));
        ask("route", () -> route(topic));
        ask("route of none", () -> route(none));
        ask("consumers", this::consumers);
        ask("consumers of none", () -> admin.queryTopicConsumeByWho(none).getGroupList());
        ask("configuration", () -> describe(admin.examineTopicConfig(broker(), topic)));
        ask("configuration of none", () -> describe(admin.examineTopicConfig(broker(), none)));
        change();
    }

    private Object consumers() throws Exception {
        Map<String, Object> byGroup = new TreeMap<>();
        for (String name : new TreeSet<>(admin.queryTopicConsumeByWho(topic).getGroupList())) {
            byGroup.put(name, progress(name));
        }
        return byGroup;
    }

    private void change() {
        ask("create", () -> save(3, "NORMAL", 6));
        ask("send", this::send);
        ask("update", () -> save(5, "NORMAL", 4));
        ask("create with a bad name", () -> {
            admin.createAndUpdateTopicConfig(broker(), new TopicConfig(made + " $", 1, 1, 6));
            return "created";
        });
        ask("create with a bad type", () -> save(1, "NO_SUCH_TYPE", 6));
        ask("delete", () -> {
            delete(made);
            // A registration under way restores the route.
            while (hasRoute(made)) {
                Thread.sleep(LOOK_MS);
                delete(made);
            }
            return "deleted";
        });
        ask("configuration after the deletion", () -> describe(admin.examineTopicConfig(broker(), made)));
        ask("route after the deletion", () -> route(made));
        ask("delete again", () -> {
            delete(made);
            return "deleted";
        });
    }

    private Object save(int queues, String type, int perm) throws Exception {
        String broker = broker();
        TopicConfig config = new TopicConfig(made, queues, queues - 1, perm);
        Branch.setType(config, type);
        admin.createAndUpdateTopicConfig(broker, config);
        return describe(admin.examineTopicConfig(broker, made));
    }

    private void delete(String name) throws Exception {
        admin.deleteTopicInBroker(Set.of(broker()), name);
        AdminBranch.deleteRoutes(admin, Set.of(fields.text("namesrv")), name);
    }

    private boolean hasRoute(String name) throws Exception {
        try {
            admin.examineTopicRouteInfo(name);
            return true;
        } catch (MQClientException error) {
            return false;
        }
    }

    /** Sends as the page's dialog does, with a producer for this message. */
    private Object send() throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer(MixAll.SELF_TEST_PRODUCER_GROUP);
        Setup.apply(producer, fields);
        producer.setInstanceName(fields.text("name") + "-sender");
        producer.setSendMsgTimeout(PATIENCE_MS);
        producer.start();
        try {
            Producers.awaitRoute(producer, made);
            Message message = new Message(made, "tag", "key", "sent by hand".getBytes());
            var result = producer.send(message);
            return List.of(result.getSendStatus(), result.getQueueOffset());
        } finally {
            producer.shutdown();
        }
    }

    private Object status(String name) throws Exception {
        Map<Integer, String> queues = new TreeMap<>();
        admin.examineTopicStats(name).getOffsetTable().forEach((queue, offset) -> queues.put(queue.getQueueId(),
            offset.getMinOffset() + " " + offset.getMaxOffset() + " " + (offset.getLastUpdateTimestamp() > 0)));
        return queues;
    }
}
