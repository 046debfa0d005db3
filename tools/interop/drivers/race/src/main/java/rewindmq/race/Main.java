package rewindmq.race;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.common.MQVersion;

/** Reads requests, one a line, and answers them; ends at the end of standard input. */
public final class Main {
    private static final int TRIES = 3;
    private static final String LITE = "rewindmq.race.Poller";
    private final Map<String, Actor> actors = new ConcurrentHashMap<>();
    private final Told told;
    private final Watcher watcher = new Watcher();

    private Main(Told told) {
        this.told = told;
    }

    public static void main(String[] args) throws Exception {
        PrintStream out = System.out;
        // Libraries print to standard output, which is for lines only.
        System.setOut(System.err);
        new Main(new Told(out)).run();
        // The library leaves non-daemon threads running.
        System.exit(0);
    }

    static void configure(ClientConfig consumer, JsonObject how) {
        consumer.setNamesrvAddr(how.get("namesrv").getAsString());
        consumer.setInstanceName(how.get("instance").getAsString());
        consumer.setClientIP("127.0.0.1");
        // The VIP channel would bypass the proxy.
        consumer.setVipChannelEnabled(false);
    }

    private void run() throws Exception {
        watcher.start();
        JsonObject ready = new JsonObject();
        ready.addProperty("client", "rocketmq-client");
        ready.addProperty("version", MQVersion.getVersionDesc(MQVersion.CURRENT_VERSION));
        JsonArray ops = new JsonArray();
        ops.add("push");
        ops.add("pull");
        if (hasLite()) {
            ops.add("lite");
        }
        ready.add("ops", ops);
        told.line(object("ready", ready));
        ExecutorService workers = Executors.newCachedThreadPool();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonObject order = JsonParser.parseString(line).getAsJsonObject();
            workers.execute(() -> answer(order));
        }
        for (Actor actor : actors.values()) {
            actor.stop();
        }
    }

    private void answer(JsonObject order) {
        JsonObject line = new JsonObject();
        line.add("id", order.get("id"));
        try {
            line.add("ok", carryOut(order.get("op").getAsString(), order));
        } catch (Throwable error) {
            error.printStackTrace();
            JsonObject told = new JsonObject();
            told.addProperty("type", error.getClass().getSimpleName());
            told.addProperty("text", String.valueOf(error.getMessage()));
            line.add("error", told);
        }
        told.line(line);
    }

    private JsonObject carryOut(String op, JsonObject order) throws Exception {
        String name = order.get("name").getAsString();
        switch (op) {
            case "push":
            case "pull":
            case "lite":
                actors.put(name, start(op, order));
                return new JsonObject();
            case "stop":
                actors.remove(name).stop();
                return new JsonObject();
            default:
                return actors.get(name).act(order.get("what").getAsString(), order);
        }
    }

    /** Starts a consumer; if the client fails because its route query takes over 3 s, tries again with a new one. */
    private Actor start(String op, JsonObject order) throws Exception {
        for (int attempt = 1; ; attempt++) {
            Actor actor = make(op, order);
            try {
                actor.start();
                return actor;
            } catch (IllegalStateException error) {
                actor.stop();
                if (attempt == TRIES) {
                    throw error;
                }
                order.addProperty("instance", order.get("instance").getAsString() + "-again");
            }
        }
    }

    private Actor make(String op, JsonObject order) throws Exception {
        if (op.equals("push")) {
            return new Pusher(order, told, watcher);
        }
        if (op.equals("pull")) {
            return new Puller(order);
        }
        return (Actor) Class.forName(LITE).getDeclaredConstructor(JsonObject.class, Told.class).newInstance(order, told);
    }

    private static boolean hasLite() {
        try {
            Class.forName(LITE);
            return true;
        } catch (ClassNotFoundException error) {
            return false;
        }
    }

    private static JsonObject object(String name, JsonObject value) {
        JsonObject object = new JsonObject();
        object.add(name, value);
        return object;
    }
}
