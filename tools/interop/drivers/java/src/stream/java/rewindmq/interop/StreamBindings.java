package rewindmq.interop;

import java.lang.reflect.Field;
import org.apache.rocketmq.client.ClientConfig;
import org.springframework.cloud.stream.binder.DefaultBinding;
import org.springframework.cloud.stream.binding.BindingsLifecycleController;
import org.springframework.context.ApplicationContext;
import org.springframework.context.Lifecycle;

/**
 * The bindings of an application, and the RocketMQ client of each.
 *
 * <p>The binder has no property for a client's time limits and gives no access to its clients. So the bindings do not
 * start with the application, the driver reads the client from its private field, sets the limits, and starts it.
 */
final class StreamBindings {
    private StreamBindings() {
    }

    /** Returns what the binder made for a binding: a message handler that sends, or an adapter that receives. */
    static Lifecycle lifecycle(ApplicationContext application, String binding) {
        BindingsLifecycleController bindings = application.getBean(BindingsLifecycleController.class);
        return read(DefaultBinding.class, "lifecycle", bindings.queryState(binding).get(0), Lifecycle.class);
    }

    /** Sets a client's time limits. Its instance name stays the binder's, because bindings share groups. */
    static void setPatience(ClientConfig client, Fields request) {
        String instance = client.getInstanceName();
        Setup.apply(client, request);
        client.setInstanceName(instance);
    }

    /** Returns the value of a private field. */
    static <T> T read(Class<?> owner, String name, Object object, Class<T> type) {
        try {
            Field field = owner.getDeclaredField(name);
            field.setAccessible(true);
            return type.cast(field.get(object));
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException("another release of the binder: " + error, error);
        }
    }
}
