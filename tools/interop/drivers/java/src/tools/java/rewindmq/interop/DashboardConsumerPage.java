package rewindmq.interop;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.common.MixAll;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** The consumer page: groups, progress, connections; changes and deletes a group, and resets offsets. */
final class DashboardConsumerPage extends DashboardPage {
    private static final int BEGINNING = 0;
    private static final int SKIP = -1;
    private static final int NOT_ONLINE = 206;

    private final String offline = fields.text("offline");
    private final String none = group + "-none";
    private final String made = group + "-made";

    DashboardConsumerPage(DefaultMQAdminExt admin, Fields fields) {
        super(admin, fields);
    }

    @Override
    void open() throws Exception {
        ask("list", () -> own(admin.getAllSubscriptionGroup(broker(), PATIENCE_MS)
            .getSubscriptionGroupTable().keySet()));
        for (String name : List.of(group, offline, none)) {
            ask("progress of " + name, () -> progress(name));
            ask("connections of " + name, () -> connections(name));
            ask("configuration of " + name, () -> configuration(name));
        }
        ask("running info", () -> runningInfo(false));
        ask("stacks", () -> runningInfo(true));
        ask("running info of no client", () -> admin.getConsumerRunningInfo(group, "nobody", false));
        change();
        for (String name : List.of(offline, group, none)) {
            ask("skip by " + name, () -> reset(name, SKIP));
        }
        ask("reset of " + offline, () -> reset(offline, BEGINNING));
        ask("progress after the reset", () -> progress(offline));
        ask("reset of " + group, () -> reset(group, BEGINNING));
    }

    private void change() {
        ask("create", this::create);
        ask("delete", () -> {
            String broker = broker();
            admin.deleteSubscriptionGroup(broker, made, true);
            for (String prefix : List.of(MixAll.RETRY_GROUP_TOPIC_PREFIX, MixAll.DLQ_GROUP_TOPIC_PREFIX)) {
                admin.deleteTopicInBroker(Set.of(broker), prefix + made);
                AdminBranch.deleteRoutes(admin, Set.of(fields.text("namesrv")), prefix + made);
            }
            return "deleted";
        });
        ask("configuration after the deletion", () -> configuration(made));
    }

    private Object create() throws Exception {
        String broker = broker();
        var config = admin.getAllSubscriptionGroup(broker, PATIENCE_MS).getSubscriptionGroupTable().get(group);
        config.setGroupName(made);
        config.setConsumeBroadcastEnable(false);
        config.setRetryQueueNums(2);
        config.setRetryMaxTimes(3);
        admin.createAndUpdateSubscriptionGroupConfig(broker, config);
        return configuration(made);
    }

    /** Returns a group's configuration, which the Dashboard looks up among all groups. */
    private Object configuration(String name) throws Exception {
        var config = admin.getAllSubscriptionGroup(broker(), PATIENCE_MS).getSubscriptionGroupTable().get(name);
        return config == null ? null : Arrays.asList(config.isConsumeEnable(), config.isConsumeFromMinEnable(),
            config.isConsumeBroadcastEnable(), config.getRetryQueueNums(), config.getRetryMaxTimes(),
            config.getBrokerId(), config.getWhichBrokerWhenConsumeSlowly(),
            config.isNotifyConsumerIdsChangedEnable());
    }

    private Object connections(String name) throws Exception {
        var connection = admin.examineConsumerConnectionInfo(name);
        Map<String, Object> parts = new TreeMap<>();
        parts.put("clients", connection.getConnectionSet().size());
        parts.put("languages", connection.getConnectionSet().stream().map(one -> one.getLanguage()).toArray());
        parts.put("type", connection.getConsumeType());
        parts.put("model", connection.getMessageModel());
        parts.put("from", connection.getConsumeFromWhere());
        Map<String, String> subscriptions = new TreeMap<>();
        connection.getSubscriptionTable().forEach((from, one) -> subscriptions.put(from, one.getSubString()));
        parts.put("subscriptions", subscriptions);
        return parts;
    }

    private Object runningInfo(boolean withStacks) throws Exception {
        var info = admin.getConsumerRunningInfo(group, client(), withStacks);
        Map<String, Object> parts = new TreeMap<>();
        parts.put("queues", info.getMqTable().keySet().stream().filter(queue -> queue.getTopic().equals(topic))
            .map(queue -> queue.getQueueId()).collect(Collectors.toCollection(TreeSet::new)));
        parts.put("subscriptions", info.getSubscriptionSet().stream()
            .map(one -> one.getTopic() + " " + one.getSubString()).collect(Collectors.toCollection(TreeSet::new)));
        parts.put("rates", new TreeSet<>(info.getStatusTable().keySet()));
        parts.put("stacks", info.getJstack() != null && !info.getJstack().isEmpty());
        return parts;
    }

    /** Resets a group; a group without consumers in the old way, as the Dashboard does it. */
    private Object reset(String name, long timestamp) throws Exception {
        try {
            return byQueue(admin.resetOffsetByTimestamp(topic, name, timestamp, true));
        } catch (MQClientException error) {
            if (error.getResponseCode() != NOT_ONLINE) {
                throw error;
            }
        }
        return admin.resetOffsetByTimestampOld(name, topic, timestamp, true).stream()
            .map(one -> one.getQueueId() + ": " + one.getBrokerOffset() + " " + one.getConsumerOffset() + " "
                + one.getRollbackOffset())
            .collect(Collectors.toCollection(TreeSet::new));
    }
}
