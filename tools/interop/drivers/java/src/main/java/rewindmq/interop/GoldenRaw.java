package rewindmq.interop;

import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.Map;
import org.apache.rocketmq.remoting.CommandCustomHeader;
import org.apache.rocketmq.remoting.netty.NettyClientConfig;
import org.apache.rocketmq.remoting.netty.NettyRemotingClient;
import org.apache.rocketmq.remoting.protocol.LanguageCode;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;

/**
 * Requests that no mqadmin command and no common call of the client sends. The library's remoting client sends
 * them, with the library's header classes. These are found and filled by name, because they moved between packages.
 */
final class GoldenRaw {
    private static final String[] PACKAGES = {
        "org.apache.rocketmq.common.protocol.header.",
        "org.apache.rocketmq.common.protocol.header.namesrv.",
        "org.apache.rocketmq.remoting.protocol.header.",
        "org.apache.rocketmq.remoting.protocol.header.namesrv."};
    private static final long MILLIS = 10_000;

    private final GoldenPlaces places;
    private final NettyRemotingClient client = new NettyRemotingClient(new NettyClientConfig());

    GoldenRaw(GoldenPlaces places) {
        this.places = places;
        client.start();
    }

    void close() {
        client.shutdown();
    }

    void askAll(GoldenClients clients) {
        askNamesrv();
        askBroker();
        askAboutConsumers(clients);
        refused();
    }

    private void askNamesrv() {
        namesrv(206, null);
        namesrv(219, "GetKVListByNamespaceRequestHeader", "namespace", "golden");
        namesrv(219, "GetKVListByNamespaceRequestHeader", "namespace", "none");
        namesrv(224, "GetTopicsByClusterRequestHeader", "cluster", "DefaultCluster");
        namesrv(304, null);
        namesrv(311, null);
        namesrv(312, null);
        namesrv(313, null);
        namesrv(9_999, null);
    }

    private void askBroker() {
        broker(21, null);
        broker(43, null);
        broker(45, null);
        broker(54, null);
        broker(305, null);
        broker(9_999, null);
        broker(351, "GetTopicConfigRequestHeader", "topic", GoldenTraffic.TOPIC);
        broker(351, "GetTopicConfigRequestHeader", "topic", "NoSuchTopic");
        broker(352, "GetSubscriptionGroupConfigRequestHeader", "group", GoldenTraffic.GROUP);
        broker(315, "ViewBrokerStatsDataRequestHeader",
            "statsName", "TOPIC_PUT_NUMS", "statsKey", GoldenTraffic.TOPIC);
        broker(14, "QueryConsumerOffsetRequestHeader", "consumerGroup", "golden-nobody",
            "topic", GoldenTraffic.TOPIC, "queueId", 0, "setZeroIfNotFound", false);
        broker(30, "GetMaxOffsetRequestHeader", "topic", GoldenTraffic.TOPIC, "queueId", 0);
        broker(32, "GetEarliestMsgStoretimeRequestHeader", "topic", GoldenTraffic.TOPIC, "queueId", 0);
        broker(202, "GetTopicStatsInfoRequestHeader", "topic", "NoSuchTopic");
        broker(215, "DeleteTopicRequestHeader", "topic", "TBW102");
    }

    private void askAboutConsumers(GoldenClients clients) {
        String group = GoldenTraffic.GROUP;
        String topic = GoldenTraffic.TOPIC;
        String clientId = clients.consumer.buildMQClientId();
        broker(38, "GetConsumerListByGroupRequestHeader", "consumerGroup", "golden-nobody");
        broker(208, "GetConsumeStatsRequestHeader", "consumerGroup", group);
        broker(208, "GetConsumeStatsRequestHeader", "consumerGroup", group, "topic", topic);
        broker(223, "GetConsumerStatusRequestHeader", "topic", topic, "group", group);
        broker(223, "GetConsumerStatusRequestHeader", "topic", topic, "group", group, "clientAddr", clientId);
        broker(223, "GetConsumerStatusRequestHeader", "topic", topic, "group", "golden-nobody");
        broker(303, "QueryConsumeTimeSpanRequestHeader", "topic", topic, "group", group);
        broker(308, "QueryCorrectionOffsetHeader",
            "topic", topic, "compareGroup", group, "filterGroups", "golden-clone");
        broker(314, "CloneGroupOffsetRequestHeader",
            "srcGroup", group, "destGroup", "golden-clone", "topic", topic);
        broker(317, "GetConsumeStatsInBrokerHeader", "isOrder", false);
        broker(307, "GetConsumerRunningInfoRequestHeader",
            "consumerGroup", "golden-nobody", "clientId", "nobody");
        broker(323, "ResumeCheckHalfMessageRequestHeader",
            "topic", "TRANS_CHECK_MAX_TIME_TOPIC", "msgId", "7F00000100002A9F0000000000000000");
        Object[] reset = {"topic", topic, "group", group, "timestamp", 0L, "isForce", true};
        broker(222, "ResetOffsetRequestHeader", reset);
        RemotingCommand fromCpp = command(222, "ResetOffsetRequestHeader", reset);
        fromCpp.setLanguage(LanguageCode.CPP);
        send(places.broker, fromCpp);
        broker(222, "ResetOffsetRequestHeader", "topic", topic, "group", group, "timestamp", 0L, "isForce", true,
            "queueId", 0, "offset", 1L);
        broker(222, "ResetOffsetRequestHeader", "topic", "NoSuchTopic", "group", group, "timestamp", 0L,
            "isForce", true);
    }

