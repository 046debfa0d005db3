package rewindmq.interop;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.common.MQVersion;

/** Drives the official Java client and its admin client; drivers/README.md describes the lines. */
public final class OfficialMain {
    private OfficialMain() {
    }

    public static void main(String[] arguments) throws IOException, InterruptedException {
        Main.run(new Official());
    }

    private static final class Official implements Main.Library {
        @Override
        public String name() {
            return "rocketmq-client";
        }

        @Override
        public String version() {
            return MQVersion.getVersionDesc(MQVersion.CURRENT_VERSION).substring(1).replace('_', '.');
        }

        @Override
        public List<Runnable> register(Map<String, Op> ops) {
            Producers producers = new Producers();
            PushConsumers push = new PushConsumers();
            LitePullConsumers lite = new LitePullConsumers();
            PullConsumers pull = new PullConsumers();
            producers.register(ops);
            push.register(ops);
            lite.register(ops);
            pull.register(ops);
            Dashboard.register(ops);
            return List.of(push::shutdown, lite::shutdown, pull::shutdown, producers::shutdown);
        }
    }
}
