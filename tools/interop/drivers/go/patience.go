package main

import (
	"context"
	"time"
)

// A patience is the context of every send; its deadline never arrives. The library limits a send to 3 s, whatever
// its options say. On a busy machine it then sends the message again, or panics (defaultProducer.sendAsync).
// It leaves a context with an earlier deadline unchanged.
type patience struct{ context.Context }

func patient() patience { return patience{context.Background()} }

func (patience) Deadline() (time.Time, bool) { return time.Now().Add(2 * time.Second), true }
