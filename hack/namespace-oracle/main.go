// Command namespace-oracle writes package names and the install namespaces that they get if their bundles suggest none: the
// vectors of pkg/bundle. Hash and alphabet are Kubernetes' own. Run it from the root of the repository:
//
//	(cd hack/namespace-oracle && go run .) > test/testdata/install-namespaces.jsonl
package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	mathrand "math/rand"
	"os"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/dump"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	suffix = "-system"
	// maxBase leaves room for the hash with its hyphen and the suffix.
	maxBase    = validation.DNS1123LabelMaxLength - len(suffix) - hashLength - 1
	hashLength = 8
)

var foreign = regexp.MustCompile(`[^a-z0-9]+`)

// hash is what k8s.io/kubernetes/pkg/util/hash writes into a hasher, in the alphabet of generated names.
func hash(name string) string {
	hasher := fnv.New32a()
	fmt.Fprintf(hasher, "%v", dump.ForHash(name))
	text := rand.SafeEncodeString(fmt.Sprint(hasher.Sum32()))
	return text[:min(hashLength, len(text))]
}

func namespace(name string) string {
	plain := name + suffix
	if len(validation.IsDNS1123Label(name)) == 0 && len(validation.IsDNS1123Label(plain)) == 0 {
		return plain
	}
	base := foreign.ReplaceAllString(strings.ToLower(name), "-")
	base = strings.Trim(base, "-")
	base = strings.Trim(base[:min(maxBase, len(base))], "-")
	return strings.TrimPrefix(base+"-"+hash(name)+suffix, "-")
}

func names() []string {
	names := []string{
		"argocd", "a", "0", "my-package", "foo.bar", "foo-bar", "foo_bar", "Foo", "FOO.BAR", "-foo-", ".", "...", "-", "", "ä", "日本",
		"K8s", "İstanbul", "two  spaces", "a/b", "../../etc", "a\tb", "a\nb", "\"quoted\"", "a--b", "a.-.b", "é.é",
	}
	for _, length := range []int{46, 47, 48, 55, 56, 57, 62, 63, 64, 200, 253} {
		names = append(names, strings.Repeat("x", length), strings.Repeat("x", length-1)+".",
			strings.Repeat("x", length-2)+"-y", strings.Repeat("ab.", length/3))
	}
	letters := []rune("abcxyz019---..._ÄB/ ")
	source := mathrand.New(mathrand.NewSource(1))
	for range 200 {
		name := make([]rune, source.Intn(90))
		for i := range name {
			name[i] = letters[source.Intn(len(letters))]
		}
		names = append(names, string(name))
	}
	return names
}

func main() {
	encoder := json.NewEncoder(os.Stdout)
	for _, name := range names() {
		line := map[string]string{"package": name, "namespace": namespace(name)}
		if err := encoder.Encode(line); err != nil {
			fmt.Fprintln(os.Stderr, "namespace-oracle:", err)
			os.Exit(1)
		}
	}
}
