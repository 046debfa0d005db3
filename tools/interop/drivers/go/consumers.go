package main

import (
	"context"
	"sync"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// A listening is a push consumer and the behaviour of its listener.
type listening struct {
	library rocketmq.PushConsumer
	name    string
	failed  consumer.ConsumeResult

	failTimes int
	mutex     sync.Mutex
	calls     map[string]int // by message id

	released chan struct{}
	release  sync.Once
}

type consumers struct{ started *registry[*listening] }

func newConsumers() *consumers { return &consumers{newRegistry[*listening]()} }

func (consumers *consumers) ops() map[string]op {
	return map[string]op{
		"consume.concurrent": func(request *request) (fields, error) { return consumers.start(request, false) },
		"consume.orderly":    func(request *request) (fields, error) { return consumers.start(request, true) },
		"consume.release":    consumers.release,
		"consume.stop":       consumers.stop,
	}
}

func (consumers *consumers) start(request *request, orderly bool) (fields, error) {
	made := &listening{
		name:      request.Name,
		failed:    consumer.ConsumeRetryLater,
		failTimes: request.FailTimes,
		calls:     map[string]int{},
		released:  make(chan struct{}),
	}
	if orderly {
		made.failed = consumer.SuspendCurrentQueueAMoment
	}
	if !request.Hold {
		made.unblock()
	}
	var err error
	made.library, err = rocketmq.NewPushConsumer(pushOptions(request, orderly)...)
	if err != nil {
		return nil, err
	}
	if err := made.library.Subscribe(request.Topic, request.selector(), made.consume); err != nil {
		return nil, err
	}
	// Registered before the start: a first message may block, and be released, while Start still runs.
	consumers.started.add(request.Name, made)
	return fields{}, made.library.Start()
}

func pushOptions(request *request, orderly bool) []consumer.Option {
	options := []consumer.Option{
		consumer.WithGroupName(request.Group),
		consumer.WithInstance(request.Name),
		consumer.WithNameServer(primitive.NamesrvAddr{request.Namesrv}),
		consumer.WithConsumeFromWhere(request.fromWhere()),
		consumer.WithConsumerOrder(orderly),
	}
	if request.Model == "BROADCASTING" {
		options = append(options, consumer.WithConsumerModel(consumer.BroadCasting))
	}
	if request.MaxReconsumeTimes != nil {
		options = append(options, consumer.WithMaxReconsumeTimes(*request.MaxReconsumeTimes))
	}
	if request.Threads != 0 {
		options = append(options, consumer.WithConsumeGoroutineNums(request.Threads))
	}
	if request.Trace {
		options = append(options, consumer.WithTrace(traceConfig(request)))
	}
	return options
}

func (consumers *consumers) release(request *request) (fields, error) {
	found, err := consumers.started.find(request.Consumer)
	if err != nil {
		return nil, err
	}
	found.unblock()
	return fields{}, nil
}

func (consumers *consumers) stop(request *request) (fields, error) {
	found, err := consumers.started.take(request.Consumer)
	if err != nil {
		return nil, err
	}
	err = found.library.Shutdown()
	found.unblock()
	return fields{}, err
}

func (consumers *consumers) shutdown() {
	for _, found := range consumers.started.all() {
		found.unblock()
		found.library.Shutdown()
	}
}

func (listening *listening) unblock() {
	listening.release.Do(func() { close(listening.released) })
}

// consume reports the call to the suite, and returns the status that the suite asked for.
func (listening *listening) consume(
	_ context.Context, messages ...*primitive.MessageExt,
) (consumer.ConsumeResult, error) {
	say(fields{"event": "delivered", "consumer": listening.name, "messages": describeMessages(messages)})
	<-listening.released
	listening.mutex.Lock()
	defer listening.mutex.Unlock()
	result := consumer.ConsumeSuccess
	for _, message := range messages {
		listening.calls[message.MsgId]++
		if listening.calls[message.MsgId] <= listening.failTimes {
			result = listening.failed
		}
	}
	return result, nil
}
