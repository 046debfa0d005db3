package rewindmq.interop;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.spring.core.RocketMQTemplate;

/** Drives RocketMQ's Spring Boot starter; drivers/README.md describes the lines it reads and writes. */
public final class SpringMain {
    static final String NAME_SERVER = "rocketmq.name-server";

    private SpringMain() {
    }

    public static void main(String[] arguments) throws IOException, InterruptedException {
        System.setProperty("org.springframework.boot.logging.LoggingSystem", "none");
        Main.run(new Starter());
    }

    private static final class Starter implements Main.Library {
        @Override
        public String name() {
            return "rocketmq-spring-boot-starter";
        }

        @Override
        public String version() {
            return RocketMQTemplate.class.getPackage().getImplementationVersion();
        }

        @Override
        public List<Runnable> register(Map<String, Op> ops) {
            SpringTemplates templates = new SpringTemplates();
            SpringListeners listeners = new SpringListeners();
            SpringReceivers receivers = new SpringReceivers();
            templates.register(ops);
            listeners.register(ops);
            receivers.register(ops);
            return List.of(listeners::shutdown, receivers::shutdown, templates::shutdown);
        }
    }
}
