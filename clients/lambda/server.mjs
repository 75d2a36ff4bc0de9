// what a framework's server is, frozen between requests: answers after a call of its own
import http from "node:http";
const agent = new http.Agent({ keepAlive: true });
http.createServer((q, a) => {
  http.get(process.env.INTACT_URL, { agent }, (r) => { r.resume(); r.on("end", () => a.end("fine")); })
    .on("error", (e) => { a.statusCode = 500; a.end(e.code); });
}).listen(process.env.PORT, "127.0.0.1");
