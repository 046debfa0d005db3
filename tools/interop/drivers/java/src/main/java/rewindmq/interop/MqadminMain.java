package rewindmq.interop;

import com.google.gson.Gson;
import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.rocketmq.common.MQVersion;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/**
 * Runs commands of the official mqadmin, one at a time: the name server's address and standard output, which the
 * commands print to, belong to the whole process.
 *
 * <p>The lines are those of {@code drivers/README.md}, with {@code mqadmin} as the only operation.
 */
public final class MqadminMain {
    private static final PrintStream LINES = System.out;
    private static final Gson GSON = new Gson();
    private static final int THREADS = 1024;
    private static final long WAKE_MILLIS = 50;

    private MqadminMain() {
    }

    public static void main(String[] arguments) throws IOException, IllegalAccessException {
        Thread commands = Thread.currentThread();
        Thread waker = new Thread(() -> wakeExecutors(commands), "waker");
        waker.setDaemon(true);
        waker.start();
        say(ready());
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            JsonObject request = JsonParser.parseString(line).getAsJsonObject();
            JsonObject answer = new JsonObject();
            answer.add("id", request.get("id"));
            answer.add("ok", run(request.getAsJsonArray("args")));
            say(answer);
        }
        // The library leaves non-daemon threads running.
        System.exit(0);
    }

    private static JsonObject ready() {
        JsonObject ready = new JsonObject();
        ready.addProperty("client", "rocketmq-tools");
        ready.addProperty("version", MQVersion.getVersionDesc(MQVersion.CURRENT_VERSION));
        ready.add("ops", GSON.toJsonTree(List.of("mqadmin")));
        JsonObject line = new JsonObject();
        line.add("ready", ready);
        return line;
    }

    private static JsonObject run(JsonArray arguments) throws IllegalAccessException {
        forgetCommands();
        ByteArrayOutputStream output = new ByteArrayOutputStream();
        ByteArrayOutputStream errors = new ByteArrayOutputStream();
        PrintStream standardErrors = System.err;
        System.setOut(new PrintStream(output, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(errors, true, StandardCharsets.UTF_8));
        try {
            MQAdminStartup.main0(GSON.fromJson(arguments, String[].class), null);
        } catch (Throwable error) {
            // Otherwise this process would end and answer no further request.
            error.printStackTrace();
        } finally {
            System.setOut(LINES);
            System.setErr(standardErrors);
        }
        JsonObject answer = new JsonObject();
        answer.addProperty("output", output.toString(StandardCharsets.UTF_8));
        answer.addProperty("errors", errors.toString(StandardCharsets.UTF_8));
        return answer;
    }

    /**
     * Interrupts idle threads that a client's shutdown waits for. Such a thread checks only every 3 s whether it must
     * end, which is most of the time that commands take; after an interrupt it checks at once. It must not be
     * interrupted earlier or in other work: in 5.x this thread also sends heartbeats, and an interrupted one closes
     * the connection that other requests use.
     */
    private static void wakeExecutors(Thread commands) {
        Thread[] threads = new Thread[THREADS];
        while (true) {
            // List threads before checking the command's state, so that no thread of a later command is listed.
            int found = Thread.enumerate(threads);
            int count = has(commands, "ServiceThread", "shutdown") ? found : 0;
            for (int number = 0; number < count; number++) {
                Thread thread = threads[number];
                if (thread.getName().equals("NettyEventExecutor") && has(thread, "LinkedBlockingQueue", "poll")) {
                    thread.interrupt();
                }
            }
            try {
                Thread.sleep(WAKE_MILLIS);
            } catch (InterruptedException stopped) {
                return;
            }
        }
    }

    private static boolean has(Thread thread, String simpleClass, String method) {
        for (StackTraceElement frame : thread.getStackTrace()) {
            if (frame.getClassName().endsWith("." + simpleClass) && frame.getMethodName().equals(method)) {
                return true;
            }
        }
        return false;
    }

    /** Drops the commands, because each keeps a client that starts only once. Releases name their list differently. */
    private static void forgetCommands() throws IllegalAccessException {
        for (Field field : MQAdminStartup.class.getDeclaredFields()) {
            if (List.class.isAssignableFrom(field.getType())) {
                field.setAccessible(true);
                ((List<?>) field.get(null)).clear();
            }
        }
    }

    private static void say(JsonObject line) {
        LINES.println(GSON.toJson(line));
        LINES.flush();
    }
}
