#[path = "driver.rs"]
mod driver;

// snippet
use std::time::Duration;
// end

/// One for the whole program.
fn make(builder: reqwest::ClientBuilder) -> reqwest::Client {
    let timeout_ms = driver::timeout_ms();
    // snippet
    // builder: reqwest::Client::builder(); HTTP/2: a PING without an answer ends the connection
    let half = Duration::from_millis(timeout_ms) / 2;
    let builder = builder.http2_keep_alive_interval(half).http2_keep_alive_timeout(half);
    let client = builder.build().unwrap();
    // end
    client
}

fn builder() -> reqwest::ClientBuilder {
    let builder = reqwest::Client::builder();
    match driver::ca() {
        Some(pem) => builder.add_root_certificate(reqwest::Certificate::from_pem(&pem).unwrap()),
        None => builder,
    }
}

async fn request(client: &reqwest::Client, post: bool, read: bool, url: &str) -> driver::Outcome {
    let request = if post { client.post(url).body("ping") } else { client.get(url) };
    let response = request.send().await.map_err(|error| error.to_string())?;
    let status = response.status().as_u16();
    if read {
        response.bytes().await.map_err(|error| error.to_string())?;
    }
    Ok(status)
}

#[tokio::main]
async fn main() {
    let client = make(builder());
    driver::ready(
        &[("rust", env!("RUST_VERSION")), ("reqwest", env!("CLIENT_VERSION"))],
        &["pause", "concurrent", "post", "status", "unread"],
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
