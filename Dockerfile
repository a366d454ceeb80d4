# The image of the agent: one static binary on a base without a shell.
#
#   docker build -t ghcr.io/mooring-dev/mooring:v0.1.0 --build-arg VERSION=v0.1.0 .
#
# Both bases are build arguments, for a mirror or for a base of your own:
#
#   --build-arg BUILDER=registry.example.com/golang:1.26
#   --build-arg BASE=registry.example.com/static:nonroot
#   --build-arg BASE=scratch          nothing but the binary and the certificates
#
# The binary needs no C library, no Git and no shell. What it needs of the file system is /etc/ssl/certs for https, which
# is therefore copied from the builder, and two folders to write to: --store, and /tmp (see deploy/deployment.yaml).
ARG BUILDER=golang:1.26
ARG BASE=gcr.io/distroless/static-debian12:nonroot

FROM ${BUILDER} AS build
WORKDIR /src
# Modules first: they change less often than the code, and their layer is kept.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /mooring ./cmd/mooring

FROM ${BASE}
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /mooring /mooring
# A number, so that Kubernetes can see that it is not root. It is nonroot on distroless, and needs no /etc/passwd on scratch.
USER 65532:65532
ENTRYPOINT ["/mooring"]
