# Thin front doors over `cargo xtask`; the chores themselves are in hack/xtask.

# make demo                                          the sample operator; stays up until Ctrl-C
# make demo ONCE=1                                   exits after success
# make demo CATALOG=dir BUNDLES=dir PACKAGE=name     somebody's real content
# make test ARGS='-p olm-version'                    only some tests

demo_args = $(if $(ONCE),--once=$(ONCE)) $(if $(CATALOG),--catalog '$(abspath $(CATALOG))') \
	$(if $(BUNDLES),--bundles '$(abspath $(BUNDLES))') $(if $(PACKAGE),--package '$(PACKAGE)')

.PHONY: demo test check generate test-node test-kind

demo:
	@cargo xtask demo $(demo_args)

test:
	@cargo xtask test $(ARGS)

check:
	@cargo xtask check

generate:
	@cargo xtask generate

# Linux and root: the product on a real node, see hack/node. BIN_DIR=dir uses existing static binaries, KEEP=1 keeps the node,
# ONLY=default tests one folder of config/, ONLY=kubectl-olm the commands of kubectl olm.
test-node:
	@hack/node/test.sh

# The tests of test-node on a kind cluster: needs kind, and docker or podman. The variables of test-node apply.
test-kind:
	@hack/kind.sh
