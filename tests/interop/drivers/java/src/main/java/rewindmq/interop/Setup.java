package rewindmq.interop;

import org.apache.rocketmq.client.ClientConfig;

/** What producers and consumers have in common. */
final class Setup {
    // On a machine that is busy for a moment, too.
    private static final int PATIENCE_MS = 30_000;

    private Setup() {
    }

    /** Each has connections and threads of its own, as if it was alone in its process. */
    static void apply(ClientConfig client, Fields fields) {
        client.setNamesrvAddr(fields.text("namesrv"));
        client.setInstanceName(fields.text("name"));
        client.setVipChannelEnabled(false);
        client.setMqClientApiTimeout(PATIENCE_MS);
    }
}
