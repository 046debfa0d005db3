package rewindmq.load;

/** The result of an order. */
final class Measured {
    final long messages;
    final double seconds;
    final long failed;
    /** The first failure, or null. */
    final String failure;

    Measured(long messages, double seconds, long failed, String failure) {
        this.messages = messages;
        this.seconds = seconds;
        this.failed = failed;
        this.failure = failure;
    }
}
