package rewindmq.load;

/** One line of standard input; which fields count depends on {@code op}. */
final class Order {
    /** What a busy machine needs; the library's own 3 s would turn a stall into a failure. */
    static final int TIMEOUT_MS = 30_000;

    String op;
    String namesrv;
    String topic;

    /** fill, consume: messages. */
    int count;
    /** Bytes of a body. */
    int size;
    /** send: "sync", "async" or "batch". */
    String mode;
    /** send: threads, or with "async" messages in flight. */
    int parallel;
    /** send, fill: messages of a batch. */
    int batch;
    /** send: before anything is measured. */
    double warmUpSeconds;
    /** send: how long is measured; consume: after that it has failed. */
    double seconds;
    /** consume: a group that has consumed nothing yet. */
    String group;
}
