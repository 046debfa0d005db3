package rewindmq.load;

import java.util.Map;

/** One line of standard input; which fields it uses depends on {@code op}. */
final class Order {
    /** Long, because the library's default of 3 s would turn a stall of a busy machine into a failure. */
    static final int TIMEOUT_MS = 30_000;

    String op;
    String namesrv;
    String topic;

    /** fill, consume: number of messages. */
    int count;
    /** Size of a body, bytes. */
    int size;
    /** send: "sync", "async" or "batch". */
    String mode;
    /** send: number of threads, or, with "async", of messages in flight; join: number of consumers. */
    int parallel;
    /** send, fill: number of messages in a batch. */
    int batch;
    /** send: how long it sends before the measured part. */
    double warmUpSeconds;
    /** send: length of the measured part; consume: the time limit. */
    double seconds;
    /** consume, join: a new consumer group; mark, again, leave: one that has joined. */
    String group;
    /** mark: the first offset behind the messages that may come again, by queue id. */
    Map<Integer, Long> ends;
}
