package rewindmq.race;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/** A thread that inspects every push consumer in turn. */
final class Watcher extends Thread {
    private static final long PERIOD_MILLIS = 2;
    private final List<Watch> watches = new CopyOnWriteArrayList<>();

    Watcher() {
        super("watcher");
        setDaemon(true);
    }

    void add(Watch watch) {
        watches.add(watch);
    }

    void remove(Watch watch) {
        watches.remove(watch);
    }

    @Override
    public void run() {
        try {
            while (true) {
                watches.forEach(Watch::look);
                Thread.sleep(PERIOD_MILLIS);
            }
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }
}
