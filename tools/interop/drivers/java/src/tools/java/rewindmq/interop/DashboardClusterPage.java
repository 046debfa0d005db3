package rewindmq.interop;

import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** The cluster page with its table of figures and the broker's configuration, and the charts of the home page. */
final class DashboardClusterPage extends DashboardPage {
    // Not those that a broker has only after a minute, or after a delayed message.
    private static final List<String> FIGURES = List.of(
        "putTps", "getTransferedTps", "getTransferredTps", "getTotalTps", "msgPutTotalYesterdayMorning",
        "msgPutTotalTodayMorning", "msgPutTotalTodayNow", "msgGetTotalYesterdayMorning", "msgGetTotalTodayMorning",
        "msgGetTotalTodayNow", "bootTimestamp", "brokerVersionDesc", "brokerVersion", "sendThreadPoolQueueSize",
        "sendThreadPoolQueueHeadWaitTimeMills", "pullThreadPoolQueueSize", "pullThreadPoolQueueHeadWaitTimeMills",
        "commitLogDiskRatio", "commitLogDirCapacity", "consumeQueueDiskRatio", "commitLogMaxOffset",
        "commitLogMinOffset", "dispatchBehindBytes", "remainHowManyDataToFlush", "earliestMessageTimeStamp",
        "getFoundTps", "getMissTps", "pageCacheLockTimeMills", "putMessageTimesTotal",
        "putMessageAverageSize", "putMessageSizeTotal", "putMessageEntireTimeMax", "getMessageEntireTimeMax",
        "runtime", "startAcceptSendRequestTimeStamp");
    private static final List<String> CONFIGURATION = List.of(
        "brokerClusterName", "brokerRole", "brokerPermission", "brokerId", "autoCreateTopicEnable",
        "autoCreateSubscriptionGroup", "deleteWhen", "fileReservedTime", "flushDiskType", "maxMessageSize");

    DashboardClusterPage(DefaultMQAdminExt admin, Fields fields) {
        super(admin, fields);
    }

    @Override
    void open() throws Exception {
        ask("clusters", () -> admin.examineBrokerClusterInfo().getClusterAddrTable().keySet());
        ask("broker ids", () -> admin.examineBrokerClusterInfo().getBrokerAddrTable().values().iterator().next()
            .getBrokerAddrs().keySet());
        ask("runtime figures", () -> {
            var figures = admin.fetchBrokerRuntimeStats(broker()).getTable();
            return FIGURES.stream().filter(figures::containsKey).toArray();
        });
        ask("configuration", () -> {
            Properties all = admin.getBrokerConfig(broker());
            Map<String, String> values = new TreeMap<>();
            CONFIGURATION.forEach(key -> values.put(key, all.getProperty(key)));
            return values;
        });
        charts();
    }

    private void charts() {
        ask("route for the chart", () -> route(topic));
        ask("groups for the chart", () -> new TreeSet<>(admin.queryTopicConsumeByWho(topic).getGroupList()));
        ask("messages sent", () -> chart("TOPIC_PUT_NUMS", topic));
        ask("bytes sent", () -> chart("TOPIC_PUT_SIZE", topic));
        ask("messages consumed", () -> chart("GROUP_GET_NUMS", topic + "@" + group));
        ask("bytes consumed", () -> chart("GROUP_GET_SIZE", topic + "@" + group));
        ask("chart of no topic", () -> chart("TOPIC_PUT_NUMS", topic + "-none"));
        ask("chart of no name", () -> chart("NO_SUCH_CHART", topic));
    }

    /** Returns whether there are figures for minute, hour and day. */
    private Object chart(String name, String key) throws Exception {
        var data = admin.viewBrokerStatsData(broker(), name, key);
        return Stream.of(data.getStatsMinute(), data.getStatsHour(), data.getStatsDay())
            .map(one -> one != null && one.getSum() >= 0 && one.getTps() >= 0 && one.getAvgpt() >= 0).toArray();
    }
}
