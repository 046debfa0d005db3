package rewindmq.interop;

import com.google.gson.JsonObject;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.exception.RequestTimeoutException;

/** Describes an error of the library. */
final class Failure {
    // The response code that these exceptions have if none was set.
    private static final int NONE = -1;

    private Failure() {
    }

    static JsonObject describe(Throwable error) {
        JsonObject json = new JsonObject();
        json.addProperty("type", error.getClass().getSimpleName());
        json.addProperty("code", code(error));
        json.addProperty("text", String.valueOf(error.getMessage()));
        return json;
    }

    private static Integer code(Throwable outermost) {
        Throwable error = outermost;
        // A framework wraps the library's error in its own.
        while (!isOfLibrary(error) && error.getCause() != null) {
            error = error.getCause();
        }
        int code = NONE;
        if (error instanceof MQBrokerException) {
            code = ((MQBrokerException) error).getResponseCode();
        } else if (error instanceof MQClientException) {
            code = ((MQClientException) error).getResponseCode();
        } else if (error instanceof RequestTimeoutException) {
            code = ((RequestTimeoutException) error).getResponseCode();
        }
        return code == NONE ? null : Integer.valueOf(code);
    }

    private static boolean isOfLibrary(Throwable error) {
        return error instanceof MQBrokerException || error instanceof MQClientException
            || error instanceof RequestTimeoutException;
    }
}
