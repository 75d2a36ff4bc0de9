const https = require("https"), fs = require("fs");
const counts = {}, store = { };
https.createServer({ key: fs.readFileSync("k.pem"), cert: fs.readFileSync("c.pem"), keepAliveTimeout: 600000 }, (q, a) => {
  const token = q.headers.authorization.slice(7);
  counts[token] ??= { connections: 0, requests: 0 };
  counts[token].requests++;
  if (!q.socket.counted) { q.socket.counted = true; counts[token].connections++; }
  const parts = [];
  q.on("data", (p) => parts.push(p));
  q.on("end", () => {
    const body = JSON.parse(Buffer.concat(parts));
    const one = ([command]) => ({ result: command.toLowerCase() === "get" ? null : "OK" });
    a.setHeader("content-type", "application/json");
    a.end(JSON.stringify(Array.isArray(body[0]) ? body.map(one) : one(body)));
    fs.writeFileSync("counts.json", JSON.stringify(counts));
  });
}).listen(443, "0.0.0.0");
