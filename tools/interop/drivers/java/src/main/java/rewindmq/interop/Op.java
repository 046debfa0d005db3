package rewindmq.interop;

import com.google.gson.JsonObject;

/** One operation of {@code drivers/README.md}. */
@FunctionalInterface
interface Op {
    /** Carries out the operation and returns the content of the answer's {@code ok}. */
    JsonObject run(Fields fields) throws Exception;
}
