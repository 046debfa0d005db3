package rewindmq.interop;

import com.google.gson.JsonObject;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** Opens the pages of RocketMQ's Dashboard, one after another, with the official admin client. */
final class Dashboard {
    private Dashboard() {
    }

    static void register(Map<String, Op> ops) {
        ops.put("admin.dashboard", Dashboard::show);
    }

    private static JsonObject show(Fields fields) throws Exception {
        DefaultMQAdminExt admin = new DefaultMQAdminExt(DashboardPage.PATIENCE_MS);
        Setup.apply(admin, fields);
        admin.setMqClientApiTimeout(DashboardPage.PATIENCE_MS);
        admin.start();
        try {
            Map<String, DashboardPage> pages = new LinkedHashMap<>();
            pages.put("cluster", new DashboardClusterPage(admin, fields));
            pages.put("topic", new DashboardTopicPage(admin, fields));
            pages.put("message", new DashboardMessagePages(admin, fields));
            // Last, because it resets offsets.
            pages.put("consumer", new DashboardConsumerPage(admin, fields));
            JsonObject answers = new JsonObject();
            for (Map.Entry<String, DashboardPage> page : pages.entrySet()) {
                page.getValue().open();
                answers.add(page.getKey(), page.getValue().answers());
            }
            JsonObject answer = new JsonObject();
            answer.add("pages", answers);
            return answer;
        } finally {
            admin.shutdown();
        }
    }
}
