package main

import (
	"context"
	"fmt"
	"sync"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// A pulling is one pull consumer of the suite. A pull consumer of the library has one topic and one expression,
// both set before it starts. So a pulling has one library consumer for each requested pair. Library consumers
// also pull by themselves. Their offsets are not those of PullFrom, so the driver has no operations on offsets.
type pulling struct {
	start   *request
	admin   admin.Admin
	mutex   sync.Mutex
	library map[[2]string]rocketmq.PullConsumer
}

type pullConsumers struct{ started *registry[*pulling] }

func newPullConsumers() *pullConsumers { return &pullConsumers{newRegistry[*pulling]()} }

func (pulls *pullConsumers) ops() map[string]op {
	return map[string]op{
		"pull.start":  pulls.start,
		"pull.queues": pulls.queues,
		"pull.pull":   pulls.pull,
		"pull.stop":   pulls.stop,
	}
}

func (pulls *pullConsumers) start(request *request) (fields, error) {
	resolver := primitive.NewPassthroughResolver([]string{request.Namesrv})
	administrator, err := admin.NewAdmin(admin.WithResolver(resolver))
	if err != nil {
		return nil, err
	}
	pulls.started.add(request.Name, &pulling{
		start:   request,
		admin:   administrator,
		library: map[[2]string]rocketmq.PullConsumer{},
	})
	return fields{}, nil
}

func (pulls *pullConsumers) queues(request *request) (fields, error) {
	found, err := pulls.started.find(request.Consumer)
	if err != nil {
		return nil, err
	}
	queues, err := found.admin.FetchPublishMessageQueues(context.Background(), request.Topic)
	if err != nil {
		return nil, err
	}
	told := make([]fields, len(queues))
	for i, queue := range queues {
		told[i] = fields{"topic": queue.Topic, "broker": queue.BrokerName, "queue": queue.QueueId}
	}
	return fields{"queues": told}, nil
}

var pullStatuses = map[primitive.PullStatus]string{
	primitive.PullFound:         "FOUND",
	primitive.PullNoNewMsg:      "NO_NEW_MSG",
	primitive.PullNoMsgMatched:  "NO_MATCHED_MSG",
	primitive.PullOffsetIllegal: "OFFSET_ILLEGAL",
}

func (pulls *pullConsumers) pull(request *request) (fields, error) {
	found, err := pulls.started.find(request.Consumer)
	if err != nil {
		return nil, err
	}
	library, err := found.of(request)
	if err != nil {
		return nil, err
	}
	queue := request.Queue.asLibrarys()
	result, err := library.PullFrom(context.Background(), queue, request.Offset, request.Max)
	if err != nil {
		return nil, err
	}
	return fields{
		"status":   pullStatuses[result.Status],
		"next":     result.NextBeginOffset,
		"min":      result.MinOffset,
		"max":      result.MaxOffset,
		"messages": describeMessages(result.GetMessageExts()),
	}, nil
}

func (pulling *pulling) of(request *request) (rocketmq.PullConsumer, error) {
	pulling.mutex.Lock()
	defer pulling.mutex.Unlock()
	key := [2]string{request.Queue.Topic, request.Expression}
	if library, known := pulling.library[key]; known {
		return library, nil
	}
	start := *pulling.start
	start.Name = fmt.Sprintf("%s-%d", start.Name, len(pulling.library))
	start.Expression, start.ExpressionType = request.Expression, request.ExpressionType
	library, err := startPullConsumer(&start, request.Queue.Topic)
	if err == nil {
		pulling.library[key] = library
	}
	return library, err
}

func (pulls *pullConsumers) stop(request *request) (fields, error) {
	found, err := pulls.started.take(request.Consumer)
	if err != nil {
		return nil, err
	}
	found.shutdown()
	return fields{}, nil
}

func (pulls *pullConsumers) shutdown() {
	for _, found := range pulls.started.all() {
		found.shutdown()
	}
}

func (pulling *pulling) shutdown() {
	for _, library := range pulling.library {
		library.Shutdown()
	}
	pulling.admin.Close()
}
