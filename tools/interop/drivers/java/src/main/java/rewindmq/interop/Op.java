package rewindmq.interop;

import com.google.gson.JsonObject;

/** One operation of {@code drivers/README.md}. */
@FunctionalInterface
interface Op {
    /** What the answer's {@code ok} holds. */
    JsonObject run(Fields fields) throws Exception;
}
