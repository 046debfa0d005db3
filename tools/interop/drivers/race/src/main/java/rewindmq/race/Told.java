package rewindmq.race;

import com.google.gson.Gson;
import com.google.gson.JsonObject;
import java.io.PrintStream;

/** Writes the lines of the driver. */
final class Told {
    private static final double NANOS = 1e9;
    private final Gson gson = new Gson();
    private final PrintStream out;

    Told(PrintStream out) {
        this.out = out;
    }

    /** Writes an event of this moment, by the clock that all processes of the machine share. */
    void point(String consumer, String kind, JsonObject details) {
        JsonObject line = new JsonObject();
        line.addProperty("event", "point");
        line.addProperty("consumer", consumer);
        line.addProperty("kind", kind);
        line.addProperty("at", System.nanoTime() / NANOS);
        line.add("details", details);
        line(line);
    }

    void line(JsonObject line) {
        synchronized (out) {
            out.println(gson.toJson(line));
            out.flush();
        }
    }
}
