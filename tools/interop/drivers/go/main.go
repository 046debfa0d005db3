// Drives the official Go client; ../README.md describes the lines it reads and writes.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sort"
	"sync"
)

const library = "github.com/apache/rocketmq-client-go/v2"

// A fields is one JSON object, from the suite or to it.
type fields = map[string]any

// An op answers one request.
type op func(request *request) (fields, error)

var said sync.Mutex

// say writes one line to the suite.
func say(line fields) {
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	said.Lock()
	defer said.Unlock()
	os.Stdout.Write(append(text, '\n'))
}

func answer(ops map[string]op, request *request) {
	op, known := ops[request.Op]
	if !known {
		say(fields{"id": request.ID, "error": failure(fmt.Errorf("no operation %s", request.Op))})
		return
	}
	ok, err := op(request)
	if err != nil {
		say(fields{"id": request.ID, "error": failure(err)})
		return
	}
	say(fields{"id": request.ID, "ok": ok})
}

func libraryVersion() string {
	build, _ := debug.ReadBuildInfo()
	for _, module := range build.Deps {
		if module.Path == library {
			return module.Version[1:]
		}
	}
	return ""
}

func main() {
	producers, consumers := newProducers(), newConsumers()
	lites, pulls := newLiteConsumers(), newPullConsumers()
	ops := map[string]op{}
	for _, member := range []map[string]op{producers.ops(), consumers.ops(), lites.ops(), pulls.ops()} {
		for name, op := range member {
			ops[name] = op
		}
	}
	names := make([]string, 0, len(ops))
	for name := range ops {
		names = append(names, name)
	}
	sort.Strings(names)
	say(fields{"ready": fields{"client": library, "version": libraryVersion(), "ops": names}})

	var running sync.WaitGroup
	requests := bufio.NewReader(os.Stdin)
	for {
		line, err := requests.ReadBytes('\n')
		if err == io.EOF {
			break
		}
		request := new(request)
		if err == nil {
			err = json.Unmarshal(line, request)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		running.Add(1)
		go func() {
			defer running.Done()
			answer(ops, request)
		}()
	}
	running.Wait()
	consumers.shutdown()
	lites.shutdown()
	pulls.shutdown()
	producers.shutdown()
}
