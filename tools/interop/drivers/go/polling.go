package main

import (
	"context"
	"sync"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// A polling is the library's pull consumer, used by Poll and ACK.
type polling struct {
	library rocketmq.PullConsumer
	topic   string
	mutex   sync.Mutex
	polled  []*consumer.ConsumeRequest
}

type liteConsumers struct{ started *registry[*polling] }

func newLiteConsumers() *liteConsumers { return &liteConsumers{newRegistry[*polling]()} }

func (lites *liteConsumers) ops() map[string]op {
	return map[string]op{
		"lite.start":  lites.start,
		"lite.poll":   lites.poll,
		"lite.commit": lites.commit,
		"lite.stop":   lites.stop,
	}
}

func (lites *liteConsumers) start(request *request) (fields, error) {
	library, err := startPullConsumer(request, request.Topic)
	if err != nil {
		return nil, err
	}
	lites.started.add(request.Name, &polling{library: library, topic: request.Topic})
	return fields{}, nil
}

func startPullConsumer(request *request, topic string) (rocketmq.PullConsumer, error) {
	library, err := rocketmq.NewPullConsumer(
		consumer.WithGroupName(request.Group),
		consumer.WithInstance(request.Name),
		consumer.WithNameServer(primitive.NamesrvAddr{request.Namesrv}),
		consumer.WithConsumeFromWhere(request.fromWhere()),
	)
	if err != nil {
		return nil, err
	}
	if err := library.Subscribe(topic, request.selector()); err != nil {
		return nil, err
	}
	return library, library.Start()
}

func (lites *liteConsumers) poll(request *request) (fields, error) {
	found, err := lites.started.find(request.Consumer)
	if err != nil {
		return nil, err
	}
	timeout := time.Duration(request.TimeoutMs) * time.Millisecond
	polled, err := found.library.Poll(context.Background(), timeout)
	if consumer.IsNoNewMsgError(err) {
		return fields{"messages": []fields{}}, nil
	}
	if err != nil {
		return nil, err
	}
	found.mutex.Lock()
	defer found.mutex.Unlock()
	found.polled = append(found.polled, polled)
	return fields{"messages": describeMessages(polled.GetMsgList())}, nil
}

func (lites *liteConsumers) commit(request *request) (fields, error) {
	found, err := lites.started.find(request.Consumer)
	if err != nil {
		return nil, err
	}
	found.mutex.Lock()
	defer found.mutex.Unlock()
	for _, polled := range found.polled {
		found.library.ACK(context.Background(), polled, consumer.ConsumeSuccess)
	}
	found.polled = nil
	return fields{}, found.library.PersistOffset(context.Background(), found.topic)
}

func (lites *liteConsumers) stop(request *request) (fields, error) {
	found, err := lites.started.take(request.Consumer)
	if err != nil {
		return nil, err
	}
	return fields{}, found.library.Shutdown()
}

func (lites *liteConsumers) shutdown() {
	for _, found := range lites.started.all() {
		found.library.Shutdown()
	}
}
