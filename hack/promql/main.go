// Command promql reads a JSON list of PromQL expressions from standard input
// and writes a JSON list with the error of each one, or the names of the
// metrics that it reads, of all jobs or of some. The parser is Prometheus' own.
package main

import (
	"encoding/json"
	"log"
	"os"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

type result struct {
	Error   string   `json:"error,omitempty"`
	Metrics []string `json:"metrics"`
	// Metrics of a selector without a matcher for the label job.
	AllJobs []string `json:"allJobs"`
}

func read(expression string) result {
	parsed, err := parser.ParseExpr(expression)
	if err != nil {
		return result{Error: err.Error(), Metrics: []string{}, AllJobs: []string{}}
	}
	metrics, allJobs := []string{}, []string{}
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			metrics = append(metrics, selector.Name)
			ofJob := func(matcher *labels.Matcher) bool { return matcher.Name == "job" }
			if !slices.ContainsFunc(selector.LabelMatchers, ofJob) {
				allJobs = append(allJobs, selector.Name)
			}
		}
		return nil
	})
	return result{Metrics: metrics, AllJobs: allJobs}
}

func main() {
	var expressions []string
	if err := json.NewDecoder(os.Stdin).Decode(&expressions); err != nil {
		log.Fatal(err)
	}
	results := []result{}
	for _, expression := range expressions {
		results = append(results, read(expression))
	}
	if err := json.NewEncoder(os.Stdout).Encode(results); err != nil {
		log.Fatal(err)
	}
}
