package rewindmq.interop;

import org.apache.rocketmq.client.ClientConfig;

/** What producers and consumers have in common. */
final class Setup {
    // On a machine that is busy for a moment, too.
    private static final int PATIENCE_MS = 30_000;
    // A new group's retry topic is there after its first heartbeat, and found by the next poll only.
    private static final int POLL_MS = 5_000;

    private Setup() {
    }

    /** Each has connections and threads of its own, as if it was alone in its process. */
    static void apply(ClientConfig client, Fields fields) {
        client.setNamesrvAddr(fields.text("namesrv"));
        client.setInstanceName(fields.text("name"));
        // Off unless asked for, in clients whose own default is on, too.
        client.setVipChannelEnabled(Boolean.getBoolean(ClientConfig.SEND_MESSAGE_WITH_VIP_CHANNEL_PROPERTY));
        client.setMqClientApiTimeout(PATIENCE_MS);
        client.setPollNameServerInterval(POLL_MS);
    }
}
