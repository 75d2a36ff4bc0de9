#[path = "driver.rs"]
mod driver;

// snippet
use http_body_util::Full;
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

type Plain = Client<HttpConnector, Full<Bytes>>;

fn make() -> Plain {
    Client::builder(TokioExecutor::new()).build_http()
}
// end

use http_body_util::BodyExt;

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
