package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// A request holds the fields of every operation.
type request struct {
	ID       int    `json:"id"`
	Op       string `json:"op"`
	Name     string `json:"name"`
	Group    string `json:"group"`
	Namesrv  string `json:"namesrv"`
	Trace    bool   `json:"trace"`
	Producer string `json:"producer"`
	Consumer string `json:"consumer"`

	Transactional bool       `json:"transactional"`
	CompressOver  *int       `json:"compress_over"`
	Messages      []*message `json:"messages"`
	Message       *message   `json:"message"`

	Topic             string `json:"topic"`
	Expression        string `json:"expression"`
	ExpressionType    string `json:"expression_type"`
	Model             string `json:"model"`
	From              string `json:"from"`
	MaxReconsumeTimes *int32 `json:"max_reconsume_times"`
	FailTimes         int    `json:"fail_times"`
	Hold              bool   `json:"hold"`
	Threads           int    `json:"threads"`

	TimeoutMs int    `json:"timeout_ms"`
	Queue     *queue `json:"queue"`
	Offset    int64  `json:"offset"`
	Max       int    `json:"max"`
}

type queue struct {
	Topic  string `json:"topic"`
	Broker string `json:"broker"`
	Queue  int    `json:"queue"`
}

func (queue *queue) asLibrarys() *primitive.MessageQueue {
	return &primitive.MessageQueue{Topic: queue.Topic, BrokerName: queue.Broker, QueueId: queue.Queue}
}

type message struct {
	Topic       string            `json:"topic"`
	Body        string            `json:"body"`
	Tags        string            `json:"tags"`
	Keys        string            `json:"keys"`
	Properties  map[string]string `json:"properties"`
	DelayLevel  int               `json:"delay_level"`
	ShardingKey string            `json:"sharding_key"`
	Local       string            `json:"local"`
	Check       string            `json:"check"`
}

func (message *message) asLibrarys() *primitive.Message {
	made := primitive.NewMessage(message.Topic, []byte(message.Body))
	for name, value := range message.Properties {
		made.WithProperty(name, value)
	}
	if message.Tags != "" {
		made.WithTag(message.Tags)
	}
	if message.Keys != "" {
		made.WithKeys(strings.Split(message.Keys, " "))
	}
	if message.DelayLevel != 0 {
		made.WithDelayTimeLevel(message.DelayLevel)
	}
	return made
}

func (request *request) selector() consumer.MessageSelector {
	kind := consumer.TAG
	if request.ExpressionType == "SQL92" {
		kind = consumer.SQL92
	}
	return consumer.MessageSelector{Type: kind, Expression: request.Expression}
}

func (request *request) fromWhere() consumer.ConsumeFromWhere {
	if request.From == "first" {
		return consumer.ConsumeFromFirstOffset
	}
	return consumer.ConsumeFromLastOffset
}

var (
	statuses = map[primitive.SendStatus]string{
		primitive.SendOK:                "SEND_OK",
		primitive.SendFlushDiskTimeout:  "FLUSH_DISK_TIMEOUT",
		primitive.SendFlushSlaveTimeout: "FLUSH_SLAVE_TIMEOUT",
		primitive.SendSlaveNotAvailable: "SLAVE_NOT_AVAILABLE",
	}
	codeInText = regexp.MustCompile(`CODE: (-?\d+)`)
)

// failure describes an error; for some errors the library has the response's code in the text only.
func failure(err error) fields {
	told := fields{"type": fmt.Sprintf("%T", err), "code": nil, "text": err.Error()}
	var refused primitive.MQBrokerErr
	if errors.As(err, &refused) {
		told["code"] = refused.ResponseCode
	} else if found := codeInText.FindStringSubmatch(err.Error()); found != nil {
		told["code"], _ = strconv.Atoi(found[1])
	}
	return told
}

func describeResult(result *primitive.SendResult, err error) fields {
	if err != nil {
		return fields{"error": failure(err)}
	}
	return fields{
		"status":            statuses[result.Status],
		"id":                result.MsgID,
		"offset_id":         result.OffsetMsgID,
		"broker":            result.MessageQueue.BrokerName,
		"queue":             result.MessageQueue.QueueId,
		"offset":            result.QueueOffset,
		"region":            result.RegionID,
		"transaction_state": nil,
	}
}

func describeMessage(message *primitive.MessageExt) fields {
	properties := message.GetProperties()
	told := fields{
		"topic":           message.Topic,
		"broker":          nil,
		"queue":           message.Queue.QueueId,
		"offset":          message.QueueOffset,
		"id":              message.MsgId,
		"offset_id":       message.OffsetMsgId,
		"body":            string(message.Body),
		"tags":            nil,
		"keys":            nil,
		"properties":      properties,
		"reconsume_times": message.ReconsumeTimes,
		"born_ms":         message.BornTimestamp,
		"store_ms":        message.StoreTimestamp,
		"store_host":      message.StoreHost,
		"sys_flag":        message.SysFlag,
	}
	if message.Queue.BrokerName != "" {
		told["broker"] = message.Queue.BrokerName
	}
	if tags, has := properties[primitive.PropertyTags]; has {
		told["tags"] = tags
	}
	if keys, has := properties[primitive.PropertyKeys]; has {
		told["keys"] = keys
	}
	return told
}

// describeReply describes a reply, of which the library returns little.
func describeReply(message *primitive.Message) fields {
	return fields{
		"topic": message.Topic, "body": string(message.Body), "properties": message.GetProperties(),
		"tags": nil, "keys": nil, "reconsume_times": nil, "sys_flag": nil,
	}
}

func describeMessages(messages []*primitive.MessageExt) []fields {
	told := make([]fields, len(messages))
	for i, message := range messages {
		told[i] = describeMessage(message)
	}
	return told
}

// A registry holds producers or consumers, by the names that the suite gave them.
type registry[T any] struct {
	mutex   sync.Mutex
	members map[string]T
}

func newRegistry[T any]() *registry[T] {
	return &registry[T]{members: map[string]T{}}
}

func (registry *registry[T]) add(name string, member T) {
	registry.mutex.Lock()
	defer registry.mutex.Unlock()
	registry.members[name] = member
}

func (registry *registry[T]) find(name string) (T, error) {
	registry.mutex.Lock()
	defer registry.mutex.Unlock()
	member, known := registry.members[name]
	if !known {
		return member, fmt.Errorf("nothing was started as %q", name)
	}
	return member, nil
}

func (registry *registry[T]) take(name string) (T, error) {
	member, err := registry.find(name)
	registry.mutex.Lock()
	defer registry.mutex.Unlock()
	delete(registry.members, name)
	return member, err
}

func (registry *registry[T]) all() []T {
	registry.mutex.Lock()
	defer registry.mutex.Unlock()
	members := make([]T, 0, len(registry.members))
	for _, member := range registry.members {
		members = append(members, member)
	}
	return members
}
