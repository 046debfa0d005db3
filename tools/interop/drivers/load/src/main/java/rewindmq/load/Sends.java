package rewindmq.load;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Semaphore;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;

/** Sends for some seconds as fast as answers arrive, or fills a topic. */
final class Sends {
    private static final String TAG = "TagA";
    private final DefaultMQProducer producer;
    private final Order order;
    private final byte[] body;

    private Sends(DefaultMQProducer producer, Order order) {
        this.producer = producer;
        this.order = order;
        this.body = new byte[order.size];
    }

    static Measured measure(Order order, Runnable begin) throws Exception {
        DefaultMQProducer producer = started(order);
        try {
            Sends sends = new Sends(producer, order);
            producer.send(sends.message());
            sends.send(order.warmUpSeconds);
            begin.run();
            return sends.send(order.seconds);
        } finally {
            producer.shutdown();
        }
    }

    /** Sends one batch after another until {@code count} messages are stored. */
    static Measured fill(Order order) throws Exception {
        DefaultMQProducer producer = started(order);
        try {
            Sends sends = new Sends(producer, order);
            Tally tally = new Tally();
            long started = System.nanoTime();
            for (int left = order.count; left > 0; left -= order.batch) {
                producer.send(sends.messages(Math.min(left, order.batch)));
                tally.sent(Math.min(left, order.batch));
            }
            return tally.over(System.nanoTime() - started);
        } finally {
            producer.shutdown();
        }
    }

    private static DefaultMQProducer started(Order order) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("LoadProducer");
        producer.setNamesrvAddr(order.namesrv);
        // Clients of one process share connections by this name.
        producer.setInstanceName(order.namesrv);
        producer.setSendMsgTimeout(Order.TIMEOUT_MS);
        producer.setMqClientApiTimeout(Order.TIMEOUT_MS);
        producer.start();
        return producer;
    }

    private Measured send(double seconds) throws Exception {
        Tally tally = new Tally();
        long started = System.nanoTime();
        long deadline = started + (long) (seconds * 1e9);
        if (order.mode.equals("async")) {
            sendAsync(deadline, tally);
        } else {
            sendFromThreads(deadline, tally);
        }
        return tally.over(System.nanoTime() - started);
    }

    private void sendFromThreads(long deadline, Tally tally) throws InterruptedException {
        int batch = order.mode.equals("batch") ? order.batch : 1;
        List<Thread> threads = new ArrayList<>();
        for (int number = 0; number < order.parallel; number++) {
            threads.add(new Thread(() -> sendSync(deadline, batch, tally), "sender-" + number));
        }
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
    }

    private void sendSync(long deadline, int batch, Tally tally) {
        do {
            try {
                count(batch == 1 ? producer.send(message()) : producer.send(messages(batch)), batch, tally);
            } catch (Exception error) {
                tally.failed(error);
            }
        } while (System.nanoTime() < deadline);
    }

    private void sendAsync(long deadline, Tally tally) throws InterruptedException {
        Semaphore room = new Semaphore(order.parallel);
        SendCallback callback = new SendCallback() {
            @Override
            public void onSuccess(SendResult result) {
                count(result, 1, tally);
                room.release();
            }

            @Override
            public void onException(Throwable error) {
                tally.failed(error);
                room.release();
            }
        };
        do {
            room.acquire();
            try {
                producer.send(message(), callback);
            } catch (Exception error) {
                tally.failed(error);
                room.release();
            }
        } while (System.nanoTime() < deadline);
        room.acquire(order.parallel);
    }

    private static void count(SendResult result, int messages, Tally tally) {
        if (result.getSendStatus() == SendStatus.SEND_OK) {
            tally.sent(messages);
        } else {
            tally.failed(new IllegalStateException(result.getSendStatus().name()));
        }
    }

    private Message message() {
        return new Message(order.topic, TAG, body);
    }

    private List<Message> messages(int count) {
        List<Message> messages = new ArrayList<>(count);
        for (int index = 0; index < count; index++) {
            messages.add(message());
        }
        return messages;
    }
}
