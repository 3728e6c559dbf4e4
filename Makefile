# Thin front doors over `cargo xtask`; the chores themselves are in hack/xtask.

# make demo                                          the sample operator; stays up until Ctrl-C
# make demo ONCE=1                                   exits after success
# make demo CATALOG=dir BUNDLES=dir PACKAGE=name     somebody's real content
# make test ARGS='-p olm-version'                    only some tests

demo_args = $(if $(ONCE),--once=$(ONCE)) $(if $(CATALOG),--catalog '$(abspath $(CATALOG))') \
	$(if $(BUNDLES),--bundles '$(abspath $(BUNDLES))') $(if $(PACKAGE),--package '$(PACKAGE)')

.PHONY: demo test check generate

demo:
	@cargo xtask demo $(demo_args)

test:
	@cargo xtask test $(ARGS)

check:
	@cargo xtask check

generate:
	@cargo xtask generate
