#[path = "driver.rs"]
mod driver;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper_util::client::legacy::connect::HttpConnector;
// snippet
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use std::time::Duration;
// end

fn make() -> Plain {
    let idle_ms = driver::idle_ms();
    // snippet
    let client = Client::builder(TokioExecutor::new())
        .pool_idle_timeout(Duration::from_millis(idle_ms))
        .pool_timer(TokioTimer::new()) // without a timer nothing is closed
        .build_http();
    // end
    client
}

type Plain = Client<HttpConnector, Full<Bytes>>;

async fn request(client: &Plain, post: bool, read: bool, url: &str) -> driver::Outcome {
    let (method, body) = if post { ("POST", "ping") } else { ("GET", "") };
    let request = hyper::Request::builder().method(method).uri(url).body(Full::from(body)).unwrap();
    let response = client.request(request).await.map_err(|error| error.to_string())?;
    let status = response.status().as_u16();
    if read {
        response.into_body().collect().await.map_err(|error| error.to_string())?;
    }
    Ok(status)
}

#[tokio::main]
async fn main() {
    let client: Plain = make();
    driver::ready(
        &[("rust", env!("RUST_VERSION")), ("hyper-util", env!("CLIENT_VERSION"))],
        &["pause", "concurrent", "post", "status", "unread", "plain-only"],
    );
    while let Some(step) = tokio::task::spawn_blocking(driver::next).await.unwrap() {
        let one = || {
            let (client, url) = (client.clone(), step.url.clone());
            let (post, read) = (step.post, step.read);
            async move { request(&client, post, read, &url).await }
        };
        let mut outcomes = Vec::new();
        if step.at_once {
            let tasks: Vec<_> = (0..step.count).map(|_| tokio::spawn(one())).collect();
            for task in tasks {
                outcomes.push(task.await.unwrap());
            }
        } else {
            for _ in 0..step.count {
                outcomes.push(one().await);
            }
        }
        driver::answer(&outcomes);
    }
    std::process::exit(0);
}
