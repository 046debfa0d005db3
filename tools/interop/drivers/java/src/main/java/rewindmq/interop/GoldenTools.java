package rewindmq.interop;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.rocketmq.common.MQVersion;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/** The requests of operators: mqadmin's commands, one after another. */
final class GoldenTools {
    /** V5_0_0, the first version in which this command requires the topic; earlier ones do not know the option. */
    private static final int FIRST_WITH_TOPIC = 413;

    private final GoldenPlaces places;

    GoldenTools(GoldenPlaces places) {
        this.places = places;
    }

    void prepare() {
        String broker = places.broker;
        String[] topics = {
            GoldenTraffic.TOPIC, GoldenTraffic.ORDERED, GoldenTraffic.REQUESTS, "GoldenReadOnly", "GoldenDoomed"};
        for (String topic : topics) {
            mqadmin("updateTopic", "-b", broker, "-t", topic, "-r", "1", "-w", "1");
        }
        mqadmin("updateTopic", "-b", broker, "-t", "TBW102", "-r", "1", "-w", "1");
        mqadmin("updateTopicPerm", "-b", broker, "-t", "GoldenReadOnly", "-p", "4");
        mqadmin("updateSubGroup", "-b", broker, "-g", GoldenTraffic.GROUP, "-s", "true", "-m", "true", "-d", "true");
        mqadmin("updateSubGroup", "-b", broker, "-g", "golden-broadcasting", "-s", "true", "-d", "true");
        for (String group : new String[] {"golden-doomed", "golden-clone"}) {
            mqadmin("updateSubGroup", "-b", broker, "-g", group);
        }
    }

    void lookAround(GoldenClients clients) throws Exception {
        String broker = places.broker;
        String group = GoldenTraffic.GROUP;
        String topic = GoldenTraffic.TOPIC;
        mqadmin("clusterList");
        mqadmin("brokerStatus", "-b", broker);
        mqadmin("topicList", "-c");
        mqadmin("topicRoute", "-t", topic);
        mqadmin("topicRoute", "-t", "NoSuchTopic");
        mqadmin("topicClusterList", "-t", topic);
        mqadmin("topicStatus", "-t", topic);
        mqadmin("getConsumerConfig", "-g", group);
        mqadmin("consumerConnection", "-g", group);
        mqadmin("consumerConnection", "-g", "golden-orderly");
        mqadmin("producerConnection", "-g", "golden-producers", "-t", topic);
        mqadmin("producer", "-b", broker);
        mqadmin("consumerProgress", "-g", group);
        mqadmin("consumerProgress");
        mqadmin("consumerStatus", "-g", group);
        mqadmin("consumerStatus", "-g", "golden-orderly");
        mqadmin("brokerConsumeStats", "-b", broker);
        mqadmin("statsAll", "-t", topic);
        mqadmin("queryCq", "-b", broker, "-t", topic, "-q", "0", "-i", "0", "-c", "3", "-g", group);
        mqadmin("queryMsgByKey", "-t", topic, "-k", "key-1");
        mqadmin("queryMsgByKey", "-t", topic, "-k", "key-none");
        mqadmin("queryMsgByUniqueKey", "-t", topic, "-i", clients.uniqueId);
        mqadmin("queryMsgByOffset", "-b", "broker-a", "-t", topic, "-i", "0", "-o", "0");
        String id = throughRelay(clients.some.getCommitLogOffset());
        queryById("-i", id);
        queryById("-i", throughRelay(1L << 40));
        queryById("-i", id, "-g", group, "-d", clients.consumer.buildMQClientId());
        mqadmin("printMsg", "-t", topic);
        mqadmin("updateOrderConf", "-m", "put", "-t", "GoldenOrder", "-v", "broker-a:1");
        mqadmin("updateOrderConf", "-m", "get", "-t", "GoldenOrder");
        mqadmin("updateOrderConf", "-m", "get", "-t", "NoSuchOrder");
        mqadmin("updateKvConfig", "-s", "golden", "-k", "colour", "-v", "gold");
        mqadmin("getBrokerConfig", "-b", broker);
        mqadmin("updateBrokerConfig", "-b", broker, "-k", "flushDelayOffsetInterval", "-v", "10001");
        mqadmin("haStatus", "-b", broker);
        String topics = "[{\"topicName\":\"GoldenListed\",\"attributes\":{\"+message.type\":\"NORMAL\"}}]";
        mqadmin("updateTopicList", "-b", broker, "-f", file("topics.json", topics));
        mqadmin("updateSubGroupList", "-b", broker, "-f", file("groups.json", "[{\"groupName\":\"golden-listed\"}]"));
        mqadmin("resetMasterFlushOffset", "-b", broker, "-o", "0");
        mqadmin("getNamesrvConfig");
        mqadmin("updateNamesrvConfig", "-k", "returnOrderTopicConfigToBroker", "-v", "true");
        mqadmin("resetOffsetByTime", "-g", "golden-nobody", "-t", topic, "-s", "0");
        mqadmin("resetOffsetByTime", "-g", group, "-t", topic, "-s", "0");
        // 5.2 and later send RESET_CONSUMER_CLIENT_OFFSET (220) only with this key; earlier brokers ignore the key.
        mqadmin("updateBrokerConfig", "-b", broker, "-k", "useServerSideResetOffset", "-v", "false");
        mqadmin("resetOffsetByTime", "-g", group, "-t", topic, "-s", "0");
        mqadmin("skipAccumulatedMessage", "-g", "golden-orderly", "-t", GoldenTraffic.ORDERED);
        mqadmin("cloneGroupOffset", "-s", group, "-d", "golden-clone", "-t", topic, "-o", "false");
        mqadmin("updateAclConfig", "-b", broker, "-a", "golden-account", "-s", "golden-secret",
            "-i", "GoldenTopic=PUB|SUB", "-u", "DENY", "-w", "127.0.0.1");
        mqadmin("updateGlobalWhiteAddr", "-b", broker, "-g", "127.0.0.1");
        mqadmin("clusterAclConfigVersion", "-b", broker);
    }

