package rewindmq.interop;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** What all drivers in Java have in common; drivers/README.md describes the lines they read and write. */
final class Main {
    private static final int REQUESTS_END_SECONDS = 5;

    private Main() {
    }

    /** A library that a program drives. */
    interface Library {
        String name();

        String version();

        /** Adds the library's operations; returns what shuts down its clients, in that order. */
        List<Runnable> register(Map<String, Op> ops);
    }

    /** Carries out the requests of standard input until it ends, then ends the process. */
    static void run(Library library) throws IOException, InterruptedException {
        Path home = Files.createTempDirectory("rewindmq-driver");
        // Before the library's classes are loaded, because its logs and broadcast offsets go to the home directory.
        System.setProperty("user.home", home.toString());
        LineProtocol lines = new LineProtocol();
        try {
            serve(lines, library);
        } finally {
            remove(home);
        }
        // The library leaves non-daemon threads running.
        System.exit(0);
    }

    private static void serve(LineProtocol lines, Library library) throws IOException, InterruptedException {
        Map<String, Op> ops = new TreeMap<>();
        List<Runnable> shutdowns = library.register(ops);
        ExecutorService requests = Executors.newCachedThreadPool();
        LineProtocol.ready(library.name(), library.version(), ops.keySet());
        for (JsonObject line = lines.read(); line != null; line = lines.read()) {
            JsonObject request = line;
            requests.execute(() -> answer(ops, request));
        }
        shutdowns.forEach(Runnable::run);
        requests.shutdown();
        requests.awaitTermination(REQUESTS_END_SECONDS, TimeUnit.SECONDS);
    }

    private static void answer(Map<String, Op> ops, JsonObject request) {
        JsonObject answer = new JsonObject();
        JsonElement id = request.get("id");
        answer.add("id", id);
        try {
            answer.add("ok", ops.get(request.get("op").getAsString()).run(new Fields(request)));
        } catch (Exception | LinkageError error) {
            error.printStackTrace();
            answer.add("error", Failure.describe(error));
        }
        LineProtocol.say(answer);
    }

    private static void remove(Path directory) throws IOException {
        try (Stream<Path> paths = Files.walk(directory)) {
            paths.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
        }
    }
}
