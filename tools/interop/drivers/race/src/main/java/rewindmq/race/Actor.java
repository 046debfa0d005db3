package rewindmq.race;

import com.google.gson.JsonObject;

/** One consumer of any kind. */
interface Actor {
    void start() throws Exception;

    /** Carries out what a line asks for, and returns the answer's content. */
    JsonObject act(String what, JsonObject how) throws Exception;

    void stop() throws Exception;
}
