// Command webhook-operator stands in for the container of a bundle in
// upstream's suite, whose image the isolated node cannot pull. It serves the
// webhooks that the bundle declares for WebhookTests: the default spec.mutate
// is true, spec.valid must be true, and v2 has both fields below
// spec.conversion.
package main

import (
	"encoding/json"
	"flag"
	"io"
	"log"
	"net/http"
	"path/filepath"
	"strings"
)

const (
	webhooks = ":9443"
	maxBody  = 4 << 20
	// Paths of the bundle's webhooks end with the version and the kind.
	kind = "-webhook-operators-coreos-io-v1-webhooktest"
)

type object = map[string]any

// review is an AdmissionReview or a ConversionReview.
type review struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Request    *request `json:"request,omitempty"`
	Response   object   `json:"response"`
}

type request struct {
	UID string `json:"uid"`
	// Of an AdmissionReview.
	Object object `json:"object"`
	// Of a ConversionReview.
	DesiredAPIVersion string   `json:"desiredAPIVersion"`
	Objects           []object `json:"objects"`
}

func main() {
	certificates := flag.String("webhook-cert-path", ".", "folder of tls.crt and tls.key")
	probes := flag.String("health-probe-bind-address", ":8081", "address of /healthz and /readyz")
	flag.Bool("leader-elect", false, "accepted; every replica serves")
	flag.Parse()
	go func() {
		log.Fatal(http.ListenAndServe(*probes, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	}()
	mux := http.NewServeMux()
	mux.HandleFunc("/mutate"+kind, answer(mutate))
	mux.HandleFunc("/validate"+kind, answer(validate))
	mux.HandleFunc("/convert", answer(convert))
	log.Fatal(http.ListenAndServeTLS(webhooks, filepath.Join(*certificates, "tls.crt"), filepath.Join(*certificates, "tls.key"), mux))
}

func answer(respond func(*request) object) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var body review
		err := json.NewDecoder(io.LimitReader(r.Body, maxBody)).Decode(&body)
		if err != nil || body.Request == nil {
			http.Error(w, "no review", http.StatusBadRequest)
			return
		}
		body.Response = respond(body.Request)
		body.Response["uid"] = body.Request.UID
		body.Request = nil
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(body)
	}
}

func mutate(r *request) object {
	spec, _ := r.Object["spec"].(object)
	if _, set := spec["mutate"]; set || spec == nil {
		return object{"allowed": true}
	}
	patch, _ := json.Marshal([]object{{"op": "add", "path": "/spec/mutate", "value": true}})
	return object{"allowed": true, "patchType": "JSONPatch", "patch": patch}
}

func validate(r *request) object {
	spec, _ := r.Object["spec"].(object)
	if spec["valid"] == true {
		return object{"allowed": true}
	}
	message := "WebhookTest.spec.valid: Invalid value: false: Spec.Valid must be true"
	return object{"allowed": false, "status": object{"message": message}}
}

func convert(r *request) object {
	for _, item := range r.Objects {
		fields, _ := item["spec"].(object)
		if fields == nil {
			fields = object{}
		}
		if inner, nested := fields["conversion"].(object); nested {
			fields = inner
		}
		if strings.HasSuffix(r.DesiredAPIVersion, "/v2") {
			item["spec"] = object{"conversion": fields}
		} else {
			item["spec"] = fields
		}
		item["apiVersion"] = r.DesiredAPIVersion
	}
	return object{"result": object{"status": "Success"}, "convertedObjects": r.Objects}
}
