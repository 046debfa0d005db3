package rewindmq.race;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;

/** How long listener calls take, from the suite's ListenerPlan. */
final class Plan {
    private static final double MILLIS = 1000;
    // The pull after a message must commit the offset before that message, as with listeners that take time.
    private static final double SHORTEST = 0.2;
    private final double seconds;
    private final Double again;
    private final Map<Long, Double> slow = new HashMap<>();
    private final Set<Long> blocked = new HashSet<>();
    private final Set<String> seen = ConcurrentHashMap.newKeySet();
    private final Map<Long, CountDownLatch> gates = new ConcurrentHashMap<>();

    Plan(JsonObject plan) {
        seconds = plan.get("seconds").getAsDouble();
        again = plan.get("again").isJsonNull() ? null : plan.get("again").getAsDouble();
        for (Map.Entry<String, JsonElement> entry : plan.getAsJsonObject("slow").entrySet()) {
            slow.put(Long.valueOf(entry.getKey()), entry.getValue().getAsDouble());
        }
        plan.getAsJsonArray("blocked").forEach(offset -> blocked.add(offset.getAsLong()));
    }

    void takeTime(String queue, long offset) throws InterruptedException {
        double wait = seconds;
        if (seen.add(queue + "/" + offset)) {
            if (blocked.contains(offset)) {
                gate(offset).await();
                return;
            }
            wait = Math.max(SHORTEST, slow.getOrDefault(offset, seconds));
        } else if (again != null) {
            wait = again;
        }
        if (wait > 0) {
            Thread.sleep((long) (wait * MILLIS));
        }
    }

    /** Lets the call that is blocked on this offset return, or the first such call if none is blocked yet. */
    void release(long offset) {
        gate(offset).countDown();
    }

    private CountDownLatch gate(long offset) {
        return gates.computeIfAbsent(offset, key -> new CountDownLatch(1));
    }
}
