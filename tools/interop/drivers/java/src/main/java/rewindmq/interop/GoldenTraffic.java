package rewindmq.interop;

import java.nio.charset.StandardCharsets;

/**
 * Has the official client and mqadmin send every request they can, through relays that record the frames.
 *
 * <p>{@code tools/interop/record_golden.py} starts the servers and the relays. Arguments:
 * what to do ({@code all} or {@code long-names}), then the addresses of the name server and the broker, once for
 * clients and once for tools. A step that fails is reported on standard output, and the next step follows: servers
 * must refuse some steps, and no release supports all of them.
 */
public final class GoldenTraffic {
    static final String TOPIC = "GoldenTopic";
    static final String ORDERED = "GoldenOrdered";
    static final String REQUESTS = "GoldenRequests";
    static final String GROUP = "golden-consumers";

    private GoldenTraffic() {
    }

    public static void main(String[] args) throws Exception {
        GoldenPlaces client = new GoldenPlaces(args[1], args[2]);
        GoldenPlaces tools = new GoldenPlaces(args[3], args[4]);
        if (args[0].equals("long-names")) {
            GoldenClients clients = new GoldenClients(client);
            step("send with long names", clients::sendSome);
            step("reply with long names", clients::requestAndReply);
            clients.close();
            end();
        }
        GoldenTools admin = new GoldenTools(tools);
        GoldenRaw raw = new GoldenRaw(client);
        step("before", admin::prepare);
        GoldenClients clients = new GoldenClients(client);
        step("send", clients::sendSome);
        step("transactions", clients::transact);
        step("consume", clients::consume);
        step("pull", clients::pull);
        step("lite pull", clients::litePull);
        step("reply", clients::requestAndReply);
        step("tools over running clients", () -> admin.lookAround(clients));
        step("raw", () -> raw.askAll(clients));
        step("late tools", admin::tidyUp);
        clients.close();
        raw.close();
        end();
    }

    /** A step that may fail. */
    interface Step {
        void run() throws Exception;
    }

    static void step(String name, Step step) {
        try {
            step.run();
            System.out.println("done: " + name);
        } catch (Throwable error) {
            System.out.println("failed: " + name + ": " + error);
        }
        System.out.flush();
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** Waits until a condition holds, at most half a minute. */
    static void await(String what, java.util.function.BooleanSupplier condition) throws InterruptedException {
        for (int turn = 0; turn < 300; turn++) {
            if (condition.getAsBoolean()) {
                return;
            }
            Thread.sleep(100);
        }
        throw new IllegalStateException("never came: " + what);
    }

    private static void end() {
        // The client library leaves threads running.
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }
}

/** The addresses at which one role finds the servers. */
final class GoldenPlaces {
    final String namesrv;
    final String broker;

    GoldenPlaces(String namesrv, String broker) {
        this.namesrv = namesrv;
        this.broker = broker;
    }
}
