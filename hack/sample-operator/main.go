// Command sample-operator is the operator of test/testdata/sample-operator:
// it logs the text of each Greeting once per generation, and counts in the
// status how often it did. /readyz at port 8081 succeeds once the Greetings
// have been read. Where a certificate is mounted, a webhook at port 9443
// refuses Greetings without a text. With -words the program is a server of
// words.olmv1-rs.example/v1 behind the API server's aggregation layer instead,
// at port 5443. With -fail it exits at once, for tests of crash loops.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	account   = "/var/run/secrets/kubernetes.io/serviceaccount/"
	greetings = "https://kubernetes.default.svc/apis/sample.olmv1-rs.example/v1/greetings"
	// The folder into which OLM mounts the certificate of webhooks.
	certificates = "/tmp/k8s-webhook-server/serving-certs/"
	webhook      = ":9443"
	// The folder into which OLM mounts the certificate of API services.
	apiCertificates = "/apiserver.local.config/certificates/"
	api             = ":5443"
	wordsVersion    = "words.olmv1-rs.example/v1"
	// What every aggregated server may read, to know how the API server authenticates to it.
	authentication = "https://kubernetes.default.svc/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
	probes         = ":8081"
	interval       = time.Second
)

type greeting struct {
	Metadata struct {
		Name, Namespace, UID string
		Generation           int64
	}
	Spec   struct{ Text string }
	Status struct{ Said int64 }
}

type operator struct {
	http *http.Client
	// Last generation that was said, by UID.
	said map[string]int64
}

func main() {
	fail := flag.Bool("fail", false, "exit at once with status 3")
	words := flag.Bool("words", false, "serve "+wordsVersion+" instead")
	flag.Parse()
	if *fail {
		fmt.Fprintln(os.Stderr, "failing, as -fail asks")
		os.Exit(3)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	ca, err := os.ReadFile(account + "ca.crt")
	if err != nil {
		log.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	op := operator{http: &http.Client{Transport: transport, Timeout: 10 * time.Second}, said: map[string]int64{}}
	log.Printf("started %s, watching namespaces %q", os.Getenv("VERSION"), os.Getenv("WATCH_NAMESPACES"))
	if *words {
		if err := op.request(ctx, http.MethodGet, authentication, nil, nil); err != nil {
			log.Fatal(err)
		}
		go serveWords()
		<-ctx.Done()
		return
	}
	var ready atomic.Bool
	go serveReady(&ready)
	if _, err := os.Stat(certificates + "tls.crt"); err == nil {
		go serveWebhook()
	}
	for ctx.Err() == nil {
		if err := op.reconcile(ctx); err == nil {
			ready.Store(true)
		} else if ctx.Err() == nil {
			log.Print(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(interval):
		}
	}
}

func serveReady(ready *atomic.Bool) {
	http.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !ready.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	log.Fatal(http.ListenAndServe(probes, nil))
}

// serveWords answers discovery and lists one Word.
func serveWords() {
	root := "/apis/" + wordsVersion
	answers := map[string]any{
		root: map[string]any{
			"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": wordsVersion,
			"resources": []any{map[string]any{
				"name": "words", "singularName": "word", "namespaced": false, "kind": "Word", "verbs": []string{"get", "list"},
			}},
		},
		root + "/words": map[string]any{
			"kind": "WordList", "apiVersion": wordsVersion, "metadata": map[string]any{},
			"items": []any{map[string]any{
				"kind": "Word", "apiVersion": wordsVersion, "metadata": map[string]any{"name": "hello"},
			}},
		},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		answer, known := answers[r.URL.Path]
		if !known {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	})
	log.Fatal(http.ListenAndServeTLS(api, apiCertificates+"apiserver.crt", apiCertificates+"apiserver.key", mux))
}

func serveWebhook() {
	mux := http.NewServeMux()
	mux.HandleFunc("/validate", validate)
	log.Fatal(http.ListenAndServeTLS(webhook, certificates+"tls.crt", certificates+"tls.key", mux))
}

// validate answers an AdmissionReview of admission.k8s.io/v1.
func validate(w http.ResponseWriter, r *http.Request) {
	var review struct {
		Request struct {
			UID    string
			Object greeting
		}
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	response := map[string]any{"uid": review.Request.UID, "allowed": true}
	if review.Request.Object.Spec.Text == "" {
		response["allowed"] = false
		response["status"] = map[string]any{"message": "a greeting needs a text"}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response,
	})
}

// reconcile says each greeting whose generation has not been said yet.
func (op *operator) reconcile(ctx context.Context) error {
	var list struct{ Items []greeting }
	if err := op.request(ctx, http.MethodGet, greetings, nil, &list); err != nil {
		return err
	}
	for _, item := range list.Items {
		meta := item.Metadata
		if op.said[meta.UID] >= meta.Generation {
			continue
		}
		log.Printf("%s/%s: %s", meta.Namespace, meta.Name, item.Spec.Text)
		url := "https://kubernetes.default.svc/apis/sample.olmv1-rs.example/v1/namespaces/" + meta.Namespace +
			"/greetings/" + meta.Name + "/status"
		status := map[string]any{"status": map[string]any{"said": item.Status.Said + 1}}
		if err := op.request(ctx, http.MethodPatch, url, status, nil); err != nil {
			return err
		}
		op.said[meta.UID] = meta.Generation
	}
	return nil
}

// request sends a request to the API server as the pod's service account.
func (op *operator) request(ctx context.Context, method, url string, body, answer any) error {
	// The kubelet renews the token's file.
	token, err := os.ReadFile(account + "token")
	if err != nil {
		return err
	}
	payload, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(payload))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+string(token))
	request.Header.Set("Content-Type", "application/merge-patch+json")
	response, err := op.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1024))
		return fmt.Errorf("%s %s: %s: %s", method, url, response.Status, text)
	}
	if answer == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(answer)
}
