package main

import (
	"context"
	"time"
)

// A patience is the context of every send. The library gives a send 3 s, whatever its options say: on a busy
// machine it sends a message for the second time then, or panics (defaultProducer.sendAsync). A context whose
// deadline is earlier than that keeps its own, and this one's never comes.
type patience struct{ context.Context }

func patient() patience { return patience{context.Background()} }

func (patience) Deadline() (time.Time, bool) { return time.Now().Add(2 * time.Second), true }