    /** Pulls that a broker refuses; a client sends them only if its data and the broker's differ. */
    private void refused() {
        pull("golden-nobody", 0L);
        pull(GoldenTraffic.GROUP, Long.MAX_VALUE);
        RemotingCommand config = RemotingCommand.createRequestCommand(25, null);
        config.setBody(GoldenTraffic.bytes("autoCreateSubscriptionGroup=false"));
        send(places.broker, config);
        pull("golden-unknown-group", 0L);
        config = RemotingCommand.createRequestCommand(25, null);
        config.setBody(GoldenTraffic.bytes("autoCreateSubscriptionGroup=true"));
        send(places.broker, config);
    }

    private void pull(String group, long version) {
        broker(11, "PullMessageRequestHeader", "consumerGroup", group, "topic", GoldenTraffic.TOPIC, "queueId", 0,
            "queueOffset", 0L, "maxMsgNums", 1, "sysFlag", 0, "commitOffset", 0L, "suspendTimeoutMillis", 0L,
            "subscription", "*", "subVersion", version, "expressionType", "TAG");
    }

    private void namesrv(int code, String header, Object... fields) {
        ask(places.namesrv, code, header, fields);
    }

    private void broker(int code, String header, Object... fields) {
        ask(places.broker, code, header, fields);
    }

    private void ask(String address, int code, String header, Object... fields) {
        GoldenTraffic.step("raw " + code, () -> send(address, command(code, header, fields)));
    }

    private void send(String address, RemotingCommand command) {
        GoldenTraffic.step("answer to " + command.getCode(), () -> client.invokeSync(address, command, MILLIS));
    }

    private static RemotingCommand command(int code, String header, Object... fields) {
        return RemotingCommand.createRequestCommand(code, header == null ? null : filled(header, fields));
    }

    private static CommandCustomHeader filled(String name, Object... fields) {
        Map<String, Object> values = new HashMap<>();
        for (int index = 0; index < fields.length; index += 2) {
            values.put((String) fields[index], fields[index + 1]);
        }
        try {
            Object header = find(name).getDeclaredConstructor().newInstance();
            for (Method method : header.getClass().getMethods()) {
                String field = fieldOf(method);
                if (values.containsKey(field)) {
                    method.invoke(header, values.get(field));
                }
            }
            return (CommandCustomHeader) header;
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Returns the field that a setter sets, or the empty text if the method is no setter. */
    private static String fieldOf(Method method) {
        String name = method.getName();
        if (!name.startsWith("set") || name.length() < 4 || method.getParameterCount() != 1) {
            return "";
        }
        return name.equals("setForce") ? "isForce" : Character.toLowerCase(name.charAt(3)) + name.substring(4);
    }

    private static Class<?> find(String name) throws ClassNotFoundException {
        for (String place : PACKAGES) {
            try {
                return Class.forName(place + name);
            } catch (ClassNotFoundException elsewhere) {
                continue;
            }
        }
        throw new ClassNotFoundException(name);
    }

    /** Calls a setter of an enum that moved between packages. */
    @SuppressWarnings({"unchecked", "rawtypes"})
    static void setEnum(Object target, String setter, String value) throws ReflectiveOperationException {
        for (Method method : target.getClass().getMethods()) {
            Class<?>[] types = method.getParameterTypes();
            if (method.getName().equals(setter) && types.length == 1 && types[0].isEnum()) {
                method.invoke(target, Enum.valueOf((Class<? extends Enum>) types[0], value));
                return;
            }
        }
        throw new NoSuchMethodException(setter);
    }
}
