// Package orders has tests that use RewindMQ's control port.
package orders

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// A Cluster is a running "rewindmq up --control-port 0".
type Cluster struct {
	t          *testing.T
	url, token string
}

// Fields are JSON fields of a request or a response.
type Fields map[string]any

// Connect returns the cluster that REWINDMQ_CONTROL and REWINDMQ_CONTROL_TOKEN_FILE name. At the end of the test, it
// ends all faults, and fails the test if a rule met nothing.
func Connect(t *testing.T) *Cluster {
	t.Helper()
	token, err := os.ReadFile(os.Getenv("REWINDMQ_CONTROL_TOKEN_FILE"))
	if err != nil {
		t.Fatalf("REWINDMQ_CONTROL_TOKEN_FILE: %v", err)
	}
	cluster := &Cluster{t, os.Getenv("REWINDMQ_CONTROL"), strings.TrimSpace(string(token))}
	t.Cleanup(func() {
		complaints, _ := cluster.Post("/v1/settle", Fields{})["complaints"].([]any)
		for _, complaint := range complaints {
			t.Error(complaint)
		}
	})
	return cluster
}

// CreateTopic creates a topic, and waits until the name server has its route.
func (cluster *Cluster) CreateTopic(name string, queues int) {
	cluster.t.Helper()
	cluster.Post("/v1/topics", Fields{"name": name, "queues": queues})
}

// AddressFor returns the name-server address of a client that rules call by this name.
func (cluster *Cluster) AddressFor(client string) string {
	cluster.t.Helper()
	return cluster.Post("/v1/clients", Fields{"name": client})["namesrv"].(string)
}

// Member kills, restarts, pauses or resumes a member, such as broker-a.
func (cluster *Cluster) Member(name, action string) {
	cluster.t.Helper()
	cluster.Post("/v1/members/"+name+"/"+action, Fields{})
}

// DiskFull lets a broker act as if its disk were full, or as its disk is.
func (cluster *Cluster) DiskFull(broker string, full bool) {
	cluster.t.Helper()
	cluster.Post("/v1/disk_full", Fields{"broker": broker, "full": full})
}

// Travel moves the clocks of all brokers forward; the end of the test puts the cluster back.
func (cluster *Cluster) Travel(time time.Duration) {
	cluster.t.Helper()
	cluster.Post("/v1/travel", Fields{"seconds": time.Seconds()})
}

// Snapshot takes a snapshot of the cluster.
func (cluster *Cluster) Snapshot(name string) {
	cluster.t.Helper()
	cluster.Post("/v1/snapshots", Fields{"name": name})
}

// Restore puts the cluster back to a snapshot.
func (cluster *Cluster) Restore(name string) {
	cluster.t.Helper()
	cluster.Post("/v1/snapshots/"+name+"/restore", Fields{})
}

// SaveSnapshot writes a snapshot to a file: a name, such as backlog.tar, in the folder of
// "rewindmq up --control-snapshot-dir".
func (cluster *Cluster) SaveSnapshot(name, file string) {
	cluster.t.Helper()
	cluster.Post("/v1/snapshots/"+name+"/save", Fields{"file": file})
}

// LoadSnapshot reads such a file as a snapshot.
func (cluster *Cluster) LoadSnapshot(name, file string) {
	cluster.t.Helper()
	cluster.Post("/v1/snapshots/"+name+"/load", Fields{"file": file})
}

// On begins a rule for requests. The fields are "do" ("hold", "drop", ...) and those that select requests.
func (cluster *Cluster) On(request string, fields Fields) *Rule {
	cluster.t.Helper()
	body := Fields{"on": request}
	for name, value := range fields {
		body[name] = value
	}
	return &Rule{cluster, fmt.Sprintf("/v1/rules/%v", cluster.Post("/v1/rules", body)["rule"])}
}

// Post sends JSON to any path of the control port, and returns its JSON.
func (cluster *Cluster) Post(path string, body Fields) Fields {
	cluster.t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		cluster.t.Fatal(err)
	}
	request, err := http.NewRequest(http.MethodPost, cluster.url+path, bytes.NewReader(data))
	if err != nil {
		cluster.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+cluster.token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		cluster.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		cluster.t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		cluster.t.Fatalf("%s: %s %s", path, response.Status, text)
	}
	fields := Fields{}
	if err := json.Unmarshal(text, &fields); err != nil {
		cluster.t.Fatal(err)
	}
	return fields
}

// A Rule is in force.
type Rule struct {
	cluster *Cluster
	path    string
}

// Met waits until a request meets the rule, and returns the request.
func (rule *Rule) Met(timeout time.Duration) Fields {
	rule.cluster.t.Helper()
	return rule.cluster.Post(rule.path+"/met", Fields{"timeout": timeout.Seconds()})
}

// Release passes on what the rule holds, and ends it.
func (rule *Rule) Release() {
	rule.cluster.t.Helper()
	rule.cluster.Post(rule.path+"/release", Fields{})
}

// Stop ends a rule that is kept.
func (rule *Rule) Stop() {
	rule.cluster.t.Helper()
	rule.cluster.Post(rule.path+"/stop", Fields{})
}
