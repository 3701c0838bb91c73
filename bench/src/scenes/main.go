// The scenes in Go: what tokio_rayon.rs does with goroutines for connections and forks. Arguments: whether there is a
// lock, then least and most microseconds of work of each lane. Prints its port; then a line on its input is a question,
// and the answer is how many units were computed. The first question starts the batch.
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
)

const steps = 780
const leaf = 50
const batchLeaf = 1000
const batchLeaves = 256
const held = 20
const batchHeld = 200

var (
	lock  sync.Mutex
	locks bool
	done  atomic.Uint64
	sink  atomic.Uint64
)

func units(count uint64) uint64 {
	value := count
	for range count {
		for range steps {
			value ^= value >> 29
			value *= 0xbf58476d1ce4e5b9
		}
	}
	sink.Store(value)
	done.Add(count)
	return count
}

func amount(number uint64, least, most float64) uint64 {
	if most == 0 {
		return 0
	}
	mixed := number * 0x9e3779b97f4a7c15
	mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9
	mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb
	share := float64(mixed>>11) / (1 << 53)
	return uint64(least * math.Pow(most/least, share))
}

func compute(amount uint64) uint64 {
	count := (amount + leaf - 1) / leaf
	if count <= 1 {
		return units(amount)
	}
	left := count / 2 * leaf
	forked := make(chan uint64, 1)
	go func() { forked <- compute(amount - left) }()
	return compute(left) + <-forked
}

func underLock(amount uint64) {
	if locks {
		lock.Lock()
		units(amount)
		lock.Unlock()
	}
}

func batch(count uint64) {
	if count == 1 {
		units(batchLeaf)
		underLock(batchHeld)
		return
	}
	var forked sync.WaitGroup
	forked.Add(1)
	go func() { batch(count - count/2); forked.Done() }()
	batch(count / 2)
	forked.Wait()
}

func serve(connection net.Conn, sizes []float64) {
	message := make([]byte, 64)
	for {
		if _, err := io.ReadFull(connection, message); err != nil {
			return
		}
		lane := 2 * int(message[8])
		work := amount(binary.LittleEndian.Uint64(message), sizes[lane], sizes[lane+1])
		underLock(held)
		if compute(work) != work {
			panic("wrong result")
		}
		if _, err := connection.Write(message); err != nil {
			return
		}
	}
}

func main() {
	locks = os.Args[1] == "true"
	var sizes []float64
	for _, text := range os.Args[2:] {
		size, err := strconv.ParseFloat(text, 64)
		if err != nil {
			panic(err)
		}
		sizes = append(sizes, size)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				panic(err)
			}
			go serve(connection, sizes)
		}
	}()
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	var once sync.Once
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		once.Do(func() {
			go func() {
				for {
					batch(batchLeaves)
				}
			}()
		})
		fmt.Println(done.Load())
	}
}
