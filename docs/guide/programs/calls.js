// node calls.js URL [COUNT]: sends COUNT requests, one after the other.
// KEEPALIVE=1: all share one agent. Otherwise each request has an agent of its own.
const http = require("http");

const [url, count = "20"] = process.argv.slice(2);
const shared = new http.Agent({ keepAlive: true });

function call() {
  const agent = process.env.KEEPALIVE === "1" ? shared : new http.Agent({ keepAlive: true });
  return new Promise((resolve, reject) => {
    http
      .get(url, { agent }, (response) => response.resume().on("end", resolve))
      .on("error", reject);
  });
}

(async () => {
  for (let i = 0; i < Number(count); i++) {
    await call().catch((error) => console.log(`request ${i + 1}: ${error.code}`));
  }
  process.exit(0);
})();
