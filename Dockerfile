# Images of both controllers from one build: `docker build --target catalogd .` and `docker build --target operator-controller .`
# Target kubectl-olm is the web pages of config/optional/ui.
# Target sample-operator is the operator of the tests.
# The binaries are static (musl), so the images contain only the program and the certificate authorities of the public web.
# hack/image.sh builds the same images without a container engine.
#
#   docker build --target catalogd --build-arg VERSION=1.0.0 --build-arg COMMIT=$(git rev-parse HEAD) \
#     --build-arg TREE_STATE=clean --build-arg BUILD_DATE=$(date -u +%FT%TZ) -t olmv1/catalogd:1.0.0 .
ARG RUST_VERSION=1.95.0

FROM docker.io/library/rust:${RUST_VERSION}-alpine AS build
# A C compiler for aws-lc-rs and zstd.
RUN apk add --no-cache build-base ca-certificates
# Use the image's toolchain; otherwise rustup downloads the developers' extra components.
ARG RUST_VERSION
ENV RUSTUP_TOOLCHAIN=${RUST_VERSION}
WORKDIR /src
COPY . .
# Output of --version; see pkg/runtime/src/build_info.rs.
ARG VERSION
ARG COMMIT
ARG TREE_STATE
ARG BUILD_DATE
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    OLM_VERSION=${VERSION} OLM_COMMIT=${COMMIT} OLM_TREE_STATE=${TREE_STATE} OLM_BUILD_DATE=${BUILD_DATE} \
    cargo build --release --locked -p catalogd -p operator-controller -p kubectl-olm \
    && mkdir -p /out/empty \
    && cp target/release/catalogd target/release/operator-controller target/release/kubectl-olm /out/

FROM scratch AS base
ARG VERSION
ARG COMMIT
LABEL org.opencontainers.image.licenses=Apache-2.0
LABEL org.opencontainers.image.version=${VERSION}
LABEL org.opencontainers.image.revision=${COMMIT}
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
# Writable directories if no volume is mounted.
COPY --from=build --chown=65532:65532 /out/empty/ /tmp/
COPY --from=build --chown=65532:65532 /out/empty/ /var/cache/
USER 65532:65532
# The manifests run ./catalogd.
WORKDIR /

FROM base AS catalogd
LABEL org.opencontainers.image.title=catalogd
COPY --from=build /out/catalogd /catalogd
ENTRYPOINT ["/catalogd"]

FROM base AS operator-controller
LABEL org.opencontainers.image.title=operator-controller
COPY --from=build /out/operator-controller /operator-controller
ENTRYPOINT ["/operator-controller"]

FROM base AS kubectl-olm
LABEL org.opencontainers.image.title=kubectl-olm
COPY --from=build /out/kubectl-olm /kubectl-olm
ENTRYPOINT ["/kubectl-olm"]

# The operator of test/testdata/sample-operator, for tests and demonstrations.
FROM docker.io/library/golang:1.26-alpine AS build-sample
WORKDIR /src
COPY hack/sample-operator .
RUN CGO_ENABLED=0 go build -buildvcs=false -ldflags '-s -w' -o /sample-operator .

FROM base AS sample-operator
LABEL org.opencontainers.image.title=sample-operator
COPY --from=build-sample /sample-operator /sample-operator
ENTRYPOINT ["/sample-operator"]
