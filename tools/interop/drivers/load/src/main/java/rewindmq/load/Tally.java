package rewindmq.load;

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;

/** Counts sent and failed messages; thread-safe. */
final class Tally {
    private final AtomicLong messages = new AtomicLong();
    private final AtomicLong failed = new AtomicLong();
    private final AtomicReference<String> failure = new AtomicReference<>();

    void sent(int count) {
        messages.addAndGet(count);
    }

    void failed(Throwable error) {
        failed.incrementAndGet();
        failure.compareAndSet(null, error.toString());
    }

    Measured over(long nanoseconds) {
        return new Measured(messages.get(), nanoseconds / 1e9, failed.get(), failure.get());
    }
}