    void tidyUp() {
        String broker = places.broker;
        mqadmin("deleteAclConfig", "-b", broker, "-a", "golden-account");
        mqadmin("deleteKvConfig", "-s", "golden", "-k", "colour");
        mqadmin("wipeWritePerm", "-b", "broker-a");
        mqadmin("addWritePerm", "-b", "broker-a");
        mqadmin("cleanExpiredCQ", "-b", broker);
        mqadmin("deleteExpiredCommitLog", "-b", broker);
        mqadmin("cleanUnusedTopic", "-b", broker);
        mqadmin("deleteTopic", "-c", "DefaultCluster", "-t", "GoldenDoomed");
        mqadmin("deleteSubGroup", "-b", broker, "-g", "golden-doomed", "-r", "true");
    }

    private void queryById(String... options) {
        List<String> line = new ArrayList<>(List.of(options));
        if (MQVersion.CURRENT_VERSION >= FIRST_WITH_TOPIC) {
            line.addAll(List.of("-t", GoldenTraffic.TOPIC));
        }
        mqadmin("queryMsgById", line.toArray(new String[0]));
    }

    /** Returns the offset id that a message would have if the broker had its relay's address. */
    private String throughRelay(long offset) throws Exception {
        String[] parts = places.broker.split(":");
        var address = new java.net.InetSocketAddress(parts[0], Integer.parseInt(parts[1]));
        return MessageDecoder.createMessageId(address, offset);
    }

    /** Writes a file that a command reads, and returns its name. */
    private static String file(String name, String text) throws IOException {
        return Files.writeString(Path.of(System.getProperty("user.home"), name), text).toString();
    }

    private void mqadmin(String command, String... options) {
        List<String> line = new ArrayList<>(List.of(command, "-n", places.namesrv));
        line.addAll(List.of(options));
        String[] arguments = line.toArray(new String[0]);
        GoldenTraffic.step("mqadmin " + String.join(" ", line), () -> MQAdminStartup.main0(arguments, null));
    }
}
