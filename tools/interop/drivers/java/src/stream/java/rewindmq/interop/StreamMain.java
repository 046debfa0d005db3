package rewindmq.interop;

import com.alibaba.cloud.stream.binder.rocketmq.RocketMQMessageChannelBinder;
import java.io.IOException;
import java.util.List;
import java.util.Map;

/** Drives RocketMQ's binder of Spring Cloud Stream; drivers/README.md describes the lines it reads and writes. */
public final class StreamMain {
    static final String NAME_SERVER = "spring.cloud.stream.rocketmq.binder.name-server";

    private StreamMain() {
    }

    public static void main(String[] arguments) throws IOException, InterruptedException {
        System.setProperty("org.springframework.boot.logging.LoggingSystem", "none");
        Main.run(new Binder());
    }

    private static final class Binder implements Main.Library {
        @Override
        public String name() {
            return "spring-cloud-starter-stream-rocketmq";
        }

        @Override
        public String version() {
            return RocketMQMessageChannelBinder.class.getPackage().getImplementationVersion();
        }

        @Override
        public List<Runnable> register(Map<String, Op> ops) {
            StreamBridges bridges = new StreamBridges();
            StreamFunctions functions = new StreamFunctions();
            bridges.register(ops);
            functions.register(ops);
            return List.of(functions::shutdown, bridges::shutdown);
        }
    }
}
