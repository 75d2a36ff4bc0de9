// node idle.js URL PAUSE: a request, a pause of PAUSE seconds, then another request on the same agent.
// TIMEOUT: the idle timeout of the agent, in milliseconds. Without it, the server's timeout decides.
const http = require("http");

const [url, pause] = process.argv.slice(2);
const timeout = process.env.TIMEOUT ? Number(process.env.TIMEOUT) : undefined;
const agent = new http.Agent({ keepAlive: true, timeout });

function call() {
  return new Promise((resolve) => {
    http
      .get(url, { agent }, (response) => response.resume().on("end", () => resolve(response.statusCode)))
      .on("error", (error) => resolve(`${error.code}: ${error.message}`));
  });
}

(async () => {
  console.log("first request:", await call());
  await new Promise((resolve) => setTimeout(resolve, Number(pause) * 1000));
  console.log("second request:", await call());
  process.exit(0);
})();
