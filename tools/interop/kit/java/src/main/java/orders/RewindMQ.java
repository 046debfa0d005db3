package orders;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * JUnit 5 extension: one RewindMQ cluster for all test classes, as a parameter of type {@link Cluster}.
 *
 * <p>It runs {@code rewindmq up}, or uses a running one that REWINDMQ_CONTROL and REWINDMQ_CONTROL_TOKEN_FILE name.
 * After each test, it ends all faults, and fails the test if a rule met nothing.
 */
public final class RewindMQ implements ParameterResolver, AfterEachCallback {
    private static final ExtensionContext.Namespace NAMESPACE = ExtensionContext.Namespace.create(RewindMQ.class);

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        return parameter.getParameter().getType() == Cluster.class;
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        return cluster(context);
    }

    @Override
    public void afterEach(ExtensionContext context) {
        String settled = cluster(context).post("/v1/settle", "{}");
        boolean passed = context.getExecutionException().isEmpty();
        if (passed && !settled.contains("\"complaints\":[]")) {
            throw new AssertionError(settled);
        }
    }

    private static Cluster cluster(ExtensionContext context) {
        return context.getRoot().getStore(NAMESPACE).getOrComputeIfAbsent(Cluster.class);
    }

    /** A running cluster; JUnit closes it after the last test. */
    public static final class Cluster implements ExtensionContext.Store.CloseableResource {
        private final HttpClient http =
                HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
        private final Process process;
        private final String url;
        private final String token;

        public Cluster() throws IOException {
            String running = System.getenv("REWINDMQ_CONTROL");
            if (running != null) {
                process = null;
                url = running;
                token = Files.readString(Path.of(System.getenv("REWINDMQ_CONTROL_TOKEN_FILE"))).trim();
                return;
            }
            process = new ProcessBuilder(
                            "rewindmq", "up", "-p", "0", "--brokers", "1", "--control-port", "0", "--ready-json")
                    .redirectError(ProcessBuilder.Redirect.INHERIT)
                    .start();
            // Also if the tests are interrupted.
            Runtime.getRuntime().addShutdownHook(new Thread(process::destroy));
            String ready = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))
                    .readLine();
            if (ready == null) {
                throw new IOException("rewindmq up did not start; it says why on standard error");
            }
            url = text(ready, "control");
            token = Files.readString(Path.of(text(ready, "token_file"))).trim();
        }

        @Override
        public void close() throws InterruptedException {
            if (process != null) {
                process.destroy();
                process.waitFor();
            }
        }

        public void createTopic(String name, int queues) {
            post("/v1/topics", "{\"name\":" + quoted(name) + ",\"queues\":" + queues + "}");
        }

        /** The name-server address of a client that rules call by this name. */
        public String addressFor(String client) {
            return text(post("/v1/clients", "{\"name\":" + quoted(client) + "}"), "namesrv");
        }

        /** kill, restart, pause or resume a member, such as broker-a. */
        public void member(String name, String action) {
            post("/v1/members/" + name + "/" + action, "{}");
        }

        /** Lets a broker act as if its disk were full, or as its disk is. */
        public void diskFull(String broker, boolean full) {
            post("/v1/disk_full", "{\"broker\":" + quoted(broker) + ",\"full\":" + full + "}");
        }

        /** Moves the clocks of all brokers forward; the end of the test puts the cluster back. */
        public void travel(Duration time) {
            post("/v1/travel", "{\"seconds\":" + time.toMillis() / 1000.0 + "}");
        }

        public void snapshot(String name) {
            post("/v1/snapshots", "{\"name\":" + quoted(name) + "}");
        }

        public void restore(String name) {
            post("/v1/snapshots/" + name + "/restore", "{}");
        }

        /** The file is a name, such as backlog.tar, in the folder of rewindmq up --control-snapshot-dir. */
        public void saveSnapshot(String name, String file) {
            post("/v1/snapshots/" + name + "/save", "{\"file\":" + quoted(file) + "}");
        }

        public void loadSnapshot(String name, String file) {
            post("/v1/snapshots/" + name + "/load", "{\"file\":" + quoted(file) + "}");
        }

        public Requests on(String request) {
            return new Requests(this, "{\"on\":" + quoted(request));
        }

        /** Sends JSON to any path of the control port, and returns its JSON. */
        public String post(String path, String json) {
            HttpRequest request = HttpRequest.newBuilder(URI.create(url + path))
                    .header("Authorization", "Bearer " + token)
                    .POST(HttpRequest.BodyPublishers.ofString(json))
                    .build();
            try {
                HttpResponse<String> response = http.send(request, HttpResponse.BodyHandlers.ofString());
                if (response.statusCode() != 200) {
                    throw new AssertionError(path + ": " + response.statusCode() + " " + response.body());
                }
                return response.body();
            } catch (IOException error) {
                throw new IllegalStateException("no control port at " + url, error);
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
                throw new IllegalStateException(error);
            }
        }
    }

    /** Requests of one name; each of the last methods begins a rule for them. */
    public static final class Requests {
        private final Cluster cluster;
        private final String json;

        private Requests(Cluster cluster, String json) {
            this.cluster = cluster;
            this.json = json;
        }

        /** topic, group, client, server or direction. */
        public Requests where(String field, String value) {
            return new Requests(cluster, json + "," + quoted(field) + ":" + quoted(value));
        }

        public Requests queue(int number) {
            return new Requests(cluster, json + ",\"queue\":" + number);
        }

        /** All such requests, until the rule is released or stopped; without it, the next one only. */
        public Requests everyTime() {
            return new Requests(cluster, json + ",\"times\":null");
        }

        public Rule hold() {
            return begin("\"hold\"");
        }

        public Rule drop() {
            return begin("\"drop\"");
        }

        public Rule duplicate() {
            return begin("\"duplicate\"");
        }

        public Rule delay(double seconds) {
            return begin("\"delay\",\"seconds\":" + seconds);
        }

        public Rule fail(String code, String remark) {
            return begin("\"fail\",\"code\":" + quoted(code) + ",\"remark\":" + quoted(remark));
        }

        private Rule begin(String action) {
            String rule = cluster.post("/v1/rules", json + ",\"do\":" + action + "}");
            return new Rule(cluster, "/v1/rules/" + number(rule, "rule"));
        }
    }

    /** A rule that is in force. */
    public static final class Rule {
        private final Cluster cluster;
        private final String path;

        private Rule(Cluster cluster, String path) {
            this.cluster = cluster;
            this.path = path;
        }

        /** Waits until a request meets the rule; returns the request as JSON. */
        public String met(Duration timeout) {
            return cluster.post(path + "/met", "{\"timeout\":" + timeout.toMillis() / 1000.0 + "}");
        }

        public void release() {
            cluster.post(path + "/release", "{}");
        }

        public void stop() {
            cluster.post(path + "/stop", "{}");
        }
    }

    /** The text of a JSON field; enough for the control port's addresses and paths. */
    static String text(String json, String field) {
        return find(json, field, "\"((?:[^\"\\\\]|\\\\.)*)\"");
    }

    static long number(String json, String field) {
        return Long.parseLong(find(json, field, "(-?[0-9]+)"));
    }

    private static String find(String json, String field, String value) {
        Matcher matcher = Pattern.compile("\"" + field + "\":" + value).matcher(json);
        if (!matcher.find()) {
            throw new IllegalStateException("no " + field + " in " + json);
        }
        return matcher.group(1);
    }

    private static String quoted(String text) {
        StringBuilder json = new StringBuilder("\"");
        for (char each : text.toCharArray()) {
            if (each == '"' || each == '\\' || each < ' ') {
                json.append(String.format("\\u%04x", (int) each));
            } else {
                json.append(each);
            }
        }
        return json.append('"').toString();
    }
}
