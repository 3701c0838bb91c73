//! quinn on `QuicRuntime`.
#![cfg(all(feature = "quic", feature = "tls"))]

use quinn::{ClientConfig, Endpoint, EndpointConfig, ServerConfig};
use std::{
    net::{SocketAddr, UdpSocket},
    sync::Arc,
};
use urgency_web::{
    quic::QuicRuntime,
    tls::{
        client_trusting,
        rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
};

const CERTIFICATE: &[u8] = include_bytes!("keys/cert.pem");
const KEY: &[u8] = include_bytes!("keys/key.pem");

fn endpoint(server: Option<ServerConfig>) -> Endpoint {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    Endpoint::new(
        EndpointConfig::default(),
        server,
        socket,
        Arc::new(QuicRuntime::new()),
    )
    .unwrap()
}

async fn talk(client: &Endpoint, address: SocketAddr) {
    let connection = client.connect(address, "localhost").unwrap().await.unwrap();
    let streams: Vec<_> = (0..10u8)
        .map(|n| {
            let connection = connection.clone();
            urgency::spawn(async move {
                let (mut send, mut receive) = connection.open_bi().await.unwrap();
                let message = vec![n; 100_000];
                send.write_all(&message).await.unwrap();
                send.finish().unwrap();
                assert_eq!(receive.read_to_end(200_000).await.unwrap(), message);
            })
        })
        .collect();
    for stream in streams {
        stream.await.unwrap();
    }
    connection.close(0u32.into(), b"done");
}

#[test]
fn quinn_echoes_a_megabyte_over_ten_streams() {
    urgency::block_on(async {
        let chain = vec![CertificateDer::from_pem_slice(CERTIFICATE).unwrap()];
        let key = PrivateKeyDer::from_pem_slice(KEY).unwrap();
        let server = endpoint(Some(ServerConfig::with_single_cert(chain, key).unwrap()));
        let address = server.local_addr().unwrap();
        let serving = urgency::spawn(async move {
            let connection = server.accept().await.unwrap().await.unwrap();
            while let Ok((mut send, mut receive)) = connection.accept_bi().await {
                urgency::spawn(async move {
                    let message = receive.read_to_end(200_000).await.unwrap();
                    send.write_all(&message).await.unwrap();
                    send.finish().unwrap();
                })
                .detach();
            }
        });
        let mut client = endpoint(None);
        let crypto = client_trusting(CERTIFICATE).unwrap();
        let crypto = quinn::crypto::rustls::QuicClientConfig::try_from(crypto).unwrap();
        client.set_default_client_config(ClientConfig::new(Arc::new(crypto)));
        talk(&client, address).await;
        serving.await.unwrap();
    });
}
