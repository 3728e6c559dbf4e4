// Command yaml-oracle answers how Go's own libraries read YAML and JSON. The differential tests of pkg/yaml compare
// every answer with the answer of the Rust reader.
//
// A request on standard input is one mode byte, the length of the input as four big-endian bytes, and the input.
// A response on standard output is the length of the response as four big-endian bytes, and the response: one line a
// document ("v" and the JSON value), then, if reading failed, one line with "e" and the error.
//
// Mode 'd' reads the first document, as sigs.k8s.io/yaml does. Mode 's' reads all documents of a stream, as
// k8s.io/apimachinery's YAML-or-JSON decoder does.
package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	streams "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// bufferSize is how far the YAML-or-JSON decoder looks for an opening brace; file-based catalogs and kubectl use it.
const bufferSize = 4096

func main() {
	in, out := bufio.NewReaderSize(os.Stdin, 1<<20), bufio.NewWriterSize(os.Stdout, 1<<20)
	for {
		mode, input, err := request(in)
		if errors.Is(err, io.EOF) {
			return
		}
		if err == nil {
			err = respond(out, answer(mode, input))
		}
		if err == nil && in.Buffered() == 0 {
			err = out.Flush()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "yaml-oracle:", err)
			os.Exit(1)
		}
	}
}

func request(in io.Reader) (byte, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return 0, nil, err
	}
	input := make([]byte, binary.BigEndian.Uint32(head[1:]))
	_, err := io.ReadFull(in, input)
	return head[0], input, err
}

func respond(out io.Writer, response []byte) error {
	var head [4]byte
	binary.BigEndian.PutUint32(head[:], uint32(len(response)))
	if _, err := out.Write(head[:]); err != nil {
		return err
	}
	_, err := out.Write(response)
	return err
}

// answer renders the documents of input. A panic of a library is an answer like any other.
func answer(mode byte, input []byte) (response []byte) {
	var lines bytes.Buffer
	defer func() {
		if cause := recover(); cause != nil {
			failure(&lines, fmt.Errorf("panic: %v", cause))
			response = lines.Bytes()
		}
	}()
	switch mode {
	case 'd':
		text, err := yaml.YAMLToJSON(input)
		if err != nil {
			failure(&lines, err)
		} else {
			document(&lines, text)
		}
	case 's':
		decoder := streams.NewYAMLOrJSONDecoder(bytes.NewReader(input), bufferSize)
		for {
			var value any
			err := decoder.Decode(&raw{&value})
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				failure(&lines, err)
				break
			}
			text, err := json.Marshal(value)
			if err != nil {
				failure(&lines, err)
				break
			}
			document(&lines, text)
		}
	default:
		failure(&lines, fmt.Errorf("unknown mode %q", mode))
	}
	return lines.Bytes()
}

// raw takes any JSON value and keeps the digits of its numbers.
type raw struct{ value *any }

func (r *raw) UnmarshalJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(r.value)
}

func document(lines *bytes.Buffer, text []byte) {
	lines.WriteByte('v')
	lines.Write(text)
	lines.WriteByte('\n')
}

func failure(lines *bytes.Buffer, err error) {
	lines.WriteByte('e')
	lines.WriteString(strings.ReplaceAll(err.Error(), "\n", " "))
	lines.WriteByte('\n')
}
