//! The way to the API server through a proxy, over real sockets.
#![allow(clippy::unwrap_used, reason = "tests may fail loudly")]

mod common;

use std::{io::Write as _, net::SocketAddr};

use axum::{Json, Router, routing::get};
use common::Server;
use k8s_openapi::ByteString;
use kube::Client;
use olm_runtime::{client, serve::Limits, tls::Profile};
use serde_json::json;
use tempfile::NamedTempFile;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, copy_bidirectional},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

/// Starts a proxy whose tunnels all lead to `target`. Returns its address, and the lines of each CONNECT request.
async fn proxy(target: SocketAddr) -> (SocketAddr, mpsc::UnboundedReceiver<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (heads, received) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let mut client = BufReader::new(client);
            let mut head = Vec::new();
            loop {
                let mut line = String::new();
                client.read_line(&mut line).await.unwrap();
                match line.trim_end() {
                    "" => break,
                    line => head.push(line.to_owned()),
                }
            }
            heads.send(head).unwrap();
            let mut server = TcpStream::connect(target).await.unwrap();
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            tokio::spawn(async move { copy_bidirectional(&mut client, &mut server).await });
        }
    });
    (address, received)
}

fn kubeconfig(ca: &str, proxy_url: &str) -> NamedTempFile {
    let content = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {
            "server": "https://cluster.example:6443", "tls-server-name": "localhost", "proxy-url": proxy_url,
            "certificate-authority-data": ByteString(ca.as_bytes().to_vec())}}],
    });
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(content.to_string().as_bytes()).unwrap();
    file
}

#[tokio::test]
async fn a_kubeconfigs_proxy_leads_to_the_api_server() {
    let version = json!({"major": "1", "minor": "36", "gitVersion": "v1.36.0", "gitCommit": "", "gitTreeState": "",
        "buildDate": "", "goVersion": "", "compiler": "", "platform": ""});
    let router = Router::new().route("/version", get(async || Json(version)));
    let server = Server::start(Profile::default(), Limits::default(), router);
    let (address, mut heads) = proxy(server.address).await;
    // Without a scheme, and with characters in the password that a URL cannot hold.
    let file = kubeconfig(&server.ca, &format!("user:p%40ss@{address}"));
    let config = client::load(Some(file.path()), None).unwrap();
    let client = Client::try_from(config).unwrap();
    let version = client.apiserver_version().await.unwrap();
    assert_eq!(version.git_version, "v1.36.0");
    let head = heads.recv().await.unwrap();
    assert_eq!(
        head.first().map(String::as_str),
        Some("CONNECT cluster.example:6443 HTTP/1.1")
    );
    let authorization = "Proxy-Authorization: Basic dXNlcjpwQHNz";
    assert!(head.iter().any(|line| line == authorization), "{head:?}");
}

#[tokio::test]
async fn an_unusable_proxy_is_named_without_its_credentials() {
    let server = Server::start(Profile::default(), Limits::default(), Router::new());
    let file = kubeconfig(&server.ca, "ftp://user:secret@proxy.example");
    let error = client::load(Some(file.path()), None).unwrap_err();
    assert_eq!(
        olm_text::chain(&error),
        "the proxy of proxy-url in the kubeconfig cannot be used: the scheme \"ftp\" is not supported; \
         use http, https or socks5"
    );
}
