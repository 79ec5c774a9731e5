//! Tests of the accept loop, with a handler that only waits.

use super::*;
use tokio::io::AsyncReadExt;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Waits until the client disconnects or the server stops; it panics if the client sends a byte.
struct WaitingHandler;

impl ConnectionHandler for WaitingHandler {
    async fn handle(self: Arc<Self>, mut connection: Connection) {
        let mut byte = [0];
        tokio::select! {
            read = connection.stream.read(&mut byte) => assert_ne!(read.ok(), Some(1), "on purpose"),
            _ = connection.closing.wait_for(|closing| *closing) => {}
        }
    }
}

struct Running {
    address: std::net::SocketAddr,
    stats: Arc<ConnectionStats>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

async fn start(reserve: Option<ReserveLimits>) -> Running {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let listener = Listener { protocol: ListenerProtocol::Postgres, socket, tls: None };
    let limits = ConnectionLimits { total: 9, per_address: 2, reserve, drain: Duration::from_secs(5) };
    let stats = Arc::new(ConnectionStats::default());
    let (stop, stopped) = oneshot::channel();
    let shutdown = async { drop(stopped.await) };
    let task = tokio::spawn(serve(listener, limits, WaitingHandler, Arc::clone(&stats), shutdown));
    Running { address, stats, stop, task }
}

impl Running {
    fn counters(&self) -> &ProtocolStats {
        self.stats.of(ListenerProtocol::Postgres)
    }

    async fn until(&self, holds: impl Fn(&ProtocolStats) -> bool) {
        let wait = async {
            while !holds(self.counters()) {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(Duration::from_secs(10), wait).await.expect("it holds in time");
    }
}

#[tokio::test]
async fn connections_are_limited_counted_and_drained() {
    let running = start(None).await;
    let connect = || TcpStream::connect(running.address);
    let held = [connect().await.unwrap(), connect().await.unwrap()];
    running.until(|stats| stats.open() == 2).await;
    let mut third = connect().await.unwrap();
    assert!(matches!(third.read(&mut [0]).await, Ok(0) | Err(_)), "it is closed");
    assert_eq!(running.counters().rejected_by(ConnectionLimit::Address), 1);
    assert_eq!(running.counters().rejected_by(ConnectionLimit::Total), 0);
    drop(held);
    running.until(|stats| stats.open() == 0).await;
    let _held = connect().await.unwrap();
    running.until(|stats| stats.opened() == 3 && stats.open() == 1).await;
    assert_eq!(running.stats.of(ListenerProtocol::Web).opened(), 0, "protocols are counted apart");
    assert_eq!(running.stats.total(ProtocolStats::opened), 3);
    running.stop.send(()).unwrap();
    timeout(Duration::from_secs(4), running.task).await.expect("it ends").unwrap();
    assert_eq!(running.stats.total(ProtocolStats::open), 0);
}

#[tokio::test]
async fn the_reserve_admits_what_the_limits_do_not() {
    let running = start(Some(ReserveLimits { total: 9, per_address: 1 })).await;
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(TcpStream::connect(running.address).await.unwrap());
    }
    running.until(|stats| stats.open() == 3 && stats.rejected() == 1).await;
    assert_eq!(running.counters().reserved(), 1);
}

#[tokio::test]
async fn a_panic_costs_one_connection() {
    use tokio::io::AsyncWriteExt;
    let running = start(None).await;
    for opened in 1..=3 {
        let mut stream = TcpStream::connect(running.address).await.unwrap();
        stream.write_all(b"!").await.unwrap();
        running.until(|stats| stats.opened() == opened && stats.open() == 0).await;
    }
}
