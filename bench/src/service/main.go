// The search service, for the experiments service-*: what tokio_rayon.rs does with goroutines for connections and forks.
// Prints its port, its hits and the time of a scan; then a line on its input is a question, and the answer is how many
// documents were written. The first question "start" starts the reindex.
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const leaf = 256 * 1024
const steps = 780
const document = 20
const hitsOfSearch = 16

var (
	text    []byte
	lock    sync.Mutex
	digests = map[uint64]uint64{}
	written atomic.Uint64
)

func count(text []byte) uint64 {
	var hash, hits uint64
	for ; len(text) >= 8; text = text[8:] {
		hash = (hash ^ binary.LittleEndian.Uint64(text)) * 0x9e3779b97f4a7c15
		hash ^= hash >> 32
		if hash&0xfff == 0 {
			hits++
		}
	}
	return hits
}

func scan(text []byte) uint64 {
	leaves := len(text) / leaf
	if leaves <= 1 {
		return count(text)
	}
	middle := leaves / 2 * leaf
	forked := make(chan uint64, 1)
	go func() { forked <- scan(text[middle:]) }()
	return scan(text[:middle]) + <-forked
}

func units(count uint64) uint64 {
	value := count
	for range count {
		for range steps {
			value ^= value >> 29
			value *= 0xbf58476d1ce4e5b9
		}
	}
	return value
}

// One leaf of the reindex: computes without the lock, then writes under it.
func writeLeaf(from, to uint64) {
	computed := make([]uint64, 0, to-from)
	for range to - from {
		computed = append(computed, units(document))
	}
	written.Add(to - from)
	lock.Lock()
	for index, digest := range computed {
		digests[from+uint64(index)] = digest
	}
	lock.Unlock()
}

func write(from, to, documents uint64) {
	leaves := (to - from + documents - 1) / documents
	if leaves <= 1 {
		writeLeaf(from, to)
		return
	}
	middle := from + leaves/2*documents
	var forked sync.WaitGroup
	forked.Add(1)
	go func() { write(middle, to, documents); forked.Done() }()
	write(from, middle, documents)
	forked.Wait()
}

var sink atomic.Uint64

func search(all uint64) uint64 {
	lock.Lock()
	var sum uint64
	for hit := range uint64(hitsOfSearch) {
		sum += digests[hit*(all/hitsOfSearch)]
	}
	lock.Unlock()
	sink.Store(sum)
	return scan(text)
}

func number(text string) uint64 {
	value, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	var err error
	if text, err = os.ReadFile(os.Args[1]); err != nil {
		panic(err)
	}
	documents, all := number(os.Args[2]), number(os.Args[3])
	for at := range all {
		digests[at] = 0
	}
	best := time.Hour
	var hits uint64
	for range 5 {
		start := time.Now()
		hits = scan(text)
		best = min(best, time.Since(start))
	}
	http.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	http.HandleFunc("/search", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, search(all)) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() { panic(http.Serve(listener, nil)) }()
	fmt.Printf("[%d, \"%d\", %d]\n", listener.Addr().(*net.TCPAddr).Port, hits, best.Nanoseconds())
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if lines.Text() == "start" {
			go func() {
				for {
					write(0, all, documents)
				}
			}()
		}
		fmt.Println(written.Load())
	}
}
