package rewindmq.interop;

import java.util.Set;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** Calls of the admin client that differ between 4.x and 5.x. */
final class AdminBranch {
    private static final String CLUSTER = "DefaultCluster";

    private AdminBranch() {
    }

    /** Deletes the routes of a topic; 4.x has the same method with the last two arguments exchanged. */
    static void deleteRoutes(DefaultMQAdminExt admin, Set<String> namesrvs, String topic) throws Exception {
        admin.deleteTopicInNameServer(namesrvs, CLUSTER, topic);
    }
}
