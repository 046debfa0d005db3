package rewindmq.interop;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.boot.Banner;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.support.GenericApplicationContext;

/** Spring Boot applications with one producer or consumer each, by the names that the suite gave them. */
final class SpringApplications {
    private final Map<String, ConfigurableApplicationContext> applications = new ConcurrentHashMap<>();
    private final String nameServerProperty;

    /** @param nameServerProperty the property that has the name server's address */
    SpringApplications(String nameServerProperty) {
        this.nameServerProperty = nameServerProperty;
    }

    /**
     * Starts an application.
     *
     * @param properties its configuration beside the name server
     * @param beans classes of the application's own beans; the request is a bean, too
     */
    ConfigurableApplicationContext start(Fields request, Map<String, Object> properties, List<Class<?>> beans) {
        return start(request, properties, beans, context -> { });
    }

    /**
     * Starts an application with beans that are more than a class.
     *
     * @param named registers these beans, for example under names that no other application has
     */
    ConfigurableApplicationContext start(
        Fields request,
        Map<String, Object> properties,
        List<Class<?>> beans,
        Consumer<GenericApplicationContext> named
    ) {
        Map<String, Object> all = new HashMap<>(properties);
        all.put(nameServerProperty, request.text("namesrv"));
        ConfigurableApplicationContext application = new SpringApplicationBuilder(Application.class)
            .sources(beans.toArray(Class<?>[]::new))
            .properties(all)
            .web(WebApplicationType.NONE)
            .bannerMode(Banner.Mode.OFF)
            .registerShutdownHook(false)
            .initializers(context -> {
                GenericApplicationContext beanFactory = (GenericApplicationContext) context;
                beanFactory.registerBean(Fields.class, () -> request);
                named.accept(beanFactory);
            })
            .run();
        applications.put(request.text("name"), application);
        return application;
    }

    ConfigurableApplicationContext context(String name) {
        return applications.get(name);
    }

    <T> T bean(String name, Class<T> type) {
        return context(name).getBean(type);
    }

    void stop(String name) {
        applications.remove(name).close();
    }

    void shutdown() {
        applications.keySet().forEach(this::stop);
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Application {
        /** Sets what the starter has no property for, before the clients start; clients of a binder are no beans. */
        @Bean
        static BeanPostProcessor setup(Fields request) {
            return new BeanPostProcessor() {
                @Override
                public Object postProcessBeforeInitialization(Object bean, String name) {
                    if (bean instanceof ClientConfig client) {
                        Setup.apply(client, request);
                    }
                    if (bean instanceof DefaultLitePullConsumer consumer) {
                        consumer.setAutoCommit(false);
                        consumer.setConsumeFromWhere(PushConsumers.from(request));
                    }
                    return bean;
                }
            };
        }
    }
}
