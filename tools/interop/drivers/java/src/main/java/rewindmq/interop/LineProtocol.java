package rewindmq.interop;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Collection;

/**
 * The lines of {@code drivers/README.md}, one JSON object each. It reads them from standard input, and writes to
 * what was standard output when this class was loaded. All other output goes to standard error from then on.
 */
final class LineProtocol {
    static final Gson GSON = new GsonBuilder().serializeNulls().disableHtmlEscaping().create();

    private static final PrintStream LINES = System.out;

    static {
        System.setOut(System.err);
    }

    private final BufferedReader requests =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));

    /** Returns the next request, or null if standard input has ended. */
    JsonObject read() throws IOException {
        String line = requests.readLine();
        return line == null ? null : JsonParser.parseString(line).getAsJsonObject();
    }

    static void ready(String client, String version, Collection<String> ops) {
        JsonObject ready = new JsonObject();
        ready.addProperty("client", client);
        ready.addProperty("version", version);
        ready.add("ops", GSON.toJsonTree(ops));
        JsonObject line = new JsonObject();
        line.add("ready", ready);
        say(line);
    }

    static void say(JsonObject line) {
        byte[] bytes = (GSON.toJson(line) + "\n").getBytes(StandardCharsets.UTF_8);
        synchronized (LINES) {
            LINES.write(bytes, 0, bytes.length);
            LINES.flush();
        }
    }
}
