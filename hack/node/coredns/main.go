// Command coredns is CoreDNS with the plugins that a cluster's DNS needs.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/template"
)

// The order in which plugins see a query: https://coredns.io/manual/plugins/.
func init() {
	dnsserver.Directives = []string{"health", "ready", "errors", "cache", "kubernetes", "template"}
}

func main() { coremain.Run() }
