# Thin front doors over `cargo xtask`; the chores themselves are in hack/xtask.

# make demo                                          the sample operator; stays up until Ctrl-C
# make demo ONCE=1                                   exits after success
# make demo CATALOG=dir BUNDLES=dir PACKAGE=name     somebody's real content
# make test ARGS='-p olm-version'                    only some tests

demo_args = $(if $(ONCE),--once=$(ONCE)) $(if $(CATALOG),--catalog '$(abspath $(CATALOG))') \
	$(if $(BUNDLES),--bundles '$(abspath $(BUNDLES))') $(if $(PACKAGE),--package '$(PACKAGE)')

# Cargo compiles a crate once for each set of features. For `check` and `test` the chores are built as a part of the whole workspace
# with its tests, for which one test stands, so that the tests use the same crates.
all_chores = cargo build --quiet --locked --workspace --bin xtask --test expressions && $${CARGO_TARGET_DIR:-target}/debug/xtask

.PHONY: demo test check generate test-node test-kind

demo:
	@cargo xtask demo $(demo_args)

test:
	@$(if $(ARGS),cargo xtask,$(all_chores)) test $(ARGS)

check:
	@$(all_chores) check

generate:
	@cargo xtask generate

# Linux and root: the product on a real node, see hack/node. BIN_DIR=dir uses existing static binaries, KEEP=1 keeps the node,
# ONLY=default tests one folder of config/, ONLY=kubectl-olm the commands of kubectl olm.
test-node:
	@hack/node/test.sh

# The tests of test-node on a kind cluster: needs kind, and docker or podman. The variables of test-node apply.
test-kind:
	@hack/kind.sh
