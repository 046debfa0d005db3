package orders

import (
	"context"
	"testing"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

func TestMessagesWaitWhilePullsAreHeld(t *testing.T) {
	rmq := Connect(t)
	rmq.CreateTopic("go-orders", 1)
	held := rmq.On("PULL_MESSAGE", Fields{
		"do": "hold", "topic": "go-orders", "queue": 0, "client": "billing", "times": nil,
	})
	shop := newProducer(t, rmq, "shop")
	billing, received := newConsumer(t, rmq, "billing", "go-orders")
	check(t, shop.Start())
	defer shop.Shutdown()
	check(t, billing.Start())
	defer billing.Shutdown()

	pull := held.Met(2 * time.Minute)
	if offset := pull["fields"].(map[string]any)["queueOffset"]; offset != 0.0 {
		t.Fatalf("the pull asks for offset %v", offset)
	}
	send(t, shop, primitive.NewMessage("go-orders", []byte("order 1")))
	if len(received) != 0 {
		t.Fatal("a message came while the pulls were held")
	}
	held.Release()
	expect(t, received, "order 1")
}

// newProducer returns a producer that rules call by its name.
func newProducer(t *testing.T, rmq *Cluster, name string) rocketmq.Producer {
	t.Helper()
	made, err := rocketmq.NewProducer(
		producer.WithGroupName("go-"+name),
		producer.WithInstanceName(name),
		producer.WithNameServer(primitive.NamesrvAddr{rmq.AddressFor(name)}),
	)
	check(t, err)
	return made
}

// newConsumer returns a consumer of a topic that rules call by its name, and what will receive the bodies.
func newConsumer(t *testing.T, rmq *Cluster, name, topic string) (rocketmq.PushConsumer, chan string) {
	t.Helper()
	made, err := rocketmq.NewPushConsumer(
		consumer.WithGroupName("go-"+name),
		consumer.WithInstance(name),
		consumer.WithNameServer(primitive.NamesrvAddr{rmq.AddressFor(name)}),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
	)
	check(t, err)
	received := make(chan string, 10)
	take := func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, message := range messages {
			received <- string(message.Body)
		}
		return consumer.ConsumeSuccess, nil
	}
	check(t, made.Subscribe(topic, consumer.MessageSelector{}, take))
	return made, received
}

// send sends until a broker answers: the library gives up after 3 s, which is short on a busy machine.
func send(t *testing.T, shop rocketmq.Producer, message *primitive.Message) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; {
		_, err := shop.SendSync(context.Background(), message)
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
