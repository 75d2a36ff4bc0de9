const http = require("http");
const agent = new http.Agent({ keepAlive: true });
exports.handler = async () => new Promise((ok, no) => {
  http.get(process.env.INTACT_URL, { agent }, (r) => { r.resume(); r.on("end", () => ok(r.statusCode)); }).on("error", no);
});
