package rewindmq.interop;

import org.apache.rocketmq.client.ClientConfig;

/** Settings that producers and consumers share. */
final class Setup {
    // Long, because a busy machine may answer late.
    static final int PATIENCE_MS = 30_000;
    // A new group's retry topic exists after its first heartbeat, and only the next poll finds its route.
    private static final int POLL_MS = 5_000;

    private Setup() {
    }

    /** Applies the settings; each client has connections and threads of its own, as if alone in its process. */
    static void apply(ClientConfig client, Fields fields) {
        client.setNamesrvAddr(fields.text("namesrv"));
        client.setInstanceName(fields.text("name"));
        // Off unless asked for, also in clients that have it on by default.
        client.setVipChannelEnabled(Boolean.getBoolean(ClientConfig.SEND_MESSAGE_WITH_VIP_CHANNEL_PROPERTY));
        client.setMqClientApiTimeout(PATIENCE_MS);
        client.setPollNameServerInterval(POLL_MS);
    }
}
