package main

import (
	"context"
	"strconv"
	"sync"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// A sender is a producer of either kind; the other one's field is nil.
type sender struct {
	plain         rocketmq.Producer
	transactional rocketmq.TransactionProducer
	queues        *queueByKey
	transactions  *transactions
}

func (sender *sender) shutdown() error {
	if sender.plain != nil {
		return sender.plain.Shutdown()
	}
	return sender.transactional.Shutdown()
}

type producers struct{ senders *registry[*sender] }

func newProducers() *producers { return &producers{newRegistry[*sender]()} }

func (producers *producers) ops() map[string]op {
	return map[string]op{
		"producer.start":   producers.start,
		"producer.stop":    producers.stop,
		"send.sync":        producers.send,
		"send.delayed":     producers.send,
		"send.ordered":     producers.send,
		"send.async":       producers.sendAtOnce,
		"send.oneway":      producers.sendOneway,
		"send.batch":       producers.sendBatch,
		"send.transaction": producers.sendTransaction,
		// No send.reply: consumer.CreateReplyMessage of 2.1.2 leaves the body out.
		"send.request": producers.sendRequest,
	}
}

func (producers *producers) start(request *request) (fields, error) {
	made := &sender{queues: newQueueByKey(), transactions: newTransactions(request.Name)}
	options := []producer.Option{
		producer.WithGroupName(request.Group),
		// A client of its own: the library passes the checks of all producers of a client to one of them.
		producer.WithInstanceName(request.Name),
		producer.WithNameServer(primitive.NamesrvAddr{request.Namesrv}),
		producer.WithQueueSelector(made.queues),
	}
	if request.CompressOver != nil {
		options = append(options, producer.WithCompressMsgBodyOverHowmuch(*request.CompressOver))
	}
	if request.Trace {
		options = append(options, producer.WithTrace(traceConfig(request)))
	}
	var err error
	if request.Transactional {
		made.transactional, err = rocketmq.NewTransactionProducer(made.transactions, options...)
		if err == nil {
			err = made.transactional.Start()
		}
	} else {
		made.plain, err = rocketmq.NewProducer(options...)
		if err == nil {
			err = made.plain.Start()
		}
	}
	if err == nil {
		producers.senders.add(request.Name, made)
	}
	return fields{}, err
}

func traceConfig(request *request) *primitive.TraceConfig {
	return &primitive.TraceConfig{
		GroupName: request.Group,
		Access:    primitive.Local,
		Resolver:  primitive.NewPassthroughResolver([]string{request.Namesrv}),
	}
}

func (producers *producers) stop(request *request) (fields, error) {
	sender, err := producers.senders.take(request.Producer)
	if err != nil {
		return nil, err
	}
	return fields{}, sender.shutdown()
}

func (producers *producers) shutdown() {
	for _, sender := range producers.senders.all() {
		sender.shutdown()
	}
}

func (producers *producers) send(request *request) (fields, error) {
	sender, err := producers.senders.find(request.Producer)
	if err != nil {
		return nil, err
	}
	results := make([]fields, len(request.Messages))
	for i, message := range request.Messages {
		results[i] = describeResult(sender.plain.SendSync(patient(), sender.queues.keyed(message)))
	}
	return fields{"results": results}, nil
}

func (producers *producers) sendAtOnce(request *request) (fields, error) {
	sender, err := producers.senders.find(request.Producer)
	if err != nil {
		return nil, err
	}
	results := make([]fields, len(request.Messages))
	var waiting sync.WaitGroup
	waiting.Add(len(results))
	for i, message := range request.Messages {
		// The library calls back twice after an error.
		var once sync.Once
		done := func(_ context.Context, result *primitive.SendResult, err error) {
			once.Do(func() {
				results[i] = describeResult(result, err)
				waiting.Done()
			})
		}
		if err := sender.plain.SendAsync(patient(), done, sender.queues.keyed(message)); err != nil {
			done(context.Background(), nil, err)
		}
	}
	waiting.Wait()
	return fields{"results": results}, nil
}

func (producers *producers) sendOneway(request *request) (fields, error) {
	sender, err := producers.senders.find(request.Producer)
	if err != nil {
		return nil, err
	}
	for _, message := range request.Messages {
		if err := sender.plain.SendOneWay(patient(), sender.queues.keyed(message)); err != nil {
			return nil, err
		}
	}
	return fields{}, nil
}

func (producers *producers) sendBatch(request *request) (fields, error) {
	sender, err := producers.senders.find(request.Producer)
	if err != nil {
		return nil, err
	}
	messages := make([]*primitive.Message, len(request.Messages))
	for i, message := range request.Messages {
		messages[i] = message.asLibrarys()
	}
	result := describeResult(sender.plain.SendSync(patient(), messages...))
	return fields{"results": []fields{result}}, nil
}

func (producers *producers) sendTransaction(request *request) (fields, error) {
	sender, err := producers.senders.find(request.Producer)
	if err != nil {
		return nil, err
	}
	results := make([]fields, len(request.Messages))
	for i, message := range request.Messages {
		made := message.asLibrarys()
		sender.transactions.locals.Store(made, message)
		sent, err := sender.transactional.SendMessageInTransaction(patient(), made)
		if err != nil {
			results[i] = describeResult(nil, err)
			continue
		}
		results[i] = describeResult(sent.SendResult, nil)
		results[i]["transaction_state"] = stateNames[sent.State]
	}
	return fields{"results": results}, nil
}

func (producers *producers) sendRequest(request *request) (fields, error) {
	sender, err := producers.senders.find(request.Producer)
	if err != nil {
		return nil, err
	}
	timeout := time.Duration(request.TimeoutMs) * time.Millisecond
	reply, err := sender.plain.Request(patient(), timeout, request.Message.asLibrarys())
	if err != nil {
		return nil, err
	}
	return fields{"message": describeReply(reply)}, nil
}

// A queueByKey sends a message with a key to the queue of that number, and other messages to the queues in turn.
type queueByKey struct {
	keys   sync.Map
	inTurn producer.QueueSelector
}

func newQueueByKey() *queueByKey {
	return &queueByKey{inTurn: producer.NewRoundRobinQueueSelector()}
}

func (byKey *queueByKey) keyed(message *message) *primitive.Message {
	made := message.asLibrarys()
	if message.ShardingKey != "" {
		byKey.keys.Store(made, message.ShardingKey)
	}
	return made
}

func (byKey *queueByKey) Select(
	message *primitive.Message, queues []*primitive.MessageQueue, lastBroker string,
) *primitive.MessageQueue {
	key, has := byKey.keys.Load(message)
	if !has {
		return byKey.inTurn.Select(message, queues, lastBroker)
	}
	number, err := strconv.Atoi(key.(string))
	if err != nil {
		return nil
	}
	return queues[number%len(queues)]
}

var (
	states = map[string]primitive.LocalTransactionState{
		"commit":   primitive.CommitMessageState,
		"rollback": primitive.RollbackMessageState,
		"unknown":  primitive.UnknowState,
	}
	stateNames = map[primitive.LocalTransactionState]string{
		primitive.CommitMessageState:   "COMMIT_MESSAGE",
		primitive.RollbackMessageState: "ROLLBACK_MESSAGE",
		primitive.UnknowState:          "UNKNOW",
	}
)

// A transactions listener returns the states that the suite named when it sent the message.
type transactions struct {
	producer string
	locals   sync.Map // the suite's message, by the library's message
	checks   sync.Map // the state that a transaction check gets, by unique key
}

func newTransactions(producer string) *transactions { return &transactions{producer: producer} }

func (listener *transactions) ExecuteLocalTransaction(made *primitive.Message) primitive.LocalTransactionState {
	said, _ := listener.locals.LoadAndDelete(made)
	message := said.(*message)
	key := made.GetProperty(primitive.PropertyUniqueClientMessageIdKeyIndex)
	listener.checks.Store(key, message.Check)
	return states[message.Local]
}

func (listener *transactions) CheckLocalTransaction(message *primitive.MessageExt) primitive.LocalTransactionState {
	say(fields{"event": "checked", "producer": listener.producer, "message": describeMessage(message)})
	key := message.GetProperty(primitive.PropertyUniqueClientMessageIdKeyIndex)
	check, known := listener.checks.Load(key)
	if !known {
		return primitive.UnknowState
	}
	return states[check.(string)]
}
