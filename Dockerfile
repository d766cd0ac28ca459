# The server as a static program in an image with nothing else.
#
#   docker build -t memwrite .
#   docker run -p 127.0.0.1:8080:8080 -v memwrite:/data memwrite
#   docker run --rm -v memwrite:/data memwrite keys --db /data/memwrite.db
FROM golang:1.26-bookworm AS build
WORKDIR /src
ENV GOWORK=off CGO_ENABLED=0
COPY go.mod go.sum ./
COPY server/go.mod server/go.sum ./server/
COPY contrib/otelmemwrite/go.mod contrib/otelmemwrite/go.sum ./contrib/otelmemwrite/
RUN cd server && go mod download
COPY . .
RUN cd server && go build -trimpath -ldflags='-s -w' -o /memwrite ./cmd/memwrite && mkdir /data

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /memwrite /memwrite
COPY --from=build --chown=nonroot:nonroot /data /data
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=6s CMD ["/memwrite", "health"]
ENTRYPOINT ["/memwrite"]
# Inside a container the address is every one; who reaches it is for -p to say.
# Give --tls-cert and --tls-key, or a proxy that has TLS, before the network
# beyond this machine does.
CMD ["serve", "--listen=0.0.0.0:8080", "--allow-plaintext", "--db=/data/memwrite.db", "--log-format=json"]
