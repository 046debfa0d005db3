package rewindmq.race;

import com.google.gson.JsonObject;

/** One consumer of whatever kind. */
interface Actor {
    void start() throws Exception;

    /** Do what a line asks for; the answer's content. */
    JsonObject act(String what, JsonObject how) throws Exception;

    void stop() throws Exception;
}
