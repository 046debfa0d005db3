package orders

import (
	"context"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/primitive"
)

func TestABillIsRefusedRestoredAndDueLater(t *testing.T) {
	rmq := Connect(t)
	rmq.CreateTopic("go-bills", 1)
	office := newProducer(t, rmq, "office")
	check(t, office.Start())
	defer office.Shutdown()
	payers, received := newConsumer(t, rmq, "payers", "go-bills")

	rmq.DiskFull("broker-a", true)
	if result, err := office.SendSync(context.Background(), bill("refused")); err == nil {
		t.Fatalf("stored although the disk is full: %v", result)
	}
	rmq.DiskFull("broker-a", false)

	send(t, office, bill("bill 1"))
	rmq.Snapshot("go-backlog")
	rmq.SaveSnapshot("go-backlog", "go-backlog.tar")
	send(t, office, bill("bill 2"))
	rmq.LoadSnapshot("go-copy", "go-backlog.tar")
	rmq.Restore("go-copy")

	twoHours := 18
	send(t, office, bill("bill 3").WithDelayTimeLevel(twoHours))
	check(t, payers.Start())
	defer payers.Shutdown()
	expect(t, received, "bill 1")
	rmq.Travel(2 * time.Hour)
	expect(t, received, "bill 3")
}

func bill(text string) *primitive.Message {
	return primitive.NewMessage("go-bills", []byte(text))
}

func expect(t *testing.T, received chan string, body string) {
	t.Helper()
	select {
	case got := <-received:
		if got != body {
			t.Fatalf("received %q instead of %q", got, body)
		}
	case <-time.After(2 * time.Minute):
		t.Fatalf("%q did not come", body)
	}
}
