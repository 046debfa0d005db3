package rewindmq.interop;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.util.ArrayList;
import java.util.List;

/** The fields of a request, or of an object in it; absent and null are the same. */
final class Fields {
    private final JsonObject json;

    Fields(JsonObject json) {
        this.json = json;
    }

    boolean has(String name) {
        JsonElement value = json.get(name);
        return value != null && !value.isJsonNull();
    }

    String text(String name) {
        if (!has(name)) {
            throw new IllegalArgumentException("the request has no " + name);
        }
        return json.get(name).getAsString();
    }

    String text(String name, String otherwise) {
        return has(name) ? json.get(name).getAsString() : otherwise;
    }

    int number(String name, int otherwise) {
        return has(name) ? json.get(name).getAsInt() : otherwise;
    }

    long position(String name) {
        text(name);
        return json.get(name).getAsLong();
    }

    boolean flag(String name) {
        return has(name) && json.get(name).getAsBoolean();
    }

    Fields object(String name) {
        return new Fields(has(name) ? json.getAsJsonObject(name) : new JsonObject());
    }

    List<Fields> objects(String name) {
        List<Fields> objects = new ArrayList<>();
        for (JsonElement element : has(name) ? json.getAsJsonArray(name) : new JsonArray()) {
            objects.add(new Fields(element.getAsJsonObject()));
        }
        return objects;
    }

    List<String> texts(String name) {
        List<String> texts = new ArrayList<>();
        for (JsonElement element : has(name) ? json.getAsJsonArray(name) : new JsonArray()) {
            texts.add(element.getAsString());
        }
        return texts;
    }

    Iterable<String> names() {
        return json.keySet();
    }
}
