package rewindmq.interop;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.util.Arrays;
import java.util.Collection;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * A page of RocketMQ's Dashboard: makes the page's calls in the Dashboard's order and keeps the answers.
 *
 * <p>An answer has no address, id or time, and only topics and groups of this scenario, so that the answers of two
 * clusters can be compared. A refusal is kept as the error's type and code. Locals are {@code var} where the class has
 * another package in 4.x.
 */
abstract class DashboardPage {
    /** Long, because a time-out would be an answer here. */
    static final int PATIENCE_MS = 120_000;
    /** A broker gives a consumer 10 s to answer. */
    private static final int CONSUMER_TIMED_OUT = 207;

    final DefaultMQAdminExt admin;
    final Fields fields;
    final String topic;
    final String group;
    private final JsonObject answers = new JsonObject();

    DashboardPage(DefaultMQAdminExt admin, Fields fields) {
        this.admin = admin;
        this.fields = fields;
        topic = fields.text("topic");
        group = fields.text("group");
    }

    /** One or more calls of the admin client; returns what is kept of the answers. */
    interface Call {
        Object call() throws Exception;
    }

    /** Makes the page's calls. */
    abstract void open() throws Exception;

    JsonObject answers() {
        return answers;
    }

    final void ask(String name, Call call) {
        JsonElement answer = null;
        while (answer == null) {
            try {
                answer = LineProtocol.GSON.toJsonTree(call.call());
            } catch (Exception error) {
                error.printStackTrace();
                JsonObject failure = Failure.describe(error);
                failure.remove("text");
                answer = isTimeOut(failure) ? null : failure;
            }
        }
        answers.add(name, answer);
    }

    /** Returns whether only the machine was too busy; the call is made again. */
    private static boolean isTimeOut(JsonObject failure) {
        return failure.get("type").getAsString().equals("RemotingTimeoutException")
            || failure.get("code").toString().equals(String.valueOf(CONSUMER_TIMED_OUT));
    }

    /** Returns the address of the cluster's only broker; the Dashboard asks for it before most calls. */
    final String broker() throws Exception {
        return admin.examineBrokerClusterInfo().getBrokerAddrTable().values().iterator().next().selectBrokerAddr();
    }

    final Object route(String name) throws Exception {
        return admin.examineTopicRouteInfo(name).getQueueDatas().stream()
            .map(one -> Arrays.asList(one.getReadQueueNums(), one.getWriteQueueNums(), one.getPerm()))
            .collect(Collectors.toList());
    }

    /** Returns the names that begin with the scenario's prefix; other scenarios create topics at the same time. */
    final Object own(Collection<String> names) {
        Predicate<String> isOwn = name -> name.startsWith(fields.text("prefix"));
        return names.stream().filter(isOwn).collect(Collectors.toCollection(TreeSet::new));
    }

    /**
     * Returns broker and consumer offset by queue of the scenario's topic. A queue of the retry topic is there or not,
     * because the consumer finds it late.
     */
    final Object progress(String name) throws Exception {
        Map<Integer, String> queues = new TreeMap<>();
        admin.examineConsumeStats(name).getOffsetTable().forEach((queue, offset) -> {
            if (queue.getTopic().equals(topic)) {
                queues.put(queue.getQueueId(), offset.getBrokerOffset() + " " + offset.getConsumerOffset());
            }
        });
        return queues;
    }

    final String client() throws Exception {
        return admin.examineConsumerConnectionInfo(group).getConnectionSet().iterator().next().getClientId();
    }

    static Object describe(TopicConfig config) {
        return config == null ? null : Arrays.asList(config.getReadQueueNums(), config.getWriteQueueNums(),
            config.getPerm(), config.isOrder(), config.getTopicSysFlag(), Branch.attributes(config));
    }

    static Map<Integer, Long> byQueue(Map<MessageQueue, Long> offsets) {
        Map<Integer, Long> byQueue = new TreeMap<>();
        offsets.forEach((queue, offset) -> byQueue.put(queue.getQueueId(), offset));
        return byQueue;
    }
}
