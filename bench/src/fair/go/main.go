// fib with a network echo, for the experiment fair-peers. Prints its port, waits for a line, computes, and prints the nanoseconds and the value.
package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"
)

const base = 20

func serialFib(n uint32) uint64 {
	if n < 2 {
		return uint64(n)
	}
	return serialFib(n-1) + serialFib(n-2)
}

func fib(n uint32) uint64 {
	if n <= base {
		return serialFib(n)
	}
	forked := make(chan uint64, 1)
	go func() { forked <- fib(n - 2) }()
	return fib(n-1) + <-forked
}

func echo(connection net.Conn) {
	buffer := make([]byte, 64)
	for {
		count, err := connection.Read(buffer)
		if err != nil {
			return
		}
		if _, err := connection.Write(buffer[:count]); err != nil {
			return
		}
	}
}

func main() {
	n, err := strconv.ParseUint(os.Args[1], 10, 32)
	if err != nil {
		panic(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go echo(connection)
		}
	}()
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	input := bufio.NewReader(os.Stdin)
	if _, err := input.ReadString('\n'); err != nil {
		return
	}
	start := time.Now()
	value := fib(uint32(n))
	fmt.Println(time.Since(start).Nanoseconds(), value)
	// The echo goes on until the input is closed.
	io.Copy(io.Discard, input)
}
