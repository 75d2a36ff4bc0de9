#[path = "driver.rs"]
mod driver;

// snippet
use ureq::Agent;
// end
use ureq::tls::{Certificate, RootCerts, TlsConfig};

fn make() -> Agent {
    // snippet
    let config = Agent::config_builder().http_status_as_error(false); // an error's body is read too
    // end
    let config = config.tls_config(tls());
    // snippet
    let agent = config.build().new_agent(); // one for the whole program
    // end
    agent
}

fn tls() -> TlsConfig {
    let Some(pem) = driver::ca() else { return TlsConfig::default() };
    let authority = Certificate::from_pem(&pem).unwrap().to_owned();
    TlsConfig::builder().root_certs(RootCerts::new_with_certs(&[authority])).build()
}

fn request(agent: &Agent, post: bool, read: bool, url: &str) -> driver::Outcome {
    let sent = if post { agent.post(url).send("ping") } else { agent.get(url).call() };
    let mut response = sent.map_err(|error| error.to_string())?;
    let status = response.status().as_u16();
    if read {
        response.body_mut().read_to_vec().map_err(|error| error.to_string())?;
    }
    Ok(status)
}

fn main() {
    let agent = make();
    driver::ready(
        &[("rust", env!("RUST_VERSION")), ("ureq", env!("CLIENT_VERSION"))],
        &["pause", "concurrent", "post", "status", "unread"],
    );
    while let Some(step) = driver::next() {
        let one = || request(&agent, step.post, step.read, &step.url);
        let outcomes: Vec<_> = if step.at_once {
            std::thread::scope(|scope| {
                let threads: Vec<_> = (0..step.count).map(|_| scope.spawn(one)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            })
        } else {
            (0..step.count).map(|_| one()).collect()
        };
        driver::answer(&outcomes);
    }
    std::process::exit(0);
}
