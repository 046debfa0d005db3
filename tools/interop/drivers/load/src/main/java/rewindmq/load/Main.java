package rewindmq.load;

import com.google.gson.Gson;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/**
 * Carries out one order after another, each a line of JSON on standard input, and answers each with a line on
 * standard output. All output of the client library goes to standard error. One process drives both clusters of a
 * comparison, so that both are measured with the same compiled code.
 *
 * <p>The line {"event": "begin"} announces the measured part before it starts.
 */
public final class Main {
    private static final Gson GSON = new Gson();

    private final Groups groups = new Groups();
    private final PrintStream lines = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    private Main() {
        System.setOut(System.err);
    }

    public static void main(String[] arguments) throws Exception {
        new Main().serve();
        System.exit(0);
    }

    private void serve() throws Exception {
        say(Map.of("ready", true));
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = orders.readLine(); line != null; line = orders.readLine()) {
            try {
                say(Map.of("ok", carryOut(GSON.fromJson(line, Order.class))));
            } catch (Exception error) {
                say(Map.of("error", error.toString()));
            }
        }
    }

    private Measured carryOut(Order order) throws Exception {
        switch (order.op) {
            case "send":
                return Sends.measure(order, this::begin);
            case "fill":
                return Sends.fill(order);
            case "consume":
                return Consumption.measure(order, this::begin);
            case "join":
                return groups.join(order);
            case "mark":
                return groups.mark(order);
            case "again":
                return groups.again(order);
            case "leave":
                return groups.leave(order);
            default:
                throw new IllegalArgumentException("unknown op " + order.op);
        }
    }

    private void begin() {
        say(Map.of("event", "begin"));
    }

    private void say(Object line) {
        lines.println(GSON.toJson(line));
    }
}
